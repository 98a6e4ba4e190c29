import json

import pytest
from click.testing import CliRunner

from antiphon.cli import main
from antiphon.simulating.engine_model import catalogue, encode_engine
from antiphon.testing.engine_models import clockwork


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.0,374,44\nbroken\n2023-11-16 18:15:50.0,396,109\n"
    )
    return file


@pytest.fixture
def engine(tmp_path):
    file = tmp_path / "engine.json"
    file.write_bytes(
        encode_engine(clockwork(step_s=0.01, slots=16, step_tokens=1024, kv_blocks=20_000))
    )
    return str(file)


def run(*arguments):
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)])


def test_a_trace_is_replayed_and_what_was_left_out_is_said(trace, engine):
    result = run("trace", trace, "--engine", engine)

    assert result.exit_code == 0
    assert "left out: 1 lines" in result.stderr
    assert "interactive" in result.stdout
    assert "trace.csv; policy fair" in result.stdout


def test_the_report_is_the_same_each_time(trace, engine):
    first, again = (run("trace", trace, "--engine", engine, "--format", "json") for _ in range(2))

    assert first.stdout == again.stdout
    assert json.loads(first.stdout)["total"]["finished"] == 2


def test_policies_are_compared_and_drawn(trace, engine, tmp_path):
    out, plot = tmp_path / "out.json", tmp_path / "plot.svg"

    result = run(
        "trace", trace, "--engine", engine, "--policy", "both", "--out", out, "--plot", plot
    )

    assert result.exit_code == 0
    assert [report["policy"] for report in json.loads(out.read_bytes())] == ["fair", "fcfs"]
    assert plot.read_text().count("<polyline") == 2


def test_settings_say_how_lanes_share(trace, engine, tmp_path):
    config = tmp_path / "antiphon.toml"
    config.write_text("[scheduling]\nlong_prompt_tokens = 380\npolicy = 'fcfs'\n")

    result = run("trace", trace, "--engine", engine, "--config", config, "--format", "json")

    report = json.loads(result.stdout)
    assert report["policy"] == "fcfs"
    assert [figures["name"] for figures in report["classes"]] == ["interactive", "long"]


def test_a_load_finds_how_many_replicas_it_needs(engine):
    result = run(
        "load", "100m-users", "--engine", engine, "--rate", 12, "--cell", 2, "--seconds", 60
    )

    assert result.exit_code == 0, result.output
    assert "needed: " in result.stderr
    assert "100 million users a day" in result.stdout
    assert "a cell of" in result.stdout


def test_a_load_is_simulated_on_a_given_number_of_replicas(engine):
    result = run(
        *("load", "10m-users", "--engine", engine, "--rate", 6, "--replicas", 2, "--cell", 1),
        *("--seconds", 30, "--surge", 3, "--flood", 0.5, "--format", "markdown"),
    )

    assert result.exit_code == 0, result.output
    assert "| interactive |" in result.stdout


def test_the_engine_models_are_listed():
    result = run("engines")

    assert all(name in result.stdout for name in catalogue())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("load", "everybody"), "is none of"),
        (("load", "10m-users", "--engine", "nothing"), "no file"),
        (("load", "10m-users", "--step-tokens", "16"), "step_tokens"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(arguments, problem):
    result = run(*arguments)

    assert result.exit_code == 2
    assert problem in result.stderr
    assert len(result.stderr.splitlines()) == 1

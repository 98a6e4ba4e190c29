"""No block of code in a document goes unlooked at: it is run, or read as what it says it is."""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from antiphon.policy.rulebook import read_rules
from antiphon.settings import Settings, load_settings
from antiphon.testing.command_lines import command_of, read_line
from antiphon.testing.examples import PAGES, ROOT, Block, blocks, is_as_shown, prose, steps

RUN_BY = {
    "python": {"docs/supervision.md": "supervision/test_docs.py", "": "e2e/test_using.py"},
    "javascript": {"": "e2e/test_using.py"},
    "sh": {"": "e2e/test_using.py"},
    "console": {
        "docs/abuse.md": "test_cli_abuse.py",
        "docs/context.md": "test_cli_prompts.py",
        "docs/policy.md": "test_cli_policy.py",
        "docs/storage.md": "e2e/test_sessions.py",
        "docs/operating.md": "e2e/test_sessions.py",
    },
}
"""Which of the tests runs the blocks of a kind: those of a page, or of all others."""
READ = {"toml", "json", "yaml", "promql", "ini", "text"}
"""What is read below, but for `promql`, whose names `test_docs.py` knows, and `text`, which is
nothing that could be run."""
PROGRAMS = ("antiphon", "curl", "git", "make", "npm", "pip", "python", "sqlite3", "pg_dump", "sudo")
INLINE = re.compile(r"`((?:antiphon|make) [^`]+)`")
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def every(*kinds: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page, *kinds)]


def options_of(command: click.Command) -> set[str]:
    """Its own, and those of the commands in it."""
    options = {name for option in command.params for name in option.opts + option.secondary_opts}
    if isinstance(command, click.Group):
        options.update(*map(options_of, command.commands.values()))
    return options | {"--help"}


@pytest.mark.parametrize("page", PAGES)
def test_code_stands_in_blocks_and_nowhere_else(page: str):
    """Indented code says neither what it is nor why it isn't run."""
    text = prose(page)

    assert not re.search(r"^\n {4,}\S", text, re.MULTILINE)
    assert "```" not in text, "a block that was never closed, or is indented"


@pytest.mark.parametrize("block", every(), ids=str)
def test_a_block_is_run_by_a_test_or_read_by_one(block: Block):
    runners = RUN_BY.get(block.kind, {})
    test = runners.get(block.page, runners.get(""))

    assert block.kind in READ or block.not_run or (ROOT / "tests" / (test or "none")).is_file()


@pytest.mark.parametrize("block", [block for block in every() if block.not_run], ids=str)
def test_what_isnt_run_could_be_and_says_why_it_isnt(block: Block):
    assert block.kind in RUN_BY
    assert block.not_run is not None
    assert len(block.not_run.split()) > 5
    for file in re.findall(r"tests/[\w/]+(?:\.py)?", block.not_run):
        assert (ROOT / file).exists()


@pytest.mark.parametrize("block", every("text"), ids=str)
def test_text_is_nothing_to_type(block: Block):
    for line in block.text.splitlines():
        assert not line.lstrip("$> ").startswith(tuple(f"{name} " for name in PROGRAMS)), line


@pytest.mark.parametrize("block", every("sh", "console"), ids=str)
def test_every_command_of_ours_is_one(block: Block, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if block.kind == "console":
        lines = [step.command for step in steps(block)]
    else:
        lines = block.text.replace("\\\n", " ").splitlines()
    for line in lines:
        for file in re.findall(r"[\w.]+\.(?:csv|jsonl|json|toml|txt|pdf)|FILE", line):
            Path(file).touch()
        if re.search(r"\bantiphon ", line):
            assert read_line(line.replace(".venv/bin/", ""))
        if line.startswith("make "):
            assert line.split()[1] in TARGETS


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_a_sentence_names_exists(page: str):
    for line in INLINE.findall(prose(page)):
        program, *words = re.split(r"[\s|=]+", line)
        if program == "make":
            assert words[0] in TARGETS, line
            continue
        command, rest = command_of(words)
        assert not isinstance(command, click.Group) or rest[:1] in ([], ["…"], ["--help"]), line
        options = {word.strip("[],") for word in rest if word.strip("[").startswith("--")}
        assert options <= options_of(command), line


@pytest.mark.parametrize("block", every("toml"), ids=str)
def test_settings_and_rules_are_taken_as_they_stand(block: Block, tmp_path: Path):
    file = tmp_path / "example.toml"
    file.write_text(block.text, encoding="utf-8")

    if block.text.startswith("format = "):
        assert read_rules(file).rules
    else:
        assert load_settings(file, {}) != Settings()


@pytest.mark.parametrize("block", every("json"), ids=str)
def test_json_is_json(block: Block):
    assert json.loads(block.text)


@pytest.mark.parametrize("block", every("ini"), ids=str)
def test_a_unit_starts_reloads_and_stops_a_server(block: Block, tmp_path: Path):
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(block.text)
    service = unit["Service"]

    assert read_line(service["ExecStart"].replace("/opt/antiphon/.venv/bin/", "")) == ["serve"]
    assert int(service["TimeoutStopSec"]) > Settings().shutdown.budget_s
    assert service["KillMode"] == "mixed", "or the engine is told to stop before its answers end"
    analyser = shutil.which("systemd-analyze")
    if analyser is None:
        return
    file = tmp_path / "antiphon.service"
    file.write_text(block.text.replace("/opt/antiphon/.venv/bin/antiphon", "/bin/true"))
    found = subprocess.run(
        [analyser, "verify", "--man=no", file], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert str(file) not in found.stderr


@pytest.mark.parametrize("block", every("yaml"), ids=str)
def test_yaml_is_yaml(block: Block):
    assert yaml.safe_load(block.text)["spec"]


def test_a_deployment_has_settings_probes_and_the_time_that_a_stop_takes():
    [deployment] = [block for block in every("yaml") if "kind: Deployment" in block.text]
    pod = yaml.safe_load(deployment.text)["spec"]["template"]["spec"]
    [container] = pod["containers"]
    environment = {
        entry["name"]: entry.get("value", "sqlite:///x.db") for entry in container["env"]
    }

    settings = load_settings(None, environment)

    command, *words = container["command"]
    assert command.endswith("/antiphon")
    assert read_line(" ".join(["antiphon", *words])) == ["serve"]
    waited = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] >= waited + settings.shutdown.budget_s + 5
    assert pod["enableServiceLinks"] is False
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert (settings.bind, settings.ops_bind) == tuple(f"0.0.0.0:{port}" for port in ports.values())
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == "ops"
        assert container[probe]["httpGet"]["path"] in ("/health/live", "/health/ready")


@pytest.mark.parametrize(
    ("printed", "shown", "fits"),
    [
        ("a\tb 1\n", "a   b 1", True),
        ("user_12\tslow\n", "user_1… slow", True),
        ("a\nb\n", "a…", False),
        ("a b\n", "a", False),
    ],
)
def test_what_is_printed_is_held_against_what_is_shown(printed: str, shown: str, fits: bool):
    assert is_as_shown(printed, shown) is fits

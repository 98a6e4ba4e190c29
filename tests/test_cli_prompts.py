"""The commands about system prompts, on a real SQLite file."""

import json
import logging
import shlex
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner, Result

from antiphon.cli import main
from antiphon.prompts import LONGEST_TEXT
from antiphon.testing.examples import blocks, steps


@pytest.fixture(autouse=True)
def _as_before(monkeypatch, tmp_path):
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setenv("ANTIPHON_DATA_DIR", str(tmp_path / "data"))
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def run(*arguments: str, text: str | bytes | None = None, status: int = 0) -> Result:
    result = CliRunner().invoke(main, ["prompts", *arguments], input=text)
    assert result.exit_code == status, result.output
    return result


def printed(*arguments: str, text: str | None = None) -> dict:
    return json.loads(run(*arguments, "--json", text=text).stdout)


def in_force(name: str = "guide") -> dict[str, float]:
    return printed("list", name)["activations"][0]["arms"]


@pytest.fixture
def three():
    """Three versions of `guide`, of which the first is in force."""
    for text in ("one", "two", "three"):
        run("add", "guide", "-", text=text)
    run("activate", "guide", "1")


def test_versions_are_numbered_and_kept_as_they_came(tmp_path):
    file = tmp_path / "guide.txt"
    file.write_bytes("\ufeffBe kind to {{name}}.\r\nÀ bientôt.\n".encode())

    first = run("add", "guide", str(file), "--note", "the first")
    run("add", "guide", text="Be very kind.\n")

    assert "antiphon prompts activate guide 1" in first.stdout
    shown = run("show", "guide", "1")
    assert shown.stdout == "Be kind to {{name}}.\nÀ bientôt."
    assert "version 1" in shown.stderr
    assert run("show", "guide").stdout == "Be very kind."
    assert printed("show", "guide", "1") == {
        "name": "guide",
        "version": 1,
        "note": "the first",
        "created_ms": printed("show", "guide", "1")["created_ms"],
        "variables": ["name"],
        "text": "Be kind to {{name}}.\nÀ bientôt.",
    }


def test_a_version_is_in_force_once_it_is_activated():
    run("add", "guide", text="one")
    assert "none is in force" in run("list").stdout

    said = run("activate", "guide", "1").stdout

    assert "version 1" in said
    assert run("list").stdout == "guide\tversions 1…1\tversion 1\n"
    assert in_force() == {"1": 1.0}


def test_the_list_of_one_has_versions_and_what_was_in_force(three):
    run("activate", "guide", "2", "--canary", "3=0.25")

    lines = run("list", "guide").stdout.splitlines()

    assert [line.split("\t")[0] for line in lines] == [
        "1",
        "2",
        "3",
        "activation 2",
        "activation 1",
    ]
    assert [line.split("\t")[2] for line in lines[:3]] == ["", "in force: 0.75", "in force: 0.25"]
    assert lines[3].endswith("version 2 for 0.75, version 3 for 0.25")


def test_canaries_have_their_shares_and_the_version_the_rest(three):
    made = printed("activate", "guide", "1", "--canary", "2=0.1", "--canary", "3=0.2")

    assert made["arms"] == {"1": 0.7, "2": 0.1, "3": 0.2}
    assert in_force() == made["arms"]


def test_a_rollback_is_one_command_and_history_stays(three):
    run("activate", "guide", "1", "--canary", "2=0.1")
    run("activate", "guide", "2")

    made = printed("rollback", "guide")

    assert (made["activation"], made["arms"]) == (4, {"1": 0.9, "2": 0.1})
    history = printed("list", "guide")["activations"]
    assert [each["activation"] for each in history] == [4, 3, 2, 1]
    assert history[1]["arms"] == {"2": 1.0}


def test_a_rollback_passes_what_was_the_same(three):
    run("activate", "guide", "2")
    run("activate", "guide", "2")

    assert printed("rollback", "guide")["arms"] == {"1": 1.0}
    assert printed("rollback", "guide")["arms"] == {"2": 1.0}  # and takes itself back


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "nothing"), "antiphon prompts list"),
        (("show", "guide", "9"), "has no version 9"),
        (("list", "nothing"), "there is no prompt 'nothing'"),
        (("activate", "guide", "9"), "has no version 9"),
        (("activate", "guide", "1", "--canary", "9=0.1"), "has no version 9"),
        (("activate", "guide", "1", "--canary", "1=0.1"), "its own canary"),
        (("activate", "guide", "1", "--canary", "2=0.5", "--canary", "3=0.5"), "leave some"),
        (("rollback", "nothing"), "antiphon prompts list"),
        (("rollback", "guide"), "nothing else"),
        (("add", "a b", "-"), "can't be a prompt's name"),
        (("add", "guide", "/nowhere"), "No such file"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(three, arguments, words):
    said = run(*arguments, text="x", status=1).stderr

    assert said.count("\n") == 1
    assert words in said


@pytest.mark.parametrize("canary", ["2", "2=0", "2=1", "x=0.1", "2=nan", "0=0.1", "2=-0.1"])
def test_a_canary_is_a_version_and_a_share(three, canary):
    assert "3=0.1" in run("activate", "guide", "1", "--canary", canary, status=2).stderr


def test_a_canary_is_given_once(three):
    arguments = ("activate", "guide", "1", "--canary", "2=0.1", "--canary", "2=0.2")

    assert "one --canary" in run(*arguments, status=2).stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" \n", "is empty"),
        ("x" * (LONGEST_TEXT + 1), str(LONGEST_TEXT)),
        ("a\x00b", "NUL"),
        (b"\xff", "not UTF-8"),
        ("x" * (1 << 21), "longer than 1 MiB"),
    ],
)
def test_what_is_no_prompt_is_refused(text, words):
    assert words in run("add", "guide", "-", text=text, status=1).stderr
    assert printed("list")["versions"] == []


def test_a_prompt_may_be_as_long_as_is_said():
    run("add", "guide", "-", text="x" * LONGEST_TEXT)

    assert len(run("show", "guide").stdout) == LONGEST_TEXT


def test_a_prompt_for_everybody_has_no_variables(monkeypatch):
    run("add", "guide", text="Be kind to {{name}}.")
    monkeypatch.setenv("ANTIPHON_CONTEXT_PROMPT", "guide")

    assert "has variables (name)" in run("activate", "guide", "1", status=1).stderr
    monkeypatch.delenv("ANTIPHON_CONTEXT_PROMPT")
    run("activate", "guide", "1")


def test_the_document_shows_what_the_commands_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("guide.txt").write_text("Be kinder.\n")
    for text in ("one", "two"):
        run("add", "guide", "-", text=text)
    [session] = blocks("docs/context.md", "console")

    for step in steps(session):
        _, _, *words = shlex.split(step.command)
        assert run(*words).stdout == step.printed

"""Every command explains itself: what it does, each of its options, and how it is used."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from antiphon.cli import main
from antiphon.cli_examples import EXAMPLES
from antiphon.testing.command_lines import read_line


def walk(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for each, child in command.commands.items():
            yield from walk(child, f"{name} {each}".strip())


COMMANDS = dict(walk(main))
LINES = [(name, line) for name, examples in EXAMPLES.items() for line, _ in examples]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does(name: str):
    told = COMMANDS[name].help or ""

    assert told[:1].isupper()
    assert "." in told


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_is_for(name: str):
    for option in COMMANDS[name].params:
        if isinstance(option, click.Option):
            assert option.help, option.opts
            assert option.help.endswith("."), option.opts


@pytest.mark.parametrize("name", COMMANDS)
def test_help_speaks_of_every_argument_unless_its_name_is_all_there_is_to_say(name: str):
    command = COMMANDS[name]
    for argument in command.params:
        if isinstance(argument, click.Argument):
            words = (argument.metavar or argument.human_readable_name).strip("[]").lower()
            assert re.search(words.partition("|")[0], (command.help or "").lower()), argument.name


def test_every_command_has_examples_and_no_other_has():
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(EXAMPLES.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_shown_with_examples_that_can_be_copied(name: str):
    shown = CliRunner().invoke(main, [*name.split(), "--help"], terminal_width=80)

    assert shown.exit_code == 0
    for line, purpose in EXAMPLES[name]:
        assert f"  {line}\n" in shown.output
        assert f"# {purpose}\n" in shown.output


@pytest.mark.parametrize(("name", "line"), LINES)
def test_every_example_is_a_command_as_the_command_reads_it(
    name: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for file in re.findall(r"[\w.]+\.(?:csv|jsonl|json|toml|txt)", line):
        Path(file).touch()

    assert read_line(line)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_example_is_one_of_the_command_itself(name: str):
    assert f"antiphon {name}".strip() in EXAMPLES[name][0][0]


def test_help_needs_no_server_and_no_model():
    result = CliRunner().invoke(main, ["--help"])

    assert "chat" in result.output
    assert "Settings are read from" in result.output


def test_short_help_fits_a_line():
    for name, command in COMMANDS.items():
        assert len(command.get_short_help_str(80)) <= 80, name

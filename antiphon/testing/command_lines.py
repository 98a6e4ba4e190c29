"""Reads a line with `antiphon` in it as the command itself would, without doing what it says."""

import click

from antiphon.cli import main
from antiphon.testing.examples import pipeline

PROGRAM = "antiphon"


def read_line(line: str) -> list[str]:
    """The names of the commands in it, as `keys create`. Raises click.UsageError where the command
    would refuse its options or arguments."""
    return [
        _read(words[words.index(PROGRAM) + 1 :]) for words in pipeline(line) if PROGRAM in words
    ]


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words begin with, and the words after its name."""
    command: click.Command = main
    rest = list(words)
    while isinstance(command, click.Group) and rest and rest[0] in command.commands:
        command = command.commands[rest.pop(0)]
    return command, rest


def _read(words: list[str]) -> str:
    context = main.make_context(PROGRAM, list(words))
    command: click.Command = main
    names = []
    while isinstance(command, click.Group):
        found, command_found, rest = command.resolve_command(context, list(words))
        assert found is not None, "resolving raises where there is no such command"
        assert command_found is not None, "resolving raises where there is no such command"
        names.append(found)
        context = click.Context(command_found, parent=context, info_name=found)
        command, words = command_found, rest
    command.parse_args(context, list(words))
    return " ".join(names)

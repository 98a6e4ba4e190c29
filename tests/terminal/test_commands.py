"""What is typed, and what is made of it."""

import pytest

from antiphon.terminal.commands import COMMANDS, Do, Mistyped, Say, help_lines, read


@pytest.mark.parametrize("line", ["", "  ", "\n\n"])
def test_nothing_is_nothing(line: str):
    assert read(line) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hello", "hello"),
        ("  two\nlines  ", "two\nlines"),
        ("//help me", "/help me"),
        ("/etc/passwd\nand more", "/etc/passwd\nand more"),
        ("a /help in a sentence", "a /help in a sentence"),
    ],
)
def test_a_message_is_said(line: str, said: str):
    assert read(line) == Say(said)


@pytest.mark.parametrize(
    ("line", "name", "argument"),
    [
        ("/new", "new", ""),
        ("/list", "list", ""),
        ("/list two words ", "list", "two words"),
        ("/open 3", "open", "3"),
        ("/exit", "quit", ""),
        ("/retry", "regenerate", ""),
        ("/model", "model", ""),
        ("/attach", "attach", ""),
        ("/attach my file.pdf", "attach", "my file.pdf"),
    ],
)
def test_a_command_is_done(line: str, name: str, argument: str):
    typed = read(line)

    assert isinstance(typed, Do)
    assert (typed.command.name, typed.argument) == (name, argument)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("/hlep", "did you mean /help? To say it to the model, type //hlep."),
        ("/xyzzy", "/help says which there are."),
        ("/open", "/open wants NUMBER or ID after it."),
        ("/new now", "/new takes nothing after it."),
    ],
)
def test_a_mistake_comes_with_advice(line: str, advice: str):
    typed = read(line)

    assert isinstance(typed, Mistyped)
    assert advice in typed.advice


def test_every_command_is_in_the_help():
    assert [line.split()[0] for line, _ in help_lines()] == [f"/{each.name}" for each in COMMANDS]

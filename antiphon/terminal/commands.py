"""What one types beside messages: the commands of a chat, and how they are read. Pure."""

import difflib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`takes` is what may follow its name."""

    name: str
    takes: str
    help: str


COMMANDS = (
    Command(name="help", takes="", help="what can be typed here"),
    Command(name="new", takes="", help="begin another conversation"),
    Command(name="list", takes="[TEXT]", help="the latest conversations, or those with the words"),
    Command(name="open", takes="NUMBER or ID", help="go on with one of the list"),
    Command(name="show", takes="", help="the conversation once more"),
    Command(name="regenerate", takes="", help="another answer to the last message"),
    Command(
        name="stop", takes="", help="end an answer that still runs, as after a lost connection"
    ),
    Command(
        name="attach",
        takes="[FILE]",
        help="send a file or picture with the next message, or say which",
    ),
    Command(name="detach", takes="", help="leave the attached files out"),
    Command(name="model", takes="[NAME]", help="which model answers, or have another one answer"),
    Command(name="models", takes="", help="the models there are"),
    Command(name="title", takes="TEXT", help="name the conversation"),
    Command(name="export", takes="FILE", help="write the conversation to a file, as Markdown"),
    Command(name="delete", takes="", help="delete the conversation for good"),
    Command(name="quit", takes="", help="leave; so do Ctrl-D and a second Ctrl-C"),
)
_BY_NAME = {command.name: command for command in COMMANDS} | {
    "exit": COMMANDS[-1],
    "retry": next(each for each in COMMANDS if each.name == "regenerate"),
}


@dataclass(frozen=True, slots=True)
class Say:
    """A message for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Do:
    command: Command
    argument: str


@dataclass(frozen=True, slots=True)
class Mistyped:
    """No command; `advice` is for who typed it."""

    advice: str


Typed = Say | Do | Mistyped


def read(line: str) -> Typed | None:
    """What was typed; None for nothing. Two slashes say one to the model."""
    text = line.strip()
    if not text:
        return None
    if text.startswith("//"):
        return Say(text[1:])
    if not text.startswith("/") or "\n" in text:
        return Say(text)
    name, _, argument = text[1:].partition(" ")
    command, argument = _BY_NAME.get(name), argument.strip()
    if command is None:
        near = difflib.get_close_matches(name, _BY_NAME, n=1)
        meant = f"did you mean /{near[0]}?" if near else "/help says which there are."
        return Mistyped(f"There is no /{name}: {meant} To say it to the model, type //{name}.")
    if argument and not command.takes:
        return Mistyped(f"/{command.name} takes nothing after it.")
    if not argument and command.takes and not command.takes.startswith("["):
        return Mistyped(f"/{command.name} wants {command.takes} after it.")
    return Do(command, argument)


def help_lines() -> list[tuple[str, str]]:
    """Each command with what it does."""
    return [(f"/{each.name} {each.takes}".rstrip(), each.help) for each in COMMANDS]

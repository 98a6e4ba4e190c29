"""The command `antiphon chat`: a conversation with a running server, in a terminal."""

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from antiphon.cli_help import ManualCommand
from antiphon.cli_options import config_option, quietly

if TYPE_CHECKING:
    from antiphon.terminal.chat import Source


_INTERRUPTED = 128 + signal.SIGINT
"""As shells have it of a command that Ctrl-C has ended."""


@click.command(cls=ManualCommand)
@click.argument("message", nargs=-1)
@click.option(
    "--url",
    envvar="ANTIPHON_API_URL",
    show_envvar=True,
    metavar="URL",
    help="The server's address; by default the one that the settings have it listen on.",
)
@click.option(
    "--key",
    envvar="ANTIPHON_API_KEY",
    show_envvar=True,
    metavar="KEY",
    help="An API key. Better in the variable: who is on this machine sees its command lines.",
)
@click.option("--model", metavar="NAME", help="Which model answers; else the server's first one.")
@click.option("--conversation", metavar="ID", help="Go on with this conversation.")
@click.option(
    "--continue", "is_continued", is_flag=True, help="Go on with the one that was used last."
)
@click.option(
    "--file",
    "files",
    type=click.Path(exists=True, dir_okay=False, readable=True),
    multiple=True,
    metavar="FILE",
    help="Send this file or picture with the message, or with the first one; may be given several "
    "times.",
)
@click.option("--plain", is_flag=True, help="Show text as it comes, without drawing Markdown.")
@click.option(
    "--history/--no-history",
    default=True,
    help="Whether to keep what is typed here for the arrow keys of the next time.",
)
@config_option
@click.pass_obj
def chat(
    outer: Path | None,
    message: tuple[str, ...],
    url: str | None,
    key: str | None,
    model: str | None,
    conversation: str | None,
    is_continued: bool,
    files: tuple[str, ...],
    plain: bool,
    history: bool,
    config: Path | None,
) -> None:
    """Chat with a running server.

    Without MESSAGE at a terminal, it asks for messages until you leave; /help says what else can be
    typed. Answers are drawn as Markdown while they are written. Ctrl-C stops an answer, which frees
    its slot at the server, and gives the prompt back; a second Ctrl-C, Ctrl-D or /quit leave. With
    MESSAGE, or with input from a pipe, which is put after it, it prints one answer and ends, with
    status 1 if the answer isn't whole, and 130 if Ctrl-C stopped it. What is no part of the answer
    goes to standard error then.

    What is said is kept by the server, as a conversation that the chat page and the API show, too.
    """
    from rich.console import Console

    from antiphon.errors import ApiRefused, ApiUnreachable
    from antiphon.terminal.chat import Chat
    from antiphon.terminal.client import ApiClient
    from antiphon.terminal.keyboard import Keyboard
    from antiphon.terminal.screen import Screen
    from antiphon.terminal.telling import advice_on

    if conversation is not None and is_continued:
        raise click.UsageError("--conversation and --continue contradict each other")
    address = url or f"http://{_reachable(quietly(config or outer).bind)}"
    is_rich = sys.stdout.isatty() and not plain
    console, aside = (
        Console(highlight=False, markup=False, soft_wrap=not is_rich, stderr=stderr)
        for stderr in (False, True)
    )
    screen = Screen(console, aside=aside, is_rich=is_rich)
    client = ApiClient(address, key or None)
    try:
        once = _once(message)
        talk = Chat(client, screen, model or client.models()[0].id)
        try:
            if conversation is not None:
                talk.open(conversation, is_shown=once is None)
            elif is_continued:
                talk.open_latest(is_shown=once is None)
            for file in files:
                talk.attach(shlex.quote(file))
            if once is not None:
                is_whole = talk.say(once)
                sys.exit(_INTERRUPTED if talk.is_interrupted else 0 if is_whole else 1)
            source: Source = Keyboard(_history_file() if history else None)
            screen.note(f"Antiphon at {client.url}. /help says what can be typed; Ctrl-D leaves.")
            talk.run(source)
        finally:
            talk.leave()
    except (ApiRefused, ApiUnreachable) as error:
        click.echo(f"antiphon: {advice_on(error)}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    finally:
        client.close()


def _once(message: tuple[str, ...]) -> str | None:
    """The one thing to ask; None where somebody is there to type."""
    piped = "" if sys.stdin.isatty() else sys.stdin.read()
    asked = "\n\n".join(part for part in (" ".join(message), piped.strip()) if part.strip())
    if not asked and not sys.stdin.isatty():
        raise click.UsageError("there is nothing to ask: no MESSAGE, and nothing in the pipe")
    return asked or None


def _reachable(bind: str) -> str:
    """An address that means all of a machine's is no place to go to."""
    host, _, port = bind.rpartition(":")
    return f"{ {'0.0.0.0': '127.0.0.1', '[::]': '[::1]'}.get(host, host) }:{port}"


def _history_file() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "antiphon" / "chat_history"

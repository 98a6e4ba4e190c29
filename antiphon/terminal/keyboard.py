"""Where messages come from: somebody who types at a terminal, with a history and several lines."""

import os
from collections.abc import Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from antiphon.terminal.commands import COMMANDS

_PROMPT = "> "
_MORE = "… "
_TAKE_FILES = frozenset({"/attach", "/export"})


class Keyboard:
    """A person. Enter sends; Alt-Enter or a backslash at the end begin another line, and what is
    pasted stays one message."""

    def __init__(self, history: Path | None) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=_Commands(),
            complete_while_typing=False,
            key_bindings=_keys(),
            multiline=True,
            prompt_continuation=lambda width, line, wrapped: "" if wrapped else _MORE,
            enable_open_in_editor=True,
        )

    def read(self) -> str:
        """The next message. Raises KeyboardInterrupt for Ctrl-C, EOFError for Ctrl-D."""
        return self._session.prompt(_PROMPT)


class _Commands(Completer):
    """Tab finishes a command, and the name of a file after one that takes it."""

    def __init__(self) -> None:
        self._files = PathCompleter(expanduser=True)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        text = document.text
        if text.startswith("/") and " " not in text and "\n" not in text:
            for command in COMMANDS:
                if command.name.startswith(text[1:]):
                    yield Completion(
                        f"/{command.name}", start_position=-len(text), display_meta=command.help
                    )
        name, _, path = text.partition(" ")
        if name in _TAKE_FILES:
            yield from self._files.get_completions(Document(path), complete_event)


def _keys() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return bindings


def _history(file: Path | None) -> History:
    """What was typed is nobody else's business. Where it can't be kept, it is kept in memory."""
    if file is None:
        return InMemoryHistory()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(file)

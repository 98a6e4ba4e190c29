"""Files that go along with the next message: uploaded when they are named, so that what is wrong
with one is known before the message is written."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rich.filesize import decimal

from antiphon.errors import ApiRefused, ApiUnreachable
from antiphon.terminal.client import ApiClient
from antiphon.terminal.screen import Screen
from antiphon.terminal.wire import UploadedFile


class Attached:
    """What was never sent is deleted at the server when it isn't wanted any more."""

    def __init__(self, client: ApiClient, screen: Screen) -> None:
        self._client = client
        self._screen = screen
        self._files: list[UploadedFile] = []
        self._tried: set[str] = set()
        """Those that some message may have."""

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(file.id for file in self._files)

    def add(self, typed: str) -> None:
        """Upload each file that is named. Raises ApiRefused, ApiUnreachable."""
        for path in _paths(typed):
            file = self._upload(path)
            self._files.append(file)
            self._screen.note(f"{file.filename}, {_size(file.bytes)}: goes with the next message")

    def show(self) -> None:
        self._screen.rows([file.filename, _size(file.bytes)] for file in self._files)
        if not self._files:
            self._screen.note("nothing is attached; /attach FILE does it")

    def drop(self) -> None:
        """Raises ApiRefused, ApiUnreachable."""
        files, self._files = self._files, []
        self._delete(files)
        self._screen.note("nothing is attached any more")

    def note_tried(self) -> None:
        """A message with all of them is on its way."""
        self._tried.update(self.ids)

    def note_sent(self, ids: Sequence[str]) -> None:
        """A message with these has arrived."""
        self._files = [file for file in self._files if file.id not in ids]

    def leave(self) -> None:
        """There will be no next message."""
        with suppress(ApiRefused, ApiUnreachable, KeyboardInterrupt):
            self._delete(self._files)

    def _upload(self, path: Path) -> UploadedFile:
        try:
            if path.exists() and not path.is_file():
                raise ApiRefused(0, "not_read", f"{path} is no file.")
            size = path.stat().st_size
            with self._screen.progress(f"sending {path.name}", size) as sent:
                return self._client.upload(path, sent)
        except OSError as error:
            raise ApiRefused(0, "not_read", f"{path}: {error.strerror or error}") from error

    def _delete(self, files: Sequence[UploadedFile]) -> None:
        for file in files:
            if file.id not in self._tried:
                self._client.delete_file(file.id)


def _paths(typed: str) -> list[Path]:
    """A terminal quotes the name of a file that is dropped on it, and a person may not."""
    whole = Path(typed).expanduser()
    if whole.exists():
        return [whole]
    try:
        return [Path(name).expanduser() for name in shlex.split(typed)]
    except ValueError:  # a quote that isn't closed
        return [whole]


def _size(size: int) -> str:
    return f"{size} bytes" if size < 1000 else decimal(size)

"""Files that go along with the next message: uploaded when they are named, so that what is wrong
with one is known before the message is written. Pictures, by their first bytes, are for the model
to see, and go to none that sees none; all else is read."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rich.filesize import decimal

from antiphon.errors import ApiRefused, ApiUnreachable
from antiphon.pictures import SEEN, image_type
from antiphon.terminal.client import ApiClient
from antiphon.terminal.screen import Screen
from antiphon.terminal.telling import told_of_blindness
from antiphon.terminal.wire import IMAGE, VISION, Part, UploadedFile

_READ = "user_data"
_FIRST_BYTES = 16
"""They say what kind of picture it is."""


class Attached:
    """What was never sent is deleted at the server when it isn't wanted any more."""

    def __init__(self, client: ApiClient, screen: Screen) -> None:
        self._client = client
        self._screen = screen
        self._files: list[UploadedFile] = []
        self._tried: set[str] = set()
        """Those that some message may have."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Of the next message."""
        return tuple(file.part for file in self._files)

    def add(self, typed: str, model: str) -> None:
        """Upload each file that is named, for that model. Raises ApiRefused, ApiUnreachable."""
        for path in _paths(typed):
            file = self._upload(path, model)
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
        self._tried.update(file.id for file in self._files)

    def note_sent(self, parts: Sequence[Part]) -> None:
        """A message with these has arrived."""
        sent = {part.file_id for part in parts}
        self._files = [file for file in self._files if file.id not in sent]

    def leave(self) -> None:
        """There will be no next message."""
        with suppress(ApiRefused, ApiUnreachable, KeyboardInterrupt):
            self._delete(self._files)

    def _upload(self, path: Path, model: str) -> UploadedFile:
        try:
            if path.exists() and not path.is_file():
                raise ApiRefused(0, "not_read", f"{path} is no file.")
            purpose = _purpose(path)
            if purpose == VISION:
                check_seen(self._client, model, [Part(type=IMAGE, filename=path.name)])
            size = path.stat().st_size
            with self._screen.progress(f"sending {path.name}", size) as sent:
                return self._client.upload(path, sent, purpose=purpose)
        except OSError as error:
            raise ApiRefused(0, "not_read", f"{path}: {error.strerror or error}") from error

    def _delete(self, files: Sequence[UploadedFile]) -> None:
        for file in files:
            if file.id not in self._tried:
                self._client.delete_file(file.id)


def check_seen(client: ApiClient, model: str, parts: Sequence[Part]) -> None:
    """Before anything is sent: a picture that the model can't see is refused, with those that can.
    Raises ApiRefused, ApiUnreachable."""
    names = [part.filename or part.file_id for part in parts if part.type == IMAGE]
    if not names:
        return
    seeing = [each.id for each in client.models() if each.vision]
    if model not in seeing:
        raise ApiRefused(0, "no_vision", told_of_blindness(names, model, seeing))


def _purpose(path: Path) -> str:
    """Raises OSError."""
    with path.open("rb") as file:
        return VISION if image_type(file.read(_FIRST_BYTES)) in SEEN else _READ


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

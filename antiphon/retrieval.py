"""What the rooms need of the files' room, said at the user's side: searching in vector stores, and
finding out what a turn is to be shown of files. Implementations are structural."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from antiphon.events import Message
from antiphon.ids import FileId, UserId
from antiphon.sources import FileSearch, Found, Source
from antiphon.views import ShownFile

LOOKED_BACK = 2
"""So many messages before the one that is to be answered may say what it means: further ones are of
something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesAsked:
    """What a turn wants of files. `files` are those that its messages bring along, in order and
    with their names, which are all that is known of one that is gone; `question` is the message
    that is to be answered, `before` the LOOKED_BACK messages that its user has sent before it, the
    latest first. What is shown whole has to be within `room` tokens."""

    user: UserId
    question: str
    before: tuple[str, ...] = ()
    files: Mapping[FileId, str] = field(default_factory=dict)
    search: FileSearch | None = None
    room: int = 0
    may_cite: bool = False
    """Whether its answer can show where it has something from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What the model is to be shown, in order, each with its rank: what has none is always shown,
    of the rest as much as there is room for, 0 before 1."""

    shown: tuple[tuple[Message, int | None], ...] = ()
    sources: tuple[Source, ...] = ()
    files: tuple[ShownFile, ...] = ()
    queries: tuple[str, ...] = ()
    found: tuple[Found, ...] = ()
    """What the search has found, the best first."""


class FileSearching(Protocol):
    """Finds pieces of files."""

    async def search(
        self, user: UserId, search: FileSearch, queries: Sequence[str]
    ) -> tuple[Found, ...]:
        """The best first. Raises RecordNotFound for a vector store that isn't there,
        InvalidRequest for one that has expired, StoreError."""

    async def gather(self, asked: FilesAsked) -> Gathered:
        """What a turn is to be shown. Waits a little for files that are still being read; what
        isn't there by then, or never will be, is said to the model. Raises as `search`."""

    def files_added(self) -> None:
        """There may be something to be read: it need not wait for the next look."""

"""What the rooms need of embeddings, said at the user's side: the vectors of a document's chunks,
and the chunks whose vectors are nearest to a question's. Nobody who asks computes anything.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from antiphon.embedding_frames import EmbedderCommand, EmbedderFrame
from antiphon.ids import FileId


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A set of files that is searched in as one: a vector store, or a single file.

    `key` is its id. `revision` is another one whenever the set is: what the index knows of another
    revision is never searched, so that no replica shows what another one has removed.
    """

    key: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVectors:
    """The vectors of one file's chunks as `embed` made them, in the order of their numbers, which
    count from 0 without a gap."""

    file: FileId
    vectors: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A chunk, and how like the question it is: 1 is the same, 0 has nothing to do with it."""

    file: FileId
    number: int
    similarity: float


class VectorSource(Protocol):
    """Where the index gets from what it doesn't hold. Raises StoreUnavailable."""

    async def files(self, scope: Scope) -> Mapping[FileId, str]:
        """Those of the set that are ready to be searched, each with what names its vectors: it is
        another one whenever they are."""

    async def vectors(self, scope: Scope, files: Sequence[FileId]) -> Sequence[FileVectors]:
        """Of these files, without those that are gone or were embedded by another model."""


class Embedding(Protocol):
    """The embedding actor, as others see it."""

    @property
    def model(self) -> str:
        """What made the vectors: those of another one can't be compared with them."""

    async def embed(self, texts: Sequence[str]) -> tuple[bytes, ...]:
        """A vector for each chunk. Not for somebody who waits: questions are answered in between,
        however many texts these are. Raises EmbeddingUnavailable."""

    async def nearest(
        self,
        question: str,
        scopes: Sequence[Scope],
        limit: int,
        *,
        only: Collection[FileId] | None = None,
    ) -> tuple[Neighbour, ...]:
        """At most `limit` chunks of all these sets, the nearest first; with `only`, of these files
        alone. A file in two of the sets is found once. Raises EmbeddingUnavailable, and
        StoreUnavailable where a set must be loaded first."""


class EmbedderLink(Protocol):
    """One running embedding process, as its worker sees it."""

    @property
    def pid(self) -> int: ...

    async def send(self, command: EmbedderCommand) -> None:
        """Raises EmbedderLost when the process is gone."""

    async def receive(self) -> EmbedderFrame:
        """The next frame. Raises EmbedderLost at the end of the stream, or on a malformed frame."""

    async def aclose(self, *, grace_s: float) -> None:
        """Ask the process to end, then kill it after the grace. Also when cancelled: the wait is
        shielded and bounded. Raises nothing else; idempotent."""

    def kill(self) -> None:
        """SIGKILL the process now. Idempotent."""


class EmbedderLauncher(Protocol):
    """Starts embedding processes."""

    async def launch(self) -> EmbedderLink:
        """Start one; it reports EmbedderReady as its first frame. Raises EmbedderStartFailed."""

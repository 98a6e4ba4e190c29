"""What goes wrong in the engine or in the store, whatever was asked of them."""

from dataclasses import dataclass
from typing import ClassVar

from antiphon.errors.base import AntiphonError


class EngineError(AntiphonError):
    """The engine, not the request, is the reason that an answer ended."""


@dataclass(eq=False)
class HostStartFailed(EngineError):
    """The engine host ended or went silent before it reported Ready."""

    reason: str
    sentence: ClassVar[str] = "engine host did not start: {reason}"


@dataclass(eq=False)
class HostLost(EngineError):
    """The engine host died or hung; every generation it held is lost."""

    reason: str
    sentence: ClassVar[str] = "engine host lost: {reason}"


@dataclass(eq=False)
class HostProtocolError(EngineError):
    """The engine host sent a frame that the contract forbids; it is killed."""

    problem: str
    sentence: ClassVar[str] = "engine host broke the protocol: {problem}"


@dataclass(eq=False)
class GenerationFailed(EngineError):
    """The engine gave up this one generation; others go on."""

    code: str
    detail: str
    sentence: ClassVar[str] = "generation failed ({code}): {detail}"


class JudgeError(AntiphonError):
    """A judge process, not the text, is the reason that nothing was said of it."""


@dataclass(eq=False)
class JudgeStartFailed(JudgeError):
    """The judge process could not be started, or was silent for too long."""

    reason: str
    sentence: ClassVar[str] = "judge process did not start: {reason}"


@dataclass(eq=False)
class JudgeLost(JudgeError):
    """The judge process died, hung or broke the protocol; the texts it had are not judged."""

    reason: str
    sentence: ClassVar[str] = "judge process lost: {reason}"


@dataclass(eq=False)
class UnreadableFile(AntiphonError):
    """Nothing can be made of a file, however often it is tried. `code` is one of
    `reading_files.Unreadable`; `message` is for its owner, and quotes nothing of it."""

    code: str
    message: str

    def __str__(self) -> str:
        return self.message


class ReaderError(AntiphonError):
    """A process that reads files, not the file, is the reason that it wasn't read."""


@dataclass(eq=False)
class ReaderLost(ReaderError):
    """The reader process died, hung or broke the protocol. Whose fault that is, its owner
    judges."""

    reason: str
    sentence: ClassVar[str] = "reader process lost: {reason}"


@dataclass(eq=False)
class ReaderUnavailable(ReaderError):
    """No reader process could be started, or the file isn't there to be read. A later try may
    succeed."""

    reason: str
    sentence: ClassVar[str] = "no file can be read now: {reason}"


class EmbeddingError(AntiphonError):
    """The embedding process, not the text, is the reason that there is no vector."""


@dataclass(eq=False)
class EmbedderStartFailed(EmbeddingError):
    """The embedding process could not be started, or was silent for too long."""

    reason: str
    sentence: ClassVar[str] = "embedding process did not start: {reason}"


@dataclass(eq=False)
class EmbedderLost(EmbeddingError):
    """The embedding process died, hung or broke the protocol; what it had in hand is lost."""

    reason: str
    sentence: ClassVar[str] = "embedding process lost: {reason}"


@dataclass(eq=False)
class EmbeddingUnavailable(EmbeddingError):
    """No vectors now: the process is starting, was lost, or has too much to do. A later try may
    succeed."""

    reason: str
    retry_after_s: float = 1.0
    sentence: ClassVar[str] = "embedding unavailable: {reason}"


class StoreError(AntiphonError):
    """The database, not the request, is the reason."""


@dataclass(eq=False)
class StoreUnavailable(StoreError):
    """No answer: down, restarting, overloaded or slow. A later try may succeed."""

    reason: str
    retry_after_s: float = 1.0
    refused: bool = False
    """Certainly nothing was begun; without, something may have been written."""
    sentence: ClassVar[str] = "store unavailable: {reason}"


@dataclass(eq=False)
class StoreFailed(StoreError):
    """It answered with a refusal that a retry alone won't change."""

    reason: str
    sentence: ClassVar[str] = "store failed: {reason}"


@dataclass(eq=False)
class StorageFull(StoreFailed):
    """The disk is full, or a quota is: reading and deleting still work."""


@dataclass(eq=False)
class SchemaMismatch(StoreError):
    """The schema in the database isn't one that this program can use."""

    found: str
    known: str
    sentence: ClassVar[str] = "the database has schema {found}, this program knows {known}"

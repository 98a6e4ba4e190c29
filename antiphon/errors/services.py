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

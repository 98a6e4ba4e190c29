"""The one tree of errors. Each class holds data; `str()` makes the sentence from it.

AntiphonError
├─ SettingsError              a setting is unknown, malformed or contradicts another one
├─ ModelError
│   ├─ ModelUnknown           the reference names nothing that can be found
│   ├─ ModelDamaged           a file's SHA-256 is not the recorded one
│   ├─ ModelFetchFailed       the package index did not deliver
│   ├─ ModelStoreFailed       the disk under the model store refused
│   └─ ModelUnsupported       found, but not something this engine can prepare
├─ RulesError                 a policy's rules are malformed: file, line and key
├─ AdminError                 a command about keys, users or the database can't be carried out
├─ OpsUnreachable             no operations listener answers at an address
├─ OpsRefused                 an operations listener doesn't do what it was asked
├─ ApiUnreachable             nobody answers at the API's address, or an answer broke off
├─ ApiRefused                 the API doesn't do what it was asked
├─ InjectedFault              a fault plan made this site fail; tests only
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
├─ JudgeError
│   ├─ JudgeStartFailed       a judge process could not be started
│   └─ JudgeLost              a judge process died, hung or was killed; its texts are not judged
├─ UnreadableFile             nothing can be made of an uploaded file
├─ ReaderError
│   ├─ ReaderLost             a process that reads a file died, hung or was killed
│   └─ ReaderUnavailable      no such process could be started, or not now
├─ EmbeddingError
│   ├─ EmbedderStartFailed    the embedding process could not be started
│   ├─ EmbedderLost           it died, hung or was killed; what it had in hand is lost
│   └─ EmbeddingUnavailable   no vectors now
├─ StoreError
│   ├─ StoreUnavailable       the database doesn't answer, or not in time
│   ├─ StoreFailed            the database refused: damaged file, a statement of ours
│   │   └─ StorageFull        no space left, for the database or for files
│   └─ SchemaMismatch         the database is newer than the program, or not ours
└─ RequestError               a reply to the client, not a crash of ours
    ├─ InvalidRequest         a field is wrong (400, with `param`)
    ├─ ContextLengthExceeded  the prompt does not fit the window
    ├─ ModelNotFound          no such model is served
    ├─ RecordNotFound         nothing of the caller's has that id (404)
    ├─ UnknownCursor          a list was to continue after an id that it doesn't have
    ├─ ConversationLocked     a turn runs in that conversation
    ├─ ResponseInProgress     what ends first must end before this
    ├─ IdempotencyMismatch    the key was used for another request (422)
    ├─ Unauthenticated        no key, or not a good one (401)
    ├─ NotPermitted           a good key without that scope (403)
    ├─ PayloadTooLarge        the body is over the limit
    ├─ RateLimited            the caller's own limit is used up (429)
    ├─ KeySuspended           a good key whose owner is not served for now (403)
    ├─ AddressSuspended       an address from which nobody is served for now (403)
    ├─ Overloaded             the first token would come too late on every pool (503)
    ├─ QueueFull              over the bound on waiting work (503 with Retry-After)
    ├─ QueueExpired           waited longer than the queue deadline
    ├─ ModerationUnavailable  nobody could judge a text, and that was all that was asked
    ├─ EngineUnavailable      no engine is ready and none became so in time
    ├─ PromptUnavailable      the settings name a system prompt that can't be used
    ├─ Draining               the server is stopping
    └─ TurnInterrupted        the server ended an answer that had begun
"""

from antiphon.errors.base import (
    AdminError,
    AntiphonError,
    ApiRefused,
    ApiUnreachable,
    InjectedFault,
    ModelDamaged,
    ModelError,
    ModelFetchFailed,
    ModelStoreFailed,
    ModelUnknown,
    ModelUnsupported,
    OpsRefused,
    OpsUnreachable,
    RulesError,
    SettingsError,
)
from antiphon.errors.requests import (
    AddressSuspended,
    ContextLengthExceeded,
    ConversationLocked,
    Draining,
    EngineUnavailable,
    IdempotencyMismatch,
    InvalidRequest,
    KeySuspended,
    ModelNotFound,
    ModerationUnavailable,
    NotPermitted,
    Overloaded,
    PayloadTooLarge,
    PromptUnavailable,
    QueueExpired,
    QueueFull,
    RateLimited,
    RecordNotFound,
    RequestError,
    ResponseInProgress,
    TurnInterrupted,
    Unauthenticated,
    UnknownCursor,
)
from antiphon.errors.services import (
    EmbedderLost,
    EmbedderStartFailed,
    EmbeddingError,
    EmbeddingUnavailable,
    EngineError,
    GenerationFailed,
    HostLost,
    HostProtocolError,
    HostStartFailed,
    JudgeError,
    JudgeLost,
    JudgeStartFailed,
    ReaderError,
    ReaderLost,
    ReaderUnavailable,
    SchemaMismatch,
    StorageFull,
    StoreError,
    StoreFailed,
    StoreUnavailable,
    UnreadableFile,
)
from antiphon.errors.supervision import (
    ActorCrashed,
    ActorError,
    ActorStopped,
    AlreadyPresent,
    AskTimeout,
    CallCycle,
    CommandRefused,
    IntensityExceeded,
    MailboxFull,
    MaxChildren,
    NoActor,
    SpecError,
    StartFailed,
    SupervisionError,
    WouldDeadlock,
)

__all__ = [
    "ActorCrashed",
    "ActorError",
    "ActorStopped",
    "AddressSuspended",
    "AdminError",
    "AlreadyPresent",
    "AntiphonError",
    "ApiRefused",
    "ApiUnreachable",
    "AskTimeout",
    "CallCycle",
    "CommandRefused",
    "ContextLengthExceeded",
    "ConversationLocked",
    "Draining",
    "EmbedderLost",
    "EmbedderStartFailed",
    "EmbeddingError",
    "EmbeddingUnavailable",
    "EngineError",
    "EngineUnavailable",
    "GenerationFailed",
    "HostLost",
    "HostProtocolError",
    "HostStartFailed",
    "IdempotencyMismatch",
    "InjectedFault",
    "IntensityExceeded",
    "InvalidRequest",
    "JudgeError",
    "JudgeLost",
    "JudgeStartFailed",
    "KeySuspended",
    "MailboxFull",
    "MaxChildren",
    "ModelDamaged",
    "ModelError",
    "ModelFetchFailed",
    "ModelNotFound",
    "ModelStoreFailed",
    "ModelUnknown",
    "ModelUnsupported",
    "ModerationUnavailable",
    "NoActor",
    "NotPermitted",
    "OpsRefused",
    "OpsUnreachable",
    "Overloaded",
    "PayloadTooLarge",
    "PromptUnavailable",
    "QueueExpired",
    "QueueFull",
    "RateLimited",
    "ReaderError",
    "ReaderLost",
    "ReaderUnavailable",
    "RecordNotFound",
    "RequestError",
    "ResponseInProgress",
    "RulesError",
    "SchemaMismatch",
    "SettingsError",
    "SpecError",
    "StartFailed",
    "StorageFull",
    "StoreError",
    "StoreFailed",
    "StoreUnavailable",
    "SupervisionError",
    "TurnInterrupted",
    "Unauthenticated",
    "UnknownCursor",
    "UnreadableFile",
    "WouldDeadlock",
]

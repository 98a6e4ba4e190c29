"""What the core needs from the leaves, said at the user's side. Implementations are structural:
nobody inherits."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from antiphon.events import CancelCause, Capabilities, HostCommand, HostFrame, Message, Turn
from antiphon.ids import FileId, ModelName, ResponseId, UserId
from antiphon.narration import Watcher
from antiphon.records import Claim, Item, Principal, Response
from antiphon.sources import FileSearch
from antiphon.tools import Tool, ToolFormat
from antiphon.turn_events import RateLimit, TurnEvent, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """A model this server serves, as `/v1/models` shows it. `created` is a Unix time in seconds."""

    name: ModelName
    created: int
    owned_by: str
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingDefaults:
    """What a client's silence means, from the model's own card or generation config."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAnswer:
    """A request for an answer that is kept, checked as far as that needs no store.

    `turn.messages` is what comes before the context of its conversation, such as instructions;
    `input` comes after it. An answer that isn't `stored` leaves no trace. `prompt` is the
    operator's, and comes before everything: `turn.unjudged` counts it, `turn.prompt_version` names
    it.
    """

    response: Response
    input: tuple[Item, ...]
    turn: Turn
    prompt: Message | None = None
    search: FileSearch | None = None
    files: Mapping[FileId, str] = field(default_factory=dict)
    """That it brings along beside those that items of its input name, each with its name."""
    stored: bool = True
    claim: Claim | None = None
    retry_fingerprint: str | None = None
    is_retry: bool = False


class EngineLink(Protocol):
    """One running engine host, as its driver sees it."""

    @property
    def pid(self) -> int: ...

    async def send(self, command: HostCommand) -> None:
        """Raises HostLost when the host is gone."""

    async def receive(self) -> HostFrame:
        """The next frame. Raises HostLost at the end of the stream, HostProtocolError on a
        malformed frame."""

    async def aclose(self, *, grace_s: float) -> None:
        """Ask the host to end, then kill its process group after the grace. Also when cancelled:
        the wait is shielded and bounded. Raises nothing else; idempotent."""

    def kill(self) -> None:
        """SIGKILL the host's process group now. Idempotent."""


class EngineLauncher(Protocol):
    """Starts engine hosts of one configured kind."""

    async def launch(self) -> EngineLink:
        """Start a host process; it reports Ready as its first frame. Raises HostStartFailed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStatistics:
    """One replica of an engine that is elsewhere, at one moment. Counters are totals.

    `state` is starting (it has not answered yet), up, down (out of reach, or says that it is not
    well) or ejected (its circuit is open). `last_error` quotes no client.
    """

    name: str
    state: str
    in_flight: int
    started: int
    """Attempts that were sent to it."""
    failed: int
    moved: int
    """Attempts that it got because another replica was the conversation's own."""
    circuit: str
    last_error: str | None
    last_error_age_s: float | None
    engine: str | None
    """What it says it is, where it says so."""
    model: ModelName | None = None
    """Of the pool that it belongs to."""


class ChatTokenizer(Protocol):
    """The model's own chat template and vocabulary."""

    @property
    def longest_token(self) -> int:
        """The most characters that one token can stand for."""

    @property
    def tool_format(self) -> ToolFormat | None:
        """How its template has calls written; None where it knows nothing of tools, and must be
        shown neither tools nor calls nor their results."""

    def count_text(self, text: str) -> int:
        """Tokens of a text by itself. Called from any thread. Raises InvalidRequest for what is
        none."""

    def encode_chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[int]:
        """Token ids of the rendered prompt, ready for the assistant's turn. Text that spells a
        special token is encoded as plain text. Called from any thread. Raises InvalidRequest when
        the template refuses the messages."""


class TurnStream(Protocol):
    """The reading end of one turn."""

    async def next_event(self) -> TurnEvent:
        """The next event; after TurnEnded or TurnFailed there is none and calling again is a
        bug. Cancelling the call loses no event."""

    def cancel(self, cause: CancelCause) -> None:
        """Give everything back; never blocks, idempotent, legal in every state."""


class Chat(Protocol):
    """What the HTTP room needs of the rest of the server."""

    def models(self, plan: str | None = None) -> tuple[ModelCard, ...]:
        """All that a caller of this plan may ask for; aliases are models, too."""

    def capabilities(self, model: ModelName) -> Capabilities | None:
        """What the model's engine can do, or one of those behind an alias; None while no host of it
        has been ready yet. Raises ModelNotFound."""

    def sees(self, model: ModelName) -> bool | None:
        """Whether the model, or one of those behind an alias, can be shown images; None while
        nobody knows. Raises ModelNotFound."""

    def sampling_defaults(self, model: ModelName) -> SamplingDefaults:
        """Raises ModelNotFound."""

    async def count_tokens(self, turn: Turn) -> int:
        """How many tokens the model would be shown for the turn, up to where it speaks. Raises
        ModelNotFound, InvalidRequest when the model's template refuses the messages,
        ContextLengthExceeded where they are too long to be worth counting."""

    async def open_turn(self, turn: Turn) -> TurnStream:
        """Start a turn. Raises RequestError when it is refused at once; later refusals arrive as
        TurnFailed,
        before any Delta."""


class Charge(Protocol):
    """What one turn holds of its caller's limits. Of `settle` and `release` the first call counts;
    both are idempotent and raise nothing: what can't be written now is written later."""

    @property
    def limits(self) -> tuple[RateLimit, ...]:
        """Where the caller stands with this turn counted."""

    async def settle(self, usage: Usage) -> None:
        """The turn cost this much, which is what the client is told. To be called before it is
        told, so that a crash in between can't lose what somebody has seen."""

    async def release(self) -> None:
        """The turn cost nothing: all of it is given back."""


class Meter(Protocol):
    """Counts what callers use, before any work is done for them."""

    async def reserve(self, turn: Turn, *, prompt_tokens: int, max_tokens: int) -> Charge:
        """Hold the prompt and the longest answers of the turn, of which `max_tokens` bounds one;
        `turn.model` is the one that answers. For the local user, whom no plan limits, it is free
        and touches no database.

        Raises RateLimited, KeySuspended, StoreUnavailable.
        """


class Responses(Protocol):
    """Answers that are kept: made, watched, cancelled."""

    async def create(self, new: NewAnswer) -> Watcher:
        """Accept and start; or find the one that was accepted before for the same claim.

        Raises RequestError, StoreUnavailable.
        """

    async def watch(self, user: UserId, id: ResponseId) -> Watcher:
        """Read a response from its first event, whether it runs here, elsewhere, or has ended.

        Raises RecordNotFound, StoreUnavailable.
        """

    async def cancel(self, user: UserId, id: ResponseId) -> Response:
        """End it wherever it runs, and return it as it ended; one that has ended is left alone.

        Raises RecordNotFound, StoreUnavailable.
        """


class Accounts(Protocol):
    """Who may use the API."""

    async def authenticate(self, secret: str | None) -> Principal:
        """Whose key this is; None stands for no key. Raises Unauthenticated, KeySuspended,
        StoreUnavailable."""

    def remembers(self, secret: str) -> bool:
        """Whether it was a key a moment ago, as far as that is known without a look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContent:
    """Bytes that are kept, by their SHA-256 in hexadecimal."""

    sha256: str
    size: int


class ContentDraft(Protocol):
    """Bytes on their way in. Every method raises StorageFull and StoreFailed."""

    async def write(self, data: bytes) -> None: ...

    async def commit(self) -> StoredContent:
        """Keep what was written, durably. The same bytes are kept once."""

    async def confirm(self) -> None:
        """To be called once the record that names the content is written: a removal that ran
        meanwhile, perhaps on another server, is made good."""

    def close(self) -> None:
        """Give up what isn't committed. Idempotent, raises nothing."""


class ContentReader(Protocol):
    """One reading of one content, which goes on when the content is removed meanwhile."""

    @property
    def size(self) -> int: ...

    async def read(self) -> bytes:
        """The next bytes, empty at the end. Raises StoreFailed."""

    def close(self) -> None:
        """Idempotent, raises nothing."""


class Contents(Protocol):
    """The contents of files, apart from the database: a folder, or an object store.

    The order of writes: content first, then the record that names it, then `confirm`; the record
    is deleted first, then the content. So a record always has its content, and a content without
    a record is swept.
    """

    async def prepare(self) -> int:
        """Be ready for use, and clear what servers that died left on the way in or out; how many
        of them. Raises StorageFull, StoreFailed."""

    async def draft(self) -> ContentDraft: ...

    async def open(self, sha256: str) -> ContentReader | None: ...

    def path(self, sha256: str) -> Path:
        """Where it lies as a file of this machine, if it is there: for processes that read it
        themselves."""

    async def remove(self, sha256: str, is_unused: Callable[[], Awaitable[bool]]) -> bool:
        """Remove unless a record names it; `is_unused` asks the database, before and after.
        False when it stays. Raises StoreFailed, and what `is_unused` raises."""

    async def older_than(self, before_ms: int) -> tuple[str, ...]:
        """What was last committed before that time."""


class AbuseSignals(Protocol):
    """What rooms tell the abuse detection of. Nothing here blocks, waits or raises."""

    def prompt_blocked(
        self,
        user: UserId,
        *,
        address: str | None = None,
        rule: str = "",
        category: str | None = None,
    ) -> None:
        """A rule of the policy has found something in a prompt of this user's and blocked it: too
        many of them, and what the user sends is refused for a while.

        To be called once for a request, whatever number of rules match; with `rule` and `category`
        those of the finding that blocked it. Not for a rule that fails closed because it could not
        be run, nor for a shadow: neither is the user's doing. `address` is `Turn.address`; None
        stands for a prompt that came by no request of its own, and counts for the user alone.
        """

"""What the store keeps, as values: people, keys, conversations, items, responses, files.

Times are Unix milliseconds of the wall clock; order never depends on them alone. A record never
changes: an update makes a new one.
"""

import enum
from dataclasses import dataclass, field
from typing import Any

from antiphon.context_records import Memory, Summary
from antiphon.ids import (
    ConversationId,
    FileId,
    ItemId,
    KeyId,
    ModelName,
    NodeId,
    RequestId,
    ResponseId,
    TenantId,
    UserId,
)

JsonObject = dict[str, Any]
"""A JSON object as the wire has it."""


class Scope(enum.StrEnum):
    """What a key may do."""

    USER = "user"
    """The API, with the user's own data."""
    OPERATOR = "operator"
    """Also other people's accounts: export and erase them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person or a program with data of its own. Tenants share nothing; nor do users."""

    id: UserId
    tenant: TenantId
    name: str
    created_ms: int
    training: bool = True
    """Whether their conversations may be part of a training export."""
    plan: str | None = None
    """A name in the settings; None is the default one."""
    suspended: str | None = None
    """Why they are not served for now, in the operator's words, or the server's own."""
    suspended_until_ms: int | None = None
    """When the server's own suspension ends by itself; None for the operator's."""

    def suspension(self, now_ms: int) -> str | None:
        """Why they are not served at that time."""
        until_ms = self.suspended_until_ms
        return self.suspended if until_ms is None or now_ms < until_ms else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it may be shown: its secret is known to its owner alone, its hash to the store."""

    id: KeyId
    user: UserId
    prefix: str
    """The first characters of the secret, enough to recognise it."""
    name: str
    scopes: frozenset[Scope]
    created_ms: int
    expires_ms: int | None = None
    revoked_ms: int | None = None
    last_used_ms: int | None = None
    suspended: str | None = None
    """Why it is not served for now, in the operator's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who makes a request."""

    user: UserId
    tenant: TenantId
    scopes: frozenset[Scope]
    key: KeyId | None = None
    """None for a local caller while there are no keys."""
    plan: str | None = None
    """The one that counts: the user's own, or the default one; None is no limit at all."""

    @property
    def salt(self) -> TenantId | None:
        """Whom their prompts may share an engine's cache with; None for a local caller, who is
        alone."""
        return None if self.key is None else self.tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Its items are records of their own."""

    id: ConversationId
    user: UserId
    created_ms: int
    updated_ms: int
    title: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    archived_ms: int | None = None
    memory: bool | None = None
    """Whether what is known of the user is shown in it, and learned from it; None is as the
    settings say."""
    title_made: bool = False
    """Whether the title was made of what was said, and nobody wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWork:
    """A conversation in which turns have ended since background workers were last done with it."""

    conversation: Conversation
    mark: int
    """Grows with each turn that ends there."""
    attempts: int
    summary: Summary | None
    remembered: ItemId | None
    """The last item that was looked at for what is to be remembered; None is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One message, call or result. `body` is the API's object without `id` and `status`."""

    id: ItemId
    type: str
    body: JsonObject
    created_ms: int
    role: str | None = None
    status: str | None = "completed"
    tokens: int | None = None
    """How many it has in its model's vocabulary, where that was counted."""


class ResponseStatus(enum.StrEnum):
    """Where a response stands; the last four are final."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        return self not in {ResponseStatus.QUEUED, ResponseStatus.IN_PROGRESS}


class ResponseKind(enum.StrEnum):
    """Which API made it, and shows it."""

    RESPONSE = "response"
    CHAT = "chat.completion"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """What a response cost, in tokens."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseError:
    """Why a response failed, in the API's words."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer and the request for it, in progress or ended."""

    id: ResponseId
    user: UserId
    kind: ResponseKind
    model: ModelName
    status: ResponseStatus
    created_ms: int
    request: JsonObject
    """The parameters that the API shows again: instructions, temperature, tools, …"""
    metadata: dict[str, str] = field(default_factory=dict)
    conversation: ConversationId | None = None
    previous: ResponseId | None = None
    background: bool = False
    streamed: bool = False
    completed_ms: int | None = None
    error: ResponseError | None = None
    incomplete_reason: str | None = None
    """`max_output_tokens` or `content_filter`, when incomplete."""
    usage: TokenUsage | None = None
    output: tuple[Item, ...] = ()
    feedback: "Feedback | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBatch:
    """Some events of a response as they were logged, `first` to `last` in its sequence. `body` is
    opaque to the store."""

    first: int
    last: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An idempotency key and what it was used with. Keys are a user's own."""

    key: str
    fingerprint: str
    """SHA-256 of the request it came with, in hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """Everything that is written before a turn may run, all of it or nothing."""

    response: Response
    input: tuple[Item, ...]
    owner: NodeId
    lease_ms: int
    """Until when the owner holds response and conversation, unless it renews."""
    reserved_tokens: int
    claim: Claim | None = None
    request: RequestId | None = None
    retry_fingerprint: str | None = None
    """SHA-256 of the request's body. With `is_retry`, a turn of the same user and fingerprint
    accepted within the last minutes, which runs or has just ended, is this turn, sent again by an
    SDK. One that was cancelled since its client had gone is replaced by this one."""
    is_retry: bool = False
    whole: bool = False
    """Whether it sees all items of its conversation, and no summary."""
    memory_default: bool = False
    """Whether a conversation that doesn't say it has a memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What a turn sees. `context` is what came before its input, oldest first; where there is a
    summary, what came after that. A chain of responses has neither summary nor memories."""

    context: tuple[Item, ...]
    summary: Summary | None = None
    opening: int = 0
    """How many of the first of `context` the summary covers, too: what a conversation began with
    to say how it is to go."""
    memories: tuple[Memory, ...] = ()
    """Of its user, oldest first, for a conversation that has a memory; the latest 200."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """The same turn had been accepted before, as this response."""

    response: ResponseId


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a request was like for the machine: no text. Durations are seconds from its arrival."""

    request: RequestId
    prompt_version: str | None = None
    queued_s: float | None = None
    first_token_s: float | None = None
    total_s: float | None = None
    finish: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalState:
    """How a response ended: status, output, usage and trace are written together."""

    response: ResponseId
    owner: NodeId
    status: ResponseStatus
    completed_ms: int
    output: tuple[Item, ...]
    usage: TokenUsage
    error: ResponseError | None = None
    incomplete_reason: str | None = None
    model: ModelName | None = None
    """The one that answered, which may not be the one that was asked for; None leaves that."""
    request: JsonObject | None = None
    """What the response shows of its request, where that is not what was accepted."""
    trace: Trace | None = None
    events: EventBatch | None = None
    """The last events, terminal one included, in the same transaction."""
    counts: dict[ItemId, int] = field(default_factory=dict)
    """How many tokens items have where it ran, for those of which that wasn't known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A response whose owner is gone: what is needed to end it."""

    response: Response
    events: tuple[EventBatch, ...]


class FileStatus(enum.StrEnum):
    """Where a file stands."""

    UPLOADED = "uploaded"
    PROCESSED = "processed"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """An uploaded file. Its content lies elsewhere, under its hash."""

    id: FileId
    user: UserId
    filename: str
    purpose: str
    media_type: str
    bytes: int
    sha256: str
    created_ms: int
    status: FileStatus = FileStatus.PROCESSED
    expires_ms: int | None = None


class Rating(enum.StrEnum):
    """Thumbs."""

    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What a person thought of a response; the last one counts."""

    response: ResponseId
    rating: Rating
    reason: str | None
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEntry:
    """The bill of one turn: reserved at first, settled once, whatever happens. `response` is its id
    on the wire, whether it is stored or not."""

    response: ResponseId
    user: UserId
    model: ModelName
    reserved_tokens: int
    created_ms: int
    usage: TokenUsage | None = None
    settled_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list: at most `limit` records after the one with id `after`."""

    limit: int = 20
    after: str | None = None
    newest_first: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a deletion removed: rows by table, and files whose content nobody uses any more."""

    id: str
    subject: str
    """The id of what was deleted."""
    deleted_ms: int
    rows: dict[str, int]
    contents: tuple[str, ...] = ()
    """SHA-256 of file contents to be removed from the content folder."""
    is_unfinished: bool = False
    """Whether some of it, which nothing shows any more, is left to be removed."""

"""What the core needs from a store, said at the user's side: a port, as those in `ports`.

Each method is one unit of work: one transaction, done entirely or not at all. Ids of other users
are as unknown as ids that never were.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from antiphon.context_storage import ContextStore
from antiphon.document_storage import DocumentStore
from antiphon.finding import FoundPage
from antiphon.ids import (
    ConversationId,
    FileId,
    ItemId,
    KeyId,
    ModelName,
    NodeId,
    ResponseId,
    UserId,
)
from antiphon.quotas import Bill, Reservation, Reserved, UsageSum, UsedUp
from antiphon.records import (
    Accepted,
    ApiKey,
    Claim,
    Conversation,
    EventBatch,
    Feedback,
    File,
    FinalState,
    Item,
    JsonObject,
    NewTurn,
    Orphan,
    Page,
    Receipt,
    Repeated,
    Response,
    ResponseKind,
    TokenUsage,
    UsageEntry,
    User,
)
from antiphon.verdicts import PolicyEvent

R = TypeVar("R")


class Store(ContextStore, DocumentStore, Protocol):
    """Every method may raise StoreUnavailable (the database doesn't answer; nothing was written, or
    its outcome is unknown) and StoreFailed (it refused: disk full, damaged)."""

    # ── people and keys ──────────────────────────────────────────────────────────────────────────

    async def add_user(self, user: User) -> None:
        """Nothing happens when the id exists."""

    async def user(self, user: UserId) -> User | None: ...

    async def users(self) -> tuple[User, ...]: ...

    async def set_training(self, user: UserId, allowed: bool) -> User | None:
        """Whether this user's conversations may be part of a training export."""

    async def set_plan(self, user: UserId, plan: str | None) -> User | None:
        """None is the default plan."""

    async def suspend_user(self, user: UserId, reason: str | None) -> User | None:
        """Until it is done again without a reason."""

    async def suspend_until(self, user: UserId, reason: str, until_ms: int) -> User | None:
        """A suspension by the server, which ends by itself. None, and nothing is written, for a
        user who is gone, or whom an operator has suspended."""

    async def lift_suspension(self, user: UserId) -> User | None:
        """End the server's own suspension; an operator's stays, and None is returned."""

    async def suspended_users(self, now_ms: int, *, limit: int = 1000) -> tuple[User, ...]:
        """Those whom the server itself has suspended, and for whom that isn't over; the first to
        be served again first."""

    async def suspend_key(self, key: KeyId, reason: str | None) -> ApiKey | None:
        """Until it is done again without a reason."""

    async def add_key(self, key: ApiKey, secret_hash: str) -> None: ...

    async def keys(self, user: UserId | None = None) -> tuple[ApiKey, ...]:
        """Oldest first, revoked and expired ones too."""

    async def find_key(self, secret_hash: str) -> tuple[ApiKey, User] | None:
        """As it stands: whether it is still good is the caller's judgement."""

    async def has_keys(self) -> bool:
        """Whether any key was ever made, revoked or not."""

    async def revoke_key(self, key: KeyId, now_ms: int) -> ApiKey | None:
        """Also by its prefix. Revoking again changes nothing."""

    async def touch_keys(self, used: dict[KeyId, int]) -> None:
        """Note when keys were last used, in milliseconds."""

    async def erase_user(self, user: UserId, now_ms: int) -> Receipt | None:
        """Remove the user with everything that is theirs, keys included; usage counts stay, without
        the name."""

    # ── conversations ────────────────────────────────────────────────────────────────────────────

    async def create_conversation(
        self, conversation: Conversation, items: Sequence[Item] = ()
    ) -> None: ...

    async def conversation(self, user: UserId, id: ConversationId) -> Conversation | None: ...

    async def conversations(
        self, user: UserId, page: Page, *, search: str | None = None, archived: bool = False
    ) -> tuple[Conversation, ...]:
        """By their last change; `search` is part of a title, in any case. Raises UnknownCursor."""

    async def find_said(
        self, user: UserId, query: str, *, after: ConversationId | None = None, limit: int = 20
    ) -> FoundPage:
        """Conversations, archived ones too, that have all the words of the query in their title or
        in one message, in any case; nothing where there are none. What the policy has blocked isn't
        looked at. It takes a bounded time, and says where it has stopped. Raises UnknownCursor."""

    async def update_conversation(self, conversation: Conversation) -> Conversation | None:
        """Replace title, metadata, archived_ms, memory and updated_ms."""

    async def delete_conversation(
        self, user: UserId, id: ConversationId, now_ms: int
    ) -> Receipt | None:
        """With items, responses, events, feedback, and files that only it used. Raises
        ConversationLocked while a turn runs in it."""

    async def add_items(
        self, user: UserId, conversation: ConversationId, items: Sequence[Item], now_ms: int
    ) -> bool:
        """Append; False when there is no such conversation. Raises ConversationLocked."""

    async def items(
        self, user: UserId, conversation: ConversationId, page: Page
    ) -> tuple[Item, ...] | None:
        """Raises UnknownCursor."""

    async def item(self, user: UserId, conversation: ConversationId, id: ItemId) -> Item | None: ...

    async def find_items(self, user: UserId, ids: Sequence[ItemId]) -> tuple[Item, ...]:
        """Those of the user's items that have these ids, in conversations and outside."""

    async def delete_item(
        self, user: UserId, conversation: ConversationId, id: ItemId, now_ms: int
    ) -> Receipt | None:
        """Raises ConversationLocked."""

    # ── turns ────────────────────────────────────────────────────────────────────────────────────

    async def accept_turn(self, turn: NewTurn) -> Accepted | Repeated:
        """Claim, lock, write input, response and reservation, and read what came before. A turn
        that an SDK sends again takes the place of its first try, where that was cancelled.

        Raises IdempotencyMismatch, ConversationLocked, RecordNotFound (the conversation, or the
        previous response).
        """

    async def context(
        self,
        user: UserId,
        *,
        conversation: ConversationId | None = None,
        previous: ResponseId | None = None,
        whole: bool = False,
        memory_default: bool = False,
    ) -> Accepted:
        """What a turn there would see. Raises RecordNotFound."""

    async def withdraw_turn(self, id: ResponseId, owner: NodeId) -> bool:
        """Undo accept_turn, claim and all: the turn was refused before any work. False when the
        owner has lost it."""

    async def start_response(
        self, id: ResponseId, owner: NodeId, model: ModelName | None = None
    ) -> bool:
        """Queued no more. False when the owner has lost it."""

    async def append_events(
        self, owner: NodeId, batches: Sequence[tuple[ResponseId, EventBatch]]
    ) -> frozenset[ResponseId]:
        """Log events of many responses at once. Those whose owner has lost them are returned and
        not written; a batch that is already there is left as it is."""

    async def finish_response(self, final: FinalState) -> bool:
        """Write the end: output items, also into the conversation, whose lock is released. False
        when the owner has lost it; then nothing is written. Doing it again is True."""

    async def renew_leases(self, owner: NodeId, until_ms: int) -> int:
        """Of all that the owner holds; how many."""

    async def request_cancel(self, user: UserId, id: ResponseId) -> Response | None:
        """Ask the owner of a response, perhaps another server, to cancel it; one that has ended
        is left alone."""

    async def cancel_requests(self, owner: NodeId) -> frozenset[ResponseId]:
        """Which of the owner's unfinished responses it was asked to cancel."""

    async def orphans(
        self, now_ms: int, *, owner: NodeId, alone: bool = False, limit: int = 100
    ) -> tuple[Orphan, ...]:
        """Take over responses whose lease has passed, for `owner` to finish. With `alone`, nobody
        else is at work, and the lease of anybody else means nothing, wherever a clock stood."""

    # ── responses ────────────────────────────────────────────────────────────────────────────────

    async def response(self, user: UserId, id: ResponseId) -> Response | None: ...

    async def responses(
        self,
        user: UserId,
        page: Page,
        *,
        kind: ResponseKind,
        conversation: ConversationId | None = None,
        model: ModelName | None = None,
        metadata: dict[str, str] | None = None,
    ) -> tuple[Response, ...]:
        """By creation. Raises UnknownCursor."""

    async def events(
        self, user: UserId, id: ResponseId, *, after: int = -1
    ) -> tuple[EventBatch, ...]:
        """Batches with anything later than `after`, in order."""

    async def input_items(
        self, user: UserId, id: ResponseId, page: Page
    ) -> tuple[Item, ...] | None:
        """Raises UnknownCursor."""

    async def update_response_metadata(
        self, user: UserId, id: ResponseId, metadata: dict[str, str]
    ) -> Response | None: ...

    async def delete_response(self, user: UserId, id: ResponseId, now_ms: int) -> Receipt | None:
        """Its items leave its conversation too. Raises ResponseInProgress."""

    async def set_feedback(self, user: UserId, feedback: Feedback) -> bool: ...

    async def claimed(self, user: UserId, claim: Claim) -> ResponseId | None:
        """The response that this claim was accepted as. Raises IdempotencyMismatch."""

    # ── files ────────────────────────────────────────────────────────────────────────────────────

    async def add_file(self, file: File) -> None: ...

    async def file(self, user: UserId, id: FileId) -> File | None: ...

    async def files(
        self, user: UserId, page: Page, *, purpose: str | None = None
    ) -> tuple[File, ...]:
        """By creation. Raises UnknownCursor."""

    async def delete_file(self, user: UserId, id: FileId, now_ms: int) -> Receipt | None: ...

    async def unused_contents(self, contents: Sequence[str]) -> tuple[str, ...]:
        """Which of these hashes no file has."""

    # ── what is used ─────────────────────────────────────────────────────────────────────────────

    async def reserve(self, reservation: Reservation) -> Reserved | UsedUp:
        """Count it, in every limit there is, and open its bill; or write nothing, and say which
        limit has no room. Of many that ask at once, on whichever servers, only as many are counted
        as there is room for. Raises RecordNotFound for a user who is gone."""

    async def settle(self, id: ResponseId, usage: TokenUsage, now_ms: int) -> bool:
        """Close a bill, and give back what was reserved and not used. Once: False from then on.
        One that has lapsed meanwhile is set right: what a client was told counts."""

    async def release(self, id: ResponseId) -> bool:
        """Undo `reserve`: the turn was refused before any work. False when there is nothing to be
        undone."""

    async def uncount(self, id: ResponseId, reserved_ms: int) -> bool:
        """As `release`, for the bill of a stored response, which is left open."""

    async def renew_reservations(self, ids: Sequence[ResponseId], until_ms: int) -> int:
        """How many of them are still open and held on."""

    async def lapse_reservations(
        self, now_ms: int, *, owner: NodeId, alone: bool = False, limit: int = 100
    ) -> int:
        """Close the bills whose lease has passed, at nothing; how many. With `alone`, nobody but
        `owner` is at work, and the lease of anybody else means nothing, wherever a clock stood."""

    async def usage_sums(
        self, user: UserId, *, since_ms: int, until_ms: int
    ) -> tuple[UsageSum, ...]:
        """By day and model, oldest first."""

    async def bills(
        self, *, after: tuple[int, str], until_ms: int, limit: int = 500
    ) -> tuple[Bill, ...]:
        """Everybody's that were settled before `until_ms`, by the time of that and the id, from
        the one that follows `after`."""

    # ── policy events ────────────────────────────────────────────────────────────────────────────

    async def add_policy_events(self, events: Sequence[PolicyEvent]) -> None:
        """What belongs to a response or a user that is gone is written without name and text."""

    async def policy_events(
        self, *, rule: str | None = None, user: str | None = None, limit: int = 100
    ) -> tuple[PolicyEvent, ...]:
        """For operators; the latest first."""

    # ── the whole ────────────────────────────────────────────────────────────────────────────────

    async def usage(self, user: UserId, *, since_ms: int = 0) -> tuple[UsageEntry, ...]: ...

    async def export_user(self, user: UserId) -> JsonObject | None:
        """Everything that is stored about the user, as plain JSON."""

    async def expire(self, now_ms: int, *, limit: int = 500) -> Receipt:
        """Remove what has outlived its time: old claims, expired files, responses and events past
        their retention, suspensions that have ended; what deletions have left. Some at a
        time."""


READS = frozenset(
    {
        *("user", "users", "keys", "find_key", "has_keys", "suspended_users"),
        *("conversation", "conversations", "find_said", "items", "item", "find_items", "context"),
        *("response", "responses", "events", "input_items", "claimed"),
        *("file", "files", "unused_contents", "cancel_requests", "usage", "export_user"),
        *("usage_sums", "bills", "policy_events"),
        *("summary", "memories", "memory", "prompt_versions", "prompt_activations"),
        *("vector_store", "vector_stores", "vector_store_file", "vector_store_files"),
        *("file_batch", "documents", "document_text", "search_files", "search_text"),
        *("chunks", "file_chunks", "vectors"),
    }
)
"""The methods that change nothing."""

OpenStore = Callable[[], AbstractAsyncContextManager[Store]]
"""Opens the database, its schema brought up to date, and closes it again, on every path. Raises
StoreUnavailable (nobody answers), SchemaMismatch, StoreFailed (damaged, no permission)."""


class StoreAccess(Protocol):
    """The way to the store that never waits for ever, whoever is at the other end."""

    async def run(self, work: Callable[[Store], Awaitable[R]]) -> R:
        """One unit of work. Cancelling the call drops its answer, not the work.

        Raises what the work raises, and StoreUnavailable when the store is down, overloaded or
        slow.
        """

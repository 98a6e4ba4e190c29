"""The store: the contract's methods, each one unit of work on a database, whichever it is."""

from collections.abc import Sequence

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
from antiphon.persistence import (
    account,
    bills,
    context,
    conversations,
    deletion,
    expiry,
    files,
    leases,
    people,
    policy,
    quotas,
    responses,
    turns,
)
from antiphon.persistence.expiry import Retention
from antiphon.persistence.port import Database
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

_ERASED_AT_ONCE = 100
"""Conversations that one transaction of an erasure removes, so that other writers get their
turn."""


class SqlStore:
    """A `storage.Store`. It has the flavour of its database: Trio's, behind the bridge."""

    def __init__(self, database: Database, retention: Retention | None = None) -> None:
        self._database = database
        self._retention = Retention() if retention is None else retention

    @property
    def database(self) -> Database:
        """For those who look after the whole: migration, transfer, checks."""
        return self._database

    async def add_user(self, user: User) -> None:
        await self._database.write(lambda tx: people.add_user(tx, user))

    async def user(self, user: UserId) -> User | None:
        return await self._database.read(lambda tx: people.user(tx, user))

    async def users(self) -> tuple[User, ...]:
        return await self._database.read(people.users)

    async def set_training(self, user: UserId, allowed: bool) -> User | None:
        return await self._database.write(lambda tx: people.set_training(tx, user, allowed))

    async def set_plan(self, user: UserId, plan: str | None) -> User | None:
        return await self._database.write(lambda tx: people.set_plan(tx, user, plan))

    async def suspend_user(self, user: UserId, reason: str | None) -> User | None:
        return await self._database.write(lambda tx: people.suspend_user(tx, user, reason))

    async def suspend_until(self, user: UserId, reason: str, until_ms: int) -> User | None:
        return await self._database.write(
            lambda tx: people.suspend_until(tx, user, reason, until_ms)
        )

    async def lift_suspension(self, user: UserId) -> User | None:
        return await self._database.write(lambda tx: people.lift_suspension(tx, user))

    async def suspended_users(self, now_ms: int, *, limit: int = 1000) -> tuple[User, ...]:
        return await self._database.read(lambda tx: people.suspended_users(tx, now_ms, limit))

    async def suspend_key(self, key: KeyId, reason: str | None) -> ApiKey | None:
        return await self._database.write(lambda tx: people.suspend_key(tx, key, reason))

    async def add_key(self, key: ApiKey, secret_hash: str) -> None:
        await self._database.write(lambda tx: people.add_key(tx, key, secret_hash))

    async def keys(self, user: UserId | None = None) -> tuple[ApiKey, ...]:
        return await self._database.read(lambda tx: people.keys(tx, user))

    async def find_key(self, secret_hash: str) -> tuple[ApiKey, User] | None:
        return await self._database.read(lambda tx: people.find_key(tx, secret_hash))

    async def has_keys(self) -> bool:
        return await self._database.read(people.has_keys)

    async def revoke_key(self, key: KeyId, now_ms: int) -> ApiKey | None:
        return await self._database.write(lambda tx: people.revoke_key(tx, key, now_ms))

    async def touch_keys(self, used: dict[KeyId, int]) -> None:
        if used:
            await self._database.write(lambda tx: people.touch_keys(tx, used))

    async def erase_user(self, user: UserId, now_ms: int) -> Receipt | None:
        """In several transactions, keys first; one that was cut short goes on when asked again."""
        removed = deletion.Removed()
        while True:
            step = await self._database.write(
                lambda tx: deletion.some_of_user(tx, user, now_ms, _ERASED_AT_ONCE)
            )
            if step is None:
                return None
            removed.add(step)
            if not step.rows.total():
                break
        receipt = await self._database.write(
            lambda tx: deletion.rest_of_user(tx, user, now_ms, removed)
        )
        await self._database.tidy()
        return receipt

    async def create_conversation(
        self, conversation: Conversation, items: Sequence[Item] = ()
    ) -> None:
        await self._database.write(lambda tx: conversations.create(tx, conversation, items))

    async def conversation(self, user: UserId, id: ConversationId) -> Conversation | None:
        return await self._database.read(lambda tx: conversations.get(tx, user, id))

    async def conversations(
        self, user: UserId, page: Page, *, search: str | None = None, archived: bool = False
    ) -> tuple[Conversation, ...]:
        return await self._database.read(
            lambda tx: conversations.listed(tx, user, page, search, archived)
        )

    async def update_conversation(self, conversation: Conversation) -> Conversation | None:
        return await self._database.write(lambda tx: conversations.update(tx, conversation))

    async def delete_conversation(
        self, user: UserId, id: ConversationId, now_ms: int
    ) -> Receipt | None:
        receipt = await self._database.write(lambda tx: deletion.conversation(tx, user, id, now_ms))
        return await self._tidied(receipt)

    async def add_items(
        self, user: UserId, conversation: ConversationId, items: Sequence[Item], now_ms: int
    ) -> bool:
        return await self._database.write(
            lambda tx: conversations.add_items(tx, user, conversation, items, now_ms)
        )

    async def items(
        self, user: UserId, conversation: ConversationId, page: Page
    ) -> tuple[Item, ...] | None:
        return await self._database.read(
            lambda tx: conversations.items(tx, user, conversation, page)
        )

    async def item(self, user: UserId, conversation: ConversationId, id: ItemId) -> Item | None:
        return await self._database.read(lambda tx: conversations.item(tx, user, conversation, id))

    async def find_items(self, user: UserId, ids: Sequence[ItemId]) -> tuple[Item, ...]:
        return await self._database.read(lambda tx: conversations.find_items(tx, user, ids))

    async def delete_item(
        self, user: UserId, conversation: ConversationId, id: ItemId, now_ms: int
    ) -> Receipt | None:
        receipt = await self._database.write(
            lambda tx: deletion.item(tx, user, conversation, id, now_ms)
        )
        return await self._tidied(receipt)

    async def accept_turn(self, turn: NewTurn) -> Accepted | Repeated:
        return await self._database.write(lambda tx: turns.accept(tx, turn))

    async def context(
        self,
        user: UserId,
        *,
        conversation: ConversationId | None = None,
        previous: ResponseId | None = None,
    ) -> tuple[Item, ...]:
        return await self._database.read(
            lambda tx: context.before(tx, user, conversation, previous)
        )

    async def withdraw_turn(self, id: ResponseId, owner: NodeId) -> bool:
        return await self._database.write(lambda tx: deletion.withdraw(tx, id, owner))

    async def start_response(
        self, id: ResponseId, owner: NodeId, model: ModelName | None = None
    ) -> bool:
        return await self._database.write(lambda tx: turns.start(tx, id, owner, model))

    async def append_events(
        self, owner: NodeId, batches: Sequence[tuple[ResponseId, EventBatch]]
    ) -> frozenset[ResponseId]:
        return await self._database.write(lambda tx: turns.append_events(tx, owner, batches))

    async def finish_response(self, final: FinalState) -> bool:
        return await self._database.write(lambda tx: turns.finish(tx, final))

    async def renew_leases(self, owner: NodeId, until_ms: int) -> int:
        return await self._database.write(lambda tx: leases.renew(tx, owner, until_ms))

    async def request_cancel(self, user: UserId, id: ResponseId) -> Response | None:
        return await self._database.write(lambda tx: responses.request_cancel(tx, user, id))

    async def cancel_requests(self, owner: NodeId) -> frozenset[ResponseId]:
        return await self._database.read(lambda tx: responses.cancel_requests(tx, owner))

    async def orphans(
        self, now_ms: int, *, owner: NodeId, alone: bool = False, limit: int = 100
    ) -> tuple[Orphan, ...]:
        return await self._database.write(
            lambda tx: leases.orphans(tx, now_ms, owner, alone=alone, limit=limit)
        )

    async def response(self, user: UserId, id: ResponseId) -> Response | None:
        return await self._database.read(lambda tx: responses.get(tx, user, id))

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
        return await self._database.read(
            lambda tx: responses.listed(tx, user, page, kind, conversation, model, metadata)
        )

    async def events(
        self, user: UserId, id: ResponseId, *, after: int = -1
    ) -> tuple[EventBatch, ...]:
        return await self._database.read(lambda tx: responses.events(tx, user, id, after))

    async def input_items(
        self, user: UserId, id: ResponseId, page: Page
    ) -> tuple[Item, ...] | None:
        return await self._database.read(lambda tx: responses.input_items(tx, user, id, page))

    async def update_response_metadata(
        self, user: UserId, id: ResponseId, metadata: dict[str, str]
    ) -> Response | None:
        return await self._database.write(lambda tx: responses.set_metadata(tx, user, id, metadata))

    async def delete_response(self, user: UserId, id: ResponseId, now_ms: int) -> Receipt | None:
        receipt = await self._database.write(lambda tx: deletion.response(tx, user, id, now_ms))
        return await self._tidied(receipt)

    async def set_feedback(self, user: UserId, feedback: Feedback) -> bool:
        return await self._database.write(lambda tx: responses.set_feedback(tx, user, feedback))

    async def claimed(self, user: UserId, claim: Claim) -> ResponseId | None:
        return await self._database.read(lambda tx: turns.claim(tx, user, claim))

    async def add_file(self, file: File) -> None:
        await self._database.write(lambda tx: files.add(tx, file))

    async def file(self, user: UserId, id: FileId) -> File | None:
        return await self._database.read(lambda tx: files.get(tx, user, id))

    async def files(
        self, user: UserId, page: Page, *, purpose: str | None = None
    ) -> tuple[File, ...]:
        return await self._database.read(lambda tx: files.listed(tx, user, page, purpose))

    async def delete_file(self, user: UserId, id: FileId, now_ms: int) -> Receipt | None:
        receipt = await self._database.write(lambda tx: deletion.file(tx, user, id, now_ms))
        return await self._tidied(receipt)

    async def unused_contents(self, contents: Sequence[str]) -> tuple[str, ...]:
        return await self._database.read(lambda tx: files.unused(tx, contents))

    async def usage(self, user: UserId, *, since_ms: int = 0) -> tuple[UsageEntry, ...]:
        return await self._database.read(lambda tx: responses.usage(tx, user, since_ms))

    async def usage_sums(
        self, user: UserId, *, since_ms: int, until_ms: int
    ) -> tuple[UsageSum, ...]:
        return await self._database.read(lambda tx: bills.sums(tx, user, since_ms, until_ms))

    async def bills(
        self, *, after: tuple[int, str], until_ms: int, limit: int = 500
    ) -> tuple[Bill, ...]:
        return await self._database.read(lambda tx: bills.settled(tx, after, until_ms, limit))

    async def reserve(self, reservation: Reservation) -> Reserved | UsedUp:
        return await self._database.write(lambda tx: quotas.reserve(tx, reservation))

    async def settle(self, id: ResponseId, usage: TokenUsage, now_ms: int) -> bool:
        return await self._database.write(lambda tx: quotas.settle(tx, id, usage, now_ms))

    async def release(self, id: ResponseId) -> bool:
        return await self._database.write(lambda tx: quotas.release(tx, id))

    async def uncount(self, id: ResponseId, reserved_ms: int) -> bool:
        return await self._database.write(lambda tx: quotas.uncount(tx, id, reserved_ms))

    async def renew_reservations(self, ids: Sequence[ResponseId], until_ms: int) -> int:
        return await self._database.write(lambda tx: quotas.renew(tx, ids, until_ms))

    async def lapse_reservations(
        self, now_ms: int, *, owner: NodeId, alone: bool = False, limit: int = 100
    ) -> int:
        return await self._database.write(
            lambda tx: quotas.lapse(tx, now_ms, owner, alone=alone, limit=limit)
        )

    async def add_policy_events(self, events: Sequence[PolicyEvent]) -> None:
        await self._database.write(lambda tx: policy.add(tx, events))

    async def policy_events(
        self, *, rule: str | None = None, user: str | None = None, limit: int = 100
    ) -> tuple[PolicyEvent, ...]:
        return await self._database.read(lambda tx: policy.latest(tx, rule, user, limit))

    async def export_user(self, user: UserId) -> JsonObject | None:
        return await self._database.read(lambda tx: account.export(tx, user))

    async def expire(self, now_ms: int, *, limit: int = 500) -> Receipt:
        receipt = await self._database.write(
            lambda tx: expiry.expire(tx, self._retention, now_ms, limit)
        )
        await self._database.tidy(deleted=bool(receipt.rows))
        return receipt

    async def _tidied(self, receipt: Receipt | None) -> Receipt | None:
        if receipt is not None:
            await self._database.tidy()
        return receipt

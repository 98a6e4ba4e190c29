"""The store: the contract's methods, each one unit of work on a database, whichever it is."""

from collections.abc import Sequence
from dataclasses import replace

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
    said,
    turns,
)
from antiphon.persistence.document_store import SqlDocumentStore
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


class SqlStore(SqlDocumentStore):
    """A `storage.Store`. It has the flavour of its database: Trio's, behind the bridge."""

    def __init__(self, database: Database, retention: Retention | None = None) -> None:
        super().__init__(database)
        self._retention = Retention() if retention is None else retention

    @property
    def database(self) -> Database:
        """For those who look after the whole: migration, transfer, checks."""
        return self._database

    async def add_user(self, user: User) -> None:
        await self._write(people.add_user, user)

    async def user(self, user: UserId) -> User | None:
        return await self._read(people.user, user)

    async def users(self) -> tuple[User, ...]:
        return await self._read(people.users)

    async def set_training(self, user: UserId, allowed: bool) -> User | None:
        return await self._write(people.set_training, user, allowed)

    async def set_plan(self, user: UserId, plan: str | None) -> User | None:
        return await self._write(people.set_plan, user, plan)

    async def suspend_user(self, user: UserId, reason: str | None) -> User | None:
        return await self._write(people.suspend_user, user, reason)

    async def suspend_until(self, user: UserId, reason: str, until_ms: int) -> User | None:
        return await self._write(people.suspend_until, user, reason, until_ms)

    async def lift_suspension(self, user: UserId) -> User | None:
        return await self._write(people.lift_suspension, user)

    async def suspended_users(self, now_ms: int, *, limit: int = 1000) -> tuple[User, ...]:
        return await self._read(people.suspended_users, now_ms, limit)

    async def suspend_key(self, key: KeyId, reason: str | None) -> ApiKey | None:
        return await self._write(people.suspend_key, key, reason)

    async def add_key(self, key: ApiKey, secret_hash: str) -> None:
        await self._write(people.add_key, key, secret_hash)

    async def keys(self, user: UserId | None = None) -> tuple[ApiKey, ...]:
        return await self._read(people.keys, user)

    async def find_key(self, secret_hash: str) -> tuple[ApiKey, User] | None:
        return await self._read(people.find_key, secret_hash)

    async def has_keys(self) -> bool:
        return await self._read(people.has_keys)

    async def revoke_key(self, key: KeyId, now_ms: int) -> ApiKey | None:
        return await self._write(people.revoke_key, key, now_ms)

    async def touch_keys(self, used: dict[KeyId, int]) -> None:
        if used:
            await self._write(people.touch_keys, used)

    async def erase_user(self, user: UserId, now_ms: int) -> Receipt | None:
        """In several transactions, keys first; one that was cut short goes on when asked again."""
        removed = deletion.Removed()
        while True:
            step = await self._write(deletion.some_of_user, user, now_ms, _ERASED_AT_ONCE)
            if step is None:
                return None
            removed.add(step)
            if not step.rows.total():
                break
        return await self._tidied(await self._write(deletion.rest_of_user, user, now_ms, removed))

    async def create_conversation(
        self, conversation: Conversation, items: Sequence[Item] = ()
    ) -> None:
        await self._write(conversations.create, conversation, items)

    async def conversation(self, user: UserId, id: ConversationId) -> Conversation | None:
        return await self._read(conversations.get, user, id)

    async def conversations(
        self, user: UserId, page: Page, *, search: str | None = None, archived: bool = False
    ) -> tuple[Conversation, ...]:
        return await self._read(conversations.listed, user, page, search, archived)

    async def find_said(
        self, user: UserId, query: str, *, after: ConversationId | None = None, limit: int = 20
    ) -> FoundPage:
        words = tuple(dict.fromkeys(query.casefold().split()))
        if not words or limit < 1:
            return FoundPage()
        return await said.Search(self._database, user, words).page(after, limit)

    async def update_conversation(self, conversation: Conversation) -> Conversation | None:
        return await self._write(conversations.update, conversation)

    async def delete_conversation(
        self, user: UserId, id: ConversationId, now_ms: int
    ) -> Receipt | None:
        return await self._tidied(await self._write(deletion.conversation, user, id, now_ms))

    async def add_items(
        self, user: UserId, conversation: ConversationId, items: Sequence[Item], now_ms: int
    ) -> bool:
        return await self._write(conversations.add_items, user, conversation, items, now_ms)

    async def items(
        self, user: UserId, conversation: ConversationId, page: Page
    ) -> tuple[Item, ...] | None:
        return await self._read(conversations.items, user, conversation, page)

    async def item(self, user: UserId, conversation: ConversationId, id: ItemId) -> Item | None:
        return await self._read(conversations.item, user, conversation, id)

    async def find_items(self, user: UserId, ids: Sequence[ItemId]) -> tuple[Item, ...]:
        return await self._read(conversations.find_items, user, ids)

    async def delete_item(
        self, user: UserId, conversation: ConversationId, id: ItemId, now_ms: int
    ) -> Receipt | None:
        return await self._tidied(await self._write(deletion.item, user, conversation, id, now_ms))

    async def accept_turn(self, turn: NewTurn) -> Accepted | Repeated:
        return await self._write(turns.accept, turn)

    async def context(
        self,
        user: UserId,
        *,
        conversation: ConversationId | None = None,
        previous: ResponseId | None = None,
        whole: bool = False,
        memory_default: bool = False,
    ) -> Accepted:
        return await self._read(
            context.before,
            user,
            conversation,
            previous,
            whole=whole,
            memory_default=memory_default,
        )

    async def withdraw_turn(self, id: ResponseId, owner: NodeId) -> bool:
        return await self._write(deletion.withdraw, id, owner)

    async def start_response(
        self, id: ResponseId, owner: NodeId, model: ModelName | None = None
    ) -> bool:
        return await self._write(turns.start, id, owner, model)

    async def append_events(
        self, owner: NodeId, batches: Sequence[tuple[ResponseId, EventBatch]]
    ) -> frozenset[ResponseId]:
        return await self._write(turns.append_events, owner, batches)

    async def finish_response(self, final: FinalState) -> bool:
        return await self._write(turns.finish, final)

    async def renew_leases(self, owner: NodeId, until_ms: int) -> int:
        return await self._write(leases.renew, owner, until_ms)

    async def request_cancel(self, user: UserId, id: ResponseId) -> Response | None:
        return await self._write(responses.request_cancel, user, id)

    async def cancel_requests(self, owner: NodeId) -> frozenset[ResponseId]:
        return await self._read(responses.cancel_requests, owner)

    async def orphans(
        self, now_ms: int, *, owner: NodeId, alone: bool = False, limit: int = 100
    ) -> tuple[Orphan, ...]:
        return await self._write(leases.orphans, now_ms, owner, alone=alone, limit=limit)

    async def response(self, user: UserId, id: ResponseId) -> Response | None:
        return await self._read(responses.get, user, id)

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
        return await self._read(responses.listed, user, page, kind, conversation, model, metadata)

    async def events(
        self, user: UserId, id: ResponseId, *, after: int = -1
    ) -> tuple[EventBatch, ...]:
        return await self._read(responses.events, user, id, after)

    async def input_items(
        self, user: UserId, id: ResponseId, page: Page
    ) -> tuple[Item, ...] | None:
        return await self._read(responses.input_items, user, id, page)

    async def update_response_metadata(
        self, user: UserId, id: ResponseId, metadata: dict[str, str]
    ) -> Response | None:
        return await self._write(responses.set_metadata, user, id, metadata)

    async def delete_response(self, user: UserId, id: ResponseId, now_ms: int) -> Receipt | None:
        return await self._tidied(await self._write(deletion.response, user, id, now_ms))

    async def set_feedback(self, user: UserId, feedback: Feedback) -> bool:
        return await self._write(responses.set_feedback, user, feedback)

    async def claimed(self, user: UserId, claim: Claim) -> ResponseId | None:
        return await self._read(turns.claim, user, claim)

    async def add_file(self, file: File) -> None:
        await self._write(files.add, file)

    async def file(self, user: UserId, id: FileId) -> File | None:
        return await self._read(files.get, user, id)

    async def files(
        self, user: UserId, page: Page, *, purpose: str | None = None
    ) -> tuple[File, ...]:
        return await self._read(files.listed, user, page, purpose)

    async def delete_file(self, user: UserId, id: FileId, now_ms: int) -> Receipt | None:
        return await self._tidied(await self._write(deletion.file, user, id, now_ms))

    async def unused_contents(self, contents: Sequence[str]) -> tuple[str, ...]:
        return await self._read(files.unused, contents)

    async def usage(self, user: UserId, *, since_ms: int = 0) -> tuple[UsageEntry, ...]:
        return await self._read(responses.usage, user, since_ms)

    async def usage_sums(
        self, user: UserId, *, since_ms: int, until_ms: int
    ) -> tuple[UsageSum, ...]:
        return await self._read(bills.sums, user, since_ms, until_ms)

    async def bills(
        self, *, after: tuple[int, str], until_ms: int, limit: int = 500
    ) -> tuple[Bill, ...]:
        return await self._read(bills.settled, after, until_ms, limit)

    async def reserve(self, reservation: Reservation) -> Reserved | UsedUp:
        return await self._write(quotas.reserve, reservation)

    async def settle(self, id: ResponseId, usage: TokenUsage, now_ms: int) -> bool:
        return await self._write(quotas.settle, id, usage, now_ms)

    async def release(self, id: ResponseId) -> bool:
        return await self._write(quotas.release, id)

    async def uncount(self, id: ResponseId, reserved_ms: int) -> bool:
        return await self._write(quotas.uncount, id, reserved_ms)

    async def renew_reservations(self, ids: Sequence[ResponseId], until_ms: int) -> int:
        return await self._write(quotas.renew, ids, until_ms)

    async def lapse_reservations(
        self, now_ms: int, *, owner: NodeId, alone: bool = False, limit: int = 100
    ) -> int:
        return await self._write(quotas.lapse, now_ms, owner, alone=alone, limit=limit)

    async def add_policy_events(self, events: Sequence[PolicyEvent]) -> None:
        await self._write(policy.add, events)

    async def policy_events(
        self, *, rule: str | None = None, user: str | None = None, limit: int = 100
    ) -> tuple[PolicyEvent, ...]:
        return await self._read(policy.latest, rule, user, limit)

    async def export_user(self, user: UserId) -> JsonObject | None:
        return await self._read(account.export, user)

    async def expire(self, now_ms: int, *, limit: int = 500) -> Receipt:
        receipt = await self._write(expiry.expire, self._retention, now_ms, limit)
        is_removed = await self._tidy(deleted=bool(receipt.rows))
        return replace(receipt, is_unfinished=not is_removed)

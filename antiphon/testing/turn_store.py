"""A store in memory, for tests of the rooms above it that run on a mock clock: the turn's methods
only, with faults on demand. What a store promises is tested against the real ones.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeVar, cast

import trio

from antiphon.context_records import Memory, Summary
from antiphon.errors import AntiphonError, ConversationLocked, IdempotencyMismatch, RecordNotFound
from antiphon.ids import ConversationId, ItemId, ModelName, NodeId, ResponseId, UserId
from antiphon.records import (
    Accepted,
    EventBatch,
    FinalState,
    Item,
    NewTurn,
    Orphan,
    Receipt,
    Repeated,
    Response,
    ResponseStatus,
)
from antiphon.storage import Store

R = TypeVar("R")


@dataclass(slots=True)
class Row:
    """A response as it is stored. `ends` counts how often its end was written."""

    response: Response
    input: tuple[Item, ...]
    owner: NodeId
    lease_ms: int
    claim: tuple[UserId, str, str] | None
    batches: dict[int, EventBatch] = field(default_factory=dict)
    cancel: bool = False
    ends: int = 0
    counts: dict[ItemId, int] = field(default_factory=dict)


class TurnStore:
    """A `StoreAccess` and its store. `failures` are raised, one a call, before anything is done;
    `lost_answers` after it was; `refusals` whenever that response is to be ended or withdrawn;
    `slow` says how long a method takes; while `gate` is set to an event, calls wait for it."""

    def __init__(self) -> None:
        self.rows: dict[ResponseId, Row] = {}
        self.failures: deque[AntiphonError] = deque()
        self.lost_answers: deque[AntiphonError] = deque()
        self.refusals: dict[ResponseId, AntiphonError] = {}
        self.slow: dict[str, float] = {}
        self.gate: trio.Event | None = None
        self.calls: list[str] = []
        self.summaries: dict[ConversationId, Summary] = {}
        self.memories_of: dict[UserId, tuple[Memory, ...]] = {}
        self.old_claims = 0
        self.unfinished = 0
        """So many clean-ups leave a rest."""
        self.now_ms = 0

    async def run(self, work: Callable[[Store], Awaitable[R]]) -> R:
        await trio.lowlevel.checkpoint()
        if self.gate is not None:
            await self.gate.wait()
        if self.failures:
            raise self.failures.popleft()
        result = await work(cast("Store", _Recording(self)))
        if self.lost_answers:
            raise self.lost_answers.popleft()
        return result

    def texts(self, id: ResponseId) -> list[str]:
        """Of its output items."""
        return [item.body["content"][0]["text"] for item in self.rows[id].response.output]

    async def accept_turn(self, turn: NewTurn) -> Accepted | Repeated:
        response = turn.response
        claim = None
        if turn.claim is not None:
            claim = (response.user, turn.claim.key, turn.claim.fingerprint)
        for row in self.rows.values():
            if claim and row.claim and row.claim[:2] == claim[:2]:
                if row.claim != claim:
                    raise IdempotencyMismatch(claim[1])
                if not (turn.is_retry and row.response.status is ResponseStatus.CANCELLED):
                    return Repeated(response=row.response.id)
                del self.rows[row.response.id]
                break
        if response.conversation and any(
            row.response.conversation == response.conversation and not row.response.status.is_final
            for row in self.rows.values()
        ):
            raise ConversationLocked(response.conversation)
        before = await self.context(
            response.user,
            conversation=response.conversation,
            previous=response.previous,
            whole=turn.whole,
            memory_default=turn.memory_default,
        )
        self.rows[response.id] = Row(response, turn.input, turn.owner, turn.lease_ms, claim)
        return before

    async def context(
        self,
        user: UserId,
        *,
        conversation: ConversationId | None = None,
        previous: ResponseId | None = None,
        whole: bool = False,
        memory_default: bool = False,
    ) -> Accepted:
        if previous is not None:
            if previous not in self.rows:
                raise RecordNotFound("response", previous, "previous_response_id")
            row = self.rows[previous]
            earlier = await self.context(user, previous=row.response.previous)
            return Accepted(context=(*earlier.context, *row.input, *row.response.output))
        if conversation is None:
            return Accepted(context=())
        items = [
            item
            for row in self.rows.values()
            if row.response.conversation == conversation
            for item in (*row.input, *row.response.output)
        ]
        summary = None if whole else self.summaries.get(conversation)
        opening: list[Item] = []
        if summary is not None:
            covered = [item.id for item in items].index(summary.until) + 1
            setting = takewhile(lambda each: each.role in {"system", "developer"}, items)
            opening = list(setting)[:covered]
            items = [*opening, *items[covered:]]
        remembered = self.memories_of.get(user, ()) if memory_default else ()
        return Accepted(
            context=tuple(items), summary=summary, opening=len(opening), memories=remembered
        )

    async def withdraw_turn(self, id: ResponseId, owner: NodeId) -> bool:
        self._refuse(id)
        return self._is_owner(id, owner) and self.rows.pop(id) is not None

    async def start_response(
        self, id: ResponseId, owner: NodeId, model: ModelName | None = None
    ) -> bool:
        if not self._is_owner(id, owner):
            return False
        row = self.rows[id]
        row.response = replace(row.response, model=model or row.response.model)
        return True

    async def append_events(
        self, owner: NodeId, batches: Sequence[tuple[ResponseId, EventBatch]]
    ) -> frozenset[ResponseId]:
        lost = {id for id, _ in batches if not self._is_owner(id, owner)}
        for id, batch in batches:
            if id not in lost:
                self.rows[id].batches.setdefault(batch.first, batch)
        return frozenset(lost)

    async def finish_response(self, final: FinalState) -> bool:
        self._refuse(final.response)
        row = self.rows.get(final.response)
        if row is None or row.owner != final.owner:
            return False
        if row.response.status.is_final:
            return True
        if final.events is not None:
            row.batches.setdefault(final.events.first, final.events)
        row.ends += 1
        row.counts = final.counts
        row.response = replace(
            row.response,
            status=final.status,
            completed_ms=final.completed_ms,
            output=final.output,
            usage=final.usage,
            error=final.error,
            incomplete_reason=final.incomplete_reason,
            model=final.model or row.response.model,
            request=final.request or row.response.request,
        )
        return True

    async def renew_leases(self, owner: NodeId, until_ms: int) -> int:
        mine = [row for row in self.rows.values() if row.owner == owner]
        for row in mine:
            row.lease_ms = until_ms
        return len(mine)

    async def request_cancel(self, user: UserId, id: ResponseId) -> Response | None:
        self.rows[id].cancel = True
        return self.rows[id].response

    async def cancel_requests(self, owner: NodeId) -> frozenset[ResponseId]:
        return frozenset(
            id
            for id, row in self.rows.items()
            if row.owner == owner and row.cancel and not row.response.status.is_final
        )

    async def orphans(
        self, now_ms: int, *, owner: NodeId, alone: bool = False, limit: int = 100
    ) -> tuple[Orphan, ...]:
        found = [
            row
            for row in self.rows.values()
            if row.owner != owner
            and (alone or row.lease_ms <= now_ms)
            and not row.response.status.is_final
        ][:limit]
        for row in found:
            row.owner = owner
        return tuple(
            Orphan(response=row.response, events=tuple(row.batches.values())) for row in found
        )

    async def response(self, user: UserId, id: ResponseId) -> Response | None:
        row = self.rows.get(id)
        return row.response if row is not None and row.response.user == user else None

    async def events(
        self, user: UserId, id: ResponseId, *, after: int = -1
    ) -> tuple[EventBatch, ...]:
        return tuple(batch for batch in self.rows[id].batches.values() if batch.last > after)

    async def expire(self, now_ms: int, *, limit: int = 500) -> Receipt:
        gone = min(limit, self.old_claims)
        self.old_claims -= gone
        rows = {"idempotency_claims": gone} if gone else {}
        is_unfinished = self.unfinished > 0
        self.unfinished -= is_unfinished
        return Receipt(
            id="none",
            subject="expired",
            deleted_ms=now_ms,
            rows=rows,
            is_unfinished=is_unfinished,
        )

    def _refuse(self, id: ResponseId) -> None:
        if (refusal := self.refusals.get(id)) is not None:
            raise refusal

    def _is_owner(self, id: ResponseId, owner: NodeId) -> bool:
        row = self.rows.get(id)
        return row is not None and row.owner == owner and not row.response.status.is_final


class _Recording:
    """Notes the name of each method that is called."""

    def __init__(self, store: TurnStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        self._store.calls.append(name)
        method = getattr(self._store, name)

        async def call(*args: Any, **options: Any) -> Any:
            await trio.sleep(self._store.slow.get(name, 0.0))
            return await method(*args, **options)

        return call

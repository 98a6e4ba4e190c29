"""The part of the store that makes the views of conversations: the contract's methods for
background work, summaries, memory and system prompts."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar

import trio

from antiphon.context_records import Memory, PromptActivation, PromptVersion, Summary
from antiphon.ids import ConversationId, ItemId, MemoryId, NodeId, UserId
from antiphon.persistence import (
    conversations,
    deletion,
    documents,
    memories,
    prompts,
    summaries,
    work,
)
from antiphon.persistence.memories import add as add_memories
from antiphon.persistence.pace import Pace
from antiphon.persistence.port import Database, Transaction
from antiphon.persistence.work import finish as finish_work
from antiphon.persistence.work import renew as renew_work
from antiphon.records import Page, PendingWork, Receipt

P = ParamSpec("P")
R = TypeVar("R")

_REMOVING_S = 3.0
"""So long one unit of work removes what was too much for one transaction, and then lets the
database tidy up: both end within a store's deadline. The rest is for the next clean-up."""
_ANSWER_S = 1.0
"""Of the time that its caller waits, the part in which what was done is said."""


class SqlContextStore:
    """A `context_storage.ContextStore`, and how every method of a store is run."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pace = Pace()

    async def take_work(
        self, owner: NodeId, now_ms: int, *, lease_ms: int, limit: int = 8
    ) -> tuple[PendingWork, ...]:
        return await self._write(work.take, owner, now_ms, lease_ms=lease_ms, limit=limit)

    async def renew_work(self, work: PendingWork, owner: NodeId, *, lease_ms: int) -> bool:
        return await self._write(renew_work, work, owner, lease_ms)

    async def finish_work(
        self,
        work: PendingWork,
        owner: NodeId,
        *,
        remembered: ItemId | None = None,
        again_ms: int | None = None,
    ) -> bool:
        return await self._write(finish_work, work, owner, remembered, again_ms)

    async def give_title(
        self, user: UserId, id: ConversationId, title: str, *, of: Sequence[ItemId] = ()
    ) -> bool:
        return await self._write(conversations.give_title, user, id, title, of)

    async def summary(self, user: UserId, conversation: ConversationId) -> Summary | None:
        return await self._read(summaries.get, user, conversation)

    async def add_summary(self, user: UserId, summary: Summary) -> bool:
        return await self._write(summaries.add, user, summary)

    async def memories(self, user: UserId, page: Page) -> tuple[Memory, ...]:
        return await self._read(memories.listed, user, page)

    async def memory(self, user: UserId, id: MemoryId) -> Memory | None:
        return await self._read(memories.get, user, id)

    async def add_memories(
        self, user: UserId, memories: Sequence[Memory], *, most: int
    ) -> tuple[Memory, ...]:
        return await self._write(add_memories, user, memories, most)

    async def update_memory(
        self, user: UserId, id: MemoryId, text: str, now_ms: int
    ) -> Memory | None:
        return await self._write(memories.update, user, id, text, now_ms)

    async def delete_memory(self, user: UserId, id: MemoryId, now_ms: int) -> Receipt | None:
        return await self._tidied(await self._write(deletion.memory, user, id, now_ms))

    async def delete_memories(self, user: UserId, now_ms: int) -> Receipt:
        receipt = await self._write(deletion.all_memories, user, now_ms)
        await self._database.tidy()
        return receipt

    async def add_prompt(self, name: str, text: str, note: str, now_ms: int) -> PromptVersion:
        return await self._write(prompts.add, name, text, note, now_ms)

    async def prompt_versions(self, name: str | None = None) -> tuple[PromptVersion, ...]:
        return await self._read(prompts.versions, name)

    async def activate_prompt(
        self, name: str, arms: dict[int, float], now_ms: int
    ) -> PromptActivation:
        return await self._write(prompts.activate, name, arms, now_ms)

    async def prompt_activations(self, name: str | None = None) -> tuple[PromptActivation, ...]:
        return await self._read(prompts.activations, name)

    async def _read(
        self,
        work: Callable[Concatenate[Transaction, P], Awaitable[R]],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        return await self._database.read(lambda tx: work(tx, *args, **options))

    async def _write(
        self,
        work: Callable[Concatenate[Transaction, P], Awaitable[R]],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        return await self._database.write(lambda tx: work(tx, *args, **options))

    async def _tidied(self, receipt: Receipt | None) -> Receipt | None:
        """What was deleted is deleted: that letting go of it takes longer than its caller waits is
        no failure, and the next clean-up goes on with it."""
        if receipt is not None:
            with trio.move_on_at(trio.current_effective_deadline() - _ANSWER_S):
                await self._tidy()
        return receipt

    async def _tidy(self, *, deleted: bool = True) -> bool:
        """Let go of what was deleted everywhere, first of what was too much for one transaction,
        whoever began with it. False where some of that is left."""
        until, is_removed = trio.current_time() + _REMOVING_S, False
        while not is_removed and trio.current_time() < until:
            is_removed = not await self._pace.step(self._database, documents.remove_some)
            deleted = deleted or not is_removed
        await self._database.tidy(deleted=deleted)
        return is_removed

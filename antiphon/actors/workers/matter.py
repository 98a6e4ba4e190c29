"""One conversation that is being worked on, and what the steps of that work share: who reads it,
who writes for it, who judges what was written, and the sites at which a fault plan may end it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import trio

from antiphon import faults
from antiphon.actors.workers.reading import ConversationReader
from antiphon.actors.workers.showing import may_be_shown
from antiphon.actors.workers.writer import ModelUnavailable, Writer, Written
from antiphon.events import Message
from antiphon.fault_plan import Site
from antiphon.ids import ModelName
from antiphon.moderating import Moderation
from antiphon.records import Conversation, PendingWork, User
from antiphon.settings import Settings
from antiphon.storage import Store, StoreAccess
from antiphon.telemetry import Telemetry

T = TypeVar("T")

_THREAD_CHARS = 16_384
"""Looking closely at a longer text would be felt by every stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTools:
    """What all work is done with. `now_ms` is the wall clock."""

    store: StoreAccess
    writer: Writer
    moderation: Moderation
    telemetry: Telemetry
    settings: Callable[[], Settings]
    now_ms: Callable[[], int]
    threads: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(1))


def age_s(work: PendingWork, tools: WorkTools) -> float:
    """How long ago the last turn has ended there."""
    return max(0.0, (tools.now_ms() - work.conversation.updated_ms) / 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    """`user` is whose conversation it is. With `is_patient`, a model that can't be asked is asked
    another time; without, sentences as they were said stand in for what it would have written."""

    work: PendingWork
    user: User
    reader: ConversationReader
    tools: WorkTools
    is_patient: bool

    @property
    def conversation(self) -> Conversation:
        return self.work.conversation

    @property
    def has_memory(self) -> bool:
        """Whether what is said in it is remembered."""
        of_its_own = self.conversation.memory
        return self.tools.settings().context.memory if of_its_own is None else of_its_own

    @property
    def model(self) -> ModelName:
        """Who writes."""
        card = self.tools.writer.card()
        return ModelName("") if card is None else card.name

    async def written(self, messages: tuple[Message, ...], max_tokens: int) -> Written | None:
        """By a model; None where it has nothing to say to that, or no time. Raises
        ModelUnavailable."""
        try:
            return await self.tools.writer.write(
                self.user, messages, max_tokens, age_s=age_s(self.work, self.tools)
            )
        except ModelUnavailable:
            if self.is_patient:
                raise
            return None

    async def may_be_shown(self, texts: Sequence[str]) -> list[bool]:
        """Of each, whether the policy lets models see it. Raises ModelUnavailable."""
        try:
            return await may_be_shown(self.tools.moderation, self.user, self.model, texts)
        except ModelUnavailable:
            if self.is_patient:
                raise
            return [False] * len(texts)

    async def keep(self, kind: str, write: Callable[[Store], Awaitable[T]]) -> T:
        """The one call that writes what a step has made. Raises StoreError."""
        await faults.pause(Site.WORKER_WRITE, kind)
        kept = await self.tools.store.run(write)
        await faults.pause(Site.WORKER_WRITTEN, kind)
        return kept

    async def thought(self, chars: int, work: Callable[[], T]) -> T:
        """The result of looking closely at so many characters."""
        if chars <= _THREAD_CHARS:
            await trio.lowlevel.checkpoint()
            return work()
        return await trio.to_thread.run_sync(
            work, abandon_on_cancel=True, limiter=self.tools.threads
        )

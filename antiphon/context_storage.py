"""What the core needs from a store to make the views of conversations: the part of `storage.Store`
for background work, summaries, memory and system prompts, under the same rules."""

from collections.abc import Sequence
from typing import Protocol

from antiphon.context_records import Memory, PromptActivation, PromptVersion, Summary
from antiphon.ids import ConversationId, ItemId, MemoryId, NodeId, UserId
from antiphon.records import Page, PendingWork, Receipt


class ContextStore(Protocol):
    """What every method may raise, `storage.Store` says."""

    # ── what background workers make of conversations ────────────────────────────────────────────

    async def take_work(
        self, owner: NodeId, now_ms: int, *, lease_ms: int, limit: int = 8
    ) -> tuple[PendingWork, ...]:
        """Conversations with work that nobody holds, the oldest mark first, held until `lease_ms`.
        Ending a turn in a conversation marks it, in the same transaction."""

    async def renew_work(self, work: PendingWork, owner: NodeId, *, lease_ms: int) -> bool:
        """Hold it until `lease_ms`; False when the owner has lost it, or the conversation is
        gone."""

    async def finish_work(
        self,
        work: PendingWork,
        owner: NodeId,
        *,
        remembered: ItemId | None = None,
        again_ms: int | None = None,
    ) -> bool:
        """Let go of it. It is done unless turns have ended there since, or `again_ms` says when it
        is to be tried again; `attempts` grows only in the latter case, and begins anew in the
        former. False when the owner has lost it; then nothing is written."""

    async def give_title(
        self, user: UserId, id: ConversationId, title: str, *, of: Sequence[ItemId] = ()
    ) -> bool:
        """Unless it has one by now, or any of the items that it was made of is gone. It goes with
        the next item that does."""

    async def summary(self, user: UserId, conversation: ConversationId) -> Summary | None: ...

    async def add_summary(self, user: UserId, summary: Summary) -> bool:
        """False, and nothing is written, when there is no such conversation or item any more, when
        it covers another number of items than there are (some were deleted since they were read),
        or when there is one that covers as much."""

    # ── memory ───────────────────────────────────────────────────────────────────────────────────

    async def memories(self, user: UserId, page: Page) -> tuple[Memory, ...]:
        """By creation. Raises UnknownCursor."""

    async def memory(self, user: UserId, id: MemoryId) -> Memory | None: ...

    async def add_memories(
        self, user: UserId, memories: Sequence[Memory], *, most: int
    ) -> tuple[Memory, ...]:
        """Those that were written: not what the user's memory has already, in any case and
        spacing, not what comes from an item or a conversation that is gone, not what was forgotten
        of that item, and none once there are `most`. What was stated elsewhere too stays until all
        of that is gone; what is ADDED and was STATED until now is returned as it is there."""

    async def update_memory(
        self, user: UserId, id: MemoryId, text: str, now_ms: int
    ) -> Memory | None:
        """From then on it is ADDED, and stays when its conversation goes. Raises InvalidRequest
        where another one says that already."""

    async def delete_memory(self, user: UserId, id: MemoryId, now_ms: int) -> Receipt | None:
        """It isn't learned again from the same item."""

    async def delete_memories(self, user: UserId, now_ms: int) -> Receipt:
        """All of the user's."""

    # ── system prompts ───────────────────────────────────────────────────────────────────────────

    async def add_prompt(self, name: str, text: str, note: str, now_ms: int) -> PromptVersion:
        """The next version. It is in force only once it is activated."""

    async def prompt_versions(self, name: str | None = None) -> tuple[PromptVersion, ...]:
        """By name and version; without a name, all there are."""

    async def activate_prompt(
        self, name: str, arms: dict[int, float], now_ms: int
    ) -> PromptActivation:
        """Raises RecordNotFound for a version that isn't there."""

    async def prompt_activations(self, name: str | None = None) -> tuple[PromptActivation, ...]:
        """By name, the latest first."""

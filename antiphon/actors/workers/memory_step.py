"""Learning what a user has said of themselves, where a conversation has a memory."""

from collections.abc import Sequence

from antiphon.actors.workers import remembering
from antiphon.actors.workers.lines import lines_of, whole
from antiphon.actors.workers.matter import Matter
from antiphon.context_records import Memory, MemoryOrigin
from antiphon.ids import new_memory_id
from antiphon.records import Item


async def remember(matter: Matter, ended: Sequence[Item]) -> str:
    """`ended` are the items of turns that have ended, as far as they were read. What came of it:
    `extract`, `none`, `blocked` or `unwanted`. Raises ModelUnavailable, StoreError."""
    lines = lines_of(await _fresh(matter, ended))
    chars = sum(len(line.text) for line in lines)
    found = await matter.thought(chars, lambda: list(remembering.remembered(lines)))
    if not found:
        return "none"
    fine = await matter.may_be_shown([text for _, text in found])
    now_ms, user = matter.tools.now_ms(), matter.user.id
    memories = [
        Memory(
            id=new_memory_id(),
            user=user,
            text=text,
            origin=MemoryOrigin.STATED,
            created_ms=now_ms,
            updated_ms=now_ms,
            conversation=matter.conversation.id,
            item=line.item,
        )
        for (line, text), passes in zip(found, fine, strict=True)
        if passes
    ]
    if not memories:
        return "blocked"
    most = matter.tools.settings().context.memory_entries
    kept = await matter.keep("memory", lambda store: store.add_memories(user, memories, most=most))
    return "extract" if kept else "unwanted"


async def _fresh(matter: Matter, ended: Sequence[Item]) -> Sequence[Item]:
    """What wasn't looked at yet."""
    remembered, summary = matter.work.remembered, matter.work.summary
    places = {item.id: place for place, item in enumerate(ended)}
    if remembered in places:
        return ended[places[remembered] + 1 :]
    if summary is None or remembered == summary.until:
        return ended
    # Some of what the summary covers was never looked at: a kill came in between.
    return whole(await matter.reader.after(remembered))

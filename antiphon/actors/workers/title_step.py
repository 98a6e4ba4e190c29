"""Giving a conversation a title, once there is something that it could be about."""

from collections.abc import Sequence

from antiphon.actors.workers import titles
from antiphon.actors.workers.lines import Line, Speaker, lines_of
from antiphon.actors.workers.matter import Matter

_FIRST_ITEMS = 40
"""In which the first exchange is, whatever tools it took."""


async def give_title(matter: Matter) -> str:
    """What came of it: `model`, `extract`, `none` or `unwanted`. Raises ModelUnavailable,
    StoreError."""
    items = await matter.reader.first(_FIRST_ITEMS)
    lines = lines_of(items)
    if not _has_exchange(lines):
        return "none"
    made_by = "model"
    answer = await matter.written(titles.messages(lines), titles.TOKENS)
    title = None
    if answer is not None:
        title = titles.checked(answer.text, lines, is_cut=answer.is_cut)
    if title is None:
        made_by, title = "extract", titles.extracted(lines)
    if title is None:
        return "none"
    user, id, text = matter.user.id, matter.conversation.id, title
    of = [item.id for item in items]
    kept = await matter.keep("title", lambda store: store.give_title(user, id, text, of=of))
    return made_by if kept else "unwanted"


def _has_exchange(lines: Sequence[Line]) -> bool:
    speakers = [line.speaker for line in lines]
    return Speaker.USER in speakers and Speaker.ASSISTANT in speakers

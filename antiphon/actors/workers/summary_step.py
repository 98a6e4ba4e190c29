"""Summarising the older turns of a conversation, before they would have to be left out."""

from collections.abc import Sequence

from antiphon.actors.context.planning import Budget, room_for_turns, usual_answer
from antiphon.actors.workers import summaries
from antiphon.actors.workers.matter import Matter
from antiphon.actors.workers.sentences import sentences
from antiphon.actors.workers.summaries import EXTRACT, Due
from antiphon.context_records import Summary
from antiphon.records import Item


async def summarise(matter: Matter, items: Sequence[Item]) -> str:
    """`items` follow the present summary. What came of it: `model`, `extract`, `none` (there was
    nothing to do), `blocked` by the policy, or `unwanted`: the conversation isn't as it was.
    Raises ModelUnavailable, StoreError."""
    due = await _due(matter, items)
    if due is None:
        return "none"
    text, made_by = await _text(matter, due)
    if text is None:
        return "blocked"
    before = matter.work.summary
    summary = Summary(
        conversation=matter.conversation.id,
        until=due.until,
        items=len(due.items) + (0 if before is None else before.items),
        tokens=due.tokens + (0 if before is None else before.tokens),
        text=text,
        made_by=made_by,
        created_ms=matter.tools.now_ms(),
    )
    user = matter.user.id
    kept = await matter.keep("summary", lambda store: store.add_summary(user, summary))
    if not kept:
        return "unwanted"
    return EXTRACT if made_by == EXTRACT else "model"


async def _due(matter: Matter, items: Sequence[Item]) -> Due | None:
    writer, settings = matter.tools.writer, matter.tools.settings()
    # Windows differ: what counts is whose the conversation is.
    name = await matter.reader.model() if len(writer.windows) > 1 else None
    card = writer.card(name)
    if card is None:
        return None
    # The client's own instructions are unknown here. A summary is due well before anything is left
    # out, so that they may be long.
    budget = Budget(
        window=card.window,
        usual_answer=usual_answer(settings.generation.default_max_tokens, card.window),
        answer=0,
        truncation="auto",
        settings=settings.context,
    )
    fixed = settings.context.summary_tokens
    if matter.has_memory:
        fixed += settings.context.memory_tokens
    room = room_for_turns(fixed, budget)
    return summaries.due(items, matter.work.summary, room=room, settings=settings.context)


async def _text(matter: Matter, due: Due) -> tuple[str | None, str]:
    """And who has made it."""
    tokens = matter.tools.settings().context.summary_tokens
    chars = len(due.source)
    as_said = await matter.thought(chars, lambda: summaries.extracted(due, tokens=tokens))
    written = await _written(matter, due, tokens, as_said)
    if written is not None:
        return written
    return await _without_what_is_blocked(matter, as_said), EXTRACT


async def _written(matter: Matter, due: Due, tokens: int, as_said: str) -> tuple[str, str] | None:
    """By a model; None where that is no better than what was said, or may not be shown."""
    card = matter.tools.writer.card()
    messages = None if card is None else summaries.messages(due, tokens=card.window - 2 * tokens)
    if messages is None:
        return None
    answer = await matter.written(messages, tokens)
    if answer is None:
        return None
    text, is_cut = answer.text, answer.is_cut
    good = await matter.thought(
        len(due.source),
        lambda: summaries.better(text, as_said, due, is_cut=is_cut, tokens=tokens),
    )
    if good is None or not all(await matter.may_be_shown([good])):
        return None
    return good, answer.model


async def _without_what_is_blocked(matter: Matter, text: str) -> str | None:
    """Sentences that each passed on their way in may not pass together."""
    if not text or all(await matter.may_be_shown([text])):
        return text or None
    lines = [sentences(line) for line in text.splitlines()]
    each = [sentence for spoken in lines for sentence in spoken]
    passing = await matter.may_be_shown(each)
    fine = {sentence for sentence, passes in zip(each, passing, strict=True) if passes}
    kept = [" ".join(one for one in spoken if one in fine) for spoken in lines]
    rest = "\n".join(line for line in kept if line)
    return rest if rest and all(await matter.may_be_shown([rest])) else None

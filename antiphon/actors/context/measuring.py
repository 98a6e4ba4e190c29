"""A turn's messages as parts: each counted, and what may be shown without its middle cut."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from antiphon.actors.context.counting import Counting, Text
from antiphon.actors.context.parts import Part
from antiphon.actors.context.planning import Plan
from antiphon.actors.context.seeing import Sight
from antiphon.actors.context.trimming import halves, with_note
from antiphon.events import Message, Turn
from antiphon.ids import ItemId
from antiphon.views import TURNS, PieceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Of one turn, by one vocabulary. The functions that the model may call are the last of the
    `parts`, and no message."""

    turn: Turn
    parts: tuple[Part, ...]
    short: dict[int, str]
    """What is shown of a message whose middle is left out, by its place."""
    counts: tuple[tuple[ItemId, int], ...]
    """Tokens of items that had not been counted."""

    def shown(self, plan: Plan) -> tuple[tuple[Message, PieceKind], ...]:
        """What the plan shows, and what each message is."""
        return tuple(
            (
                replace(message, content=self.short[place]) if plan.trimmed[place] else message,
                self.parts[place].kind,
            )
            for place, message in enumerate(self.turn.messages)
            if plan.shown[place]
        )


async def measured(
    turn: Turn, counting: Counting, *, window: int, longest: int, sight: Sight | None = None
) -> Measured:
    """`longest` is the most tokens that a tool's old result is shown whole with, `sight` what is
    shown of images. Raises InvalidRequest for what is no text."""
    messages, pieces = turn.messages, turn.pieces
    unknown = [place for place, piece in enumerate(pieces) if piece.tokens is None]
    texts = [Text(content=messages[place].text, key=_key(turn, place)) for place in unknown]
    tools = () if turn.tools is None else turn.tools.tools
    texts += [Text(content=tool.text, key=tool.text) for tool in tools]
    found = await counting.count(texts, most=window)
    new = dict(zip(unknown, found, strict=False))
    counts = [new.get(place, piece.tokens or 0) for place, piece in enumerate(pieces)]
    same = _same(turn, counts, longest)
    short = await _short(turn, counts, same, counting, longest)
    parts = [
        Part(
            kind=piece.kind,
            role=message.role,
            tokens=counts[place] + (0 if sight is None else sum(map(sight.count, message.images))),
            short=short[place][1] if place in short else None,
            same=same.get(place),
            calls=piece.calls,
            item=piece.item,
            rank=piece.rank,
            covers=piece.covers,
            covered_tokens=piece.covered_tokens,
        )
        for place, (message, piece) in enumerate(zip(messages, pieces, strict=True))
    ]
    if tools:
        tokens = sum(found[len(unknown) :])
        parts.append(Part(kind=PieceKind.TOOLS, role="system", tokens=tokens))
    return Measured(
        turn=turn,
        parts=tuple(parts),
        short={place: text for place, (text, _) in short.items()},
        counts=tuple(
            (item, count)
            for place, count in new.items()
            if pieces[place].kind in TURNS and (item := pieces[place].item) is not None
        ),
    )


def _key(turn: Turn, place: int) -> tuple[ItemId, int] | None:
    """Items never change, but for one that a rule has something else shown for."""
    piece = turn.pieces[place]
    if piece.item is None or piece.kind in {PieceKind.MEMORY, PieceKind.SUMMARY}:
        return None
    return piece.item, len(turn.messages[place].text)


def _same(turn: Turn, counts: Sequence[int], longest: int) -> dict[int, int]:
    """A number for each long text of the turns that is there more than once."""
    long = {
        place: turn.messages[place].text
        for place, piece in enumerate(turn.pieces)
        if piece.kind in TURNS and counts[place] > longest and turn.messages[place].call is None
    }
    times = Counter(long.values())
    numbers = {text: number for number, text in enumerate(times) if times[text] > 1}
    return {place: numbers[text] for place, text in long.items() if text in numbers}


async def _short(
    turn: Turn,
    counts: Sequence[int],
    same: dict[int, int],
    counting: Counting,
    longest: int,
) -> dict[int, tuple[str, int]]:
    """With its tokens: long results of tools, and long texts that are there once more. What is new
    is shown whole."""
    found: dict[int, tuple[str, int]] = {}
    for place, piece in enumerate(turn.pieces):
        message, tokens = turn.messages[place], counts[place]
        if piece.kind is not PieceKind.HISTORY or tokens <= longest or message.images:
            continue
        if not (message.role == "tool" or place in same):
            continue
        kept = halves(message.content, tokens, longest)
        if kept is None:
            continue
        key = _key(turn, place)
        ends = [
            Text(content=text, key=key and (key, longest, end)) for end, text in enumerate(kept)
        ]
        left_out = tokens - sum(await counting.count(ends, most=tokens))
        text = with_note(*kept, left_out)
        [count] = await counting.count(
            [Text(content=text, key=key and (key, longest, left_out, "whole"))], most=tokens
        )
        if count < tokens:
            found[place] = (text, count)
    return found

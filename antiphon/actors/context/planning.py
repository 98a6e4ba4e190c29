"""The planner: which of a turn's messages a model is shown, and which of them shortened.

Pure: counts in, fates out. What stands before the turns is always shown, the new input is always
shown whole, and of the memories, and of what was found in files, as many as may be. What doesn't
fit even so is for whoever encodes the prompt to refuse: these are counts of single texts, and only
the whole prompt's is exact.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from antiphon.actors.context.cutting import Cutting, Marks
from antiphon.actors.context.parts import Frame, Part
from antiphon.context_settings import ContextSettings
from antiphon.views import TURNS, PieceKind, Truncation


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What there is room for, in tokens."""

    window: int
    usual_answer: int
    """What is kept for the answer of a client that names no longest one."""
    answer: int
    """What is kept for this one."""
    truncation: Truncation
    settings: ContextSettings
    frame: Frame = field(default_factory=Frame)
    compact: int | None = None
    """With more than that in its turns, the older ones are left out."""
    excess: int = 0
    """How much too long the prompt turned out to be that an earlier plan led to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One flag for each part. What isn't shown was dropped, but for `repeated`: memories of what is
    in the turns, word for word."""

    shown: tuple[bool, ...]
    trimmed: tuple[bool, ...]
    repeated: frozenset[int]
    tokens: int
    """Of the prompt, as far as the counts can tell."""
    can_drop: bool
    """Whether more could be left out."""


def plan(parts: Sequence[Part], budget: Budget) -> Plan:
    """The same for the same counts; with one more turn, the same and that turn, until a step."""
    places = [index for index, part in enumerate(parts) if part.kind in TURNS]
    cutting = Cutting([parts[index] for index in places], _marks(parts, budget), budget.frame.each)
    if budget.truncation == "auto":
        _fit(cutting, parts, budget, places)
    shown = [part.kind not in TURNS for part in parts]
    trimmed = [False] * len(parts)
    for place, is_shown, is_trimmed in zip(places, cutting.shown, cutting.trimmed, strict=True):
        shown[place], trimmed[place] = is_shown, is_trimmed and is_shown
    repeated = _repeated(parts, shown)
    wanted = _wanted(parts, repeated, budget)
    for place, part in enumerate(parts):
        if _is_optional(part):
            shown[place] = place in wanted
    fixed = _fixed(parts, budget) + sum(parts[place].tokens for place in wanted)
    return Plan(
        shown=tuple(shown),
        trimmed=tuple(trimmed),
        repeated=repeated,
        tokens=fixed + cutting.total,
        can_drop=budget.truncation == "auto" and cutting.can_drop,
    )


def usual_answer(default: int, window: int) -> int:
    """What is kept for the answer of a client that names no longest one: the default, and at most
    a quarter of the window."""
    return min(default, window // 4)


def room_for_turns(fixed: int, budget: Budget) -> int:
    """The most that turns may have before the oldest are left out, of what the window leaves.

    The usual answer counts even where a shorter one is asked for, so that requests with different
    lengths don't move the mark, and with it the beginning of the prompt.
    """
    room = budget.window - fixed
    most = min(
        int(budget.settings.history_share * room), room - max(budget.usual_answer, budget.answer)
    )
    return max(most, 0)


def _marks(parts: Sequence[Part], budget: Budget) -> Marks | None:
    highs = []
    if budget.truncation == "auto":
        # As if all were shown that may be: which are depends on what is left out.
        fixed = _fixed(parts, budget) + sum(_most(parts, budget).values())
        highs.append(room_for_turns(fixed, budget))
    if budget.compact is not None:
        highs.append(budget.compact)
    if not highs:
        return None
    high = min(highs)
    return Marks(high=high, low=int(budget.settings.keep_share * high))


def _fit(cutting: Cutting, parts: Sequence[Part], budget: Budget, places: Sequence[int]) -> None:
    """Leave out what has to be left out for this turn alone: its input may be long, or its
    answer."""
    wanted = _wanted(parts, frozenset(), budget)
    fixed = _fixed(parts, budget) + sum(parts[place].tokens for place in wanted)
    limit = budget.window - budget.answer - fixed - budget.excess
    while cutting.can_drop and cutting.total > limit:
        cutting.drop()
    if cutting.total > limit:
        cutting.trim_all()


def _fixed(parts: Sequence[Part], budget: Budget) -> int:
    """What is shown in any case beside the turns."""
    each = budget.frame.each
    before = (
        part.tokens + each for part in parts if part.kind not in TURNS and not _is_optional(part)
    )
    memory = each if any(part.kind is PieceKind.MEMORY for part in parts) else 0
    return budget.frame.base + sum(before) + memory


def _repeated(parts: Sequence[Part], shown: Sequence[bool]) -> frozenset[int]:
    """Memories of something that is shown as it was said."""
    said = {
        part.item
        for part, is_shown in zip(parts, shown, strict=True)
        if is_shown and part.kind in TURNS and part.item is not None
    }
    return frozenset(
        place
        for place, part in enumerate(parts)
        if part.kind is PieceKind.MEMORY and part.item in said
    )


def _is_optional(part: Part) -> bool:
    """Whether it is shown only as far as there is room for its kind."""
    is_found = part.kind is PieceKind.RETRIEVED and part.rank is not None
    return is_found or part.kind is PieceKind.MEMORY


def _most(parts: Sequence[Part], budget: Budget) -> dict[PieceKind, int]:
    """How many tokens each kind may have of which not all need be shown. What was found in files
    leaves half of the room, beside the new input, to the turns before that."""
    kinds = {part.kind for part in parts if _is_optional(part)}
    most = {PieceKind.MEMORY: budget.settings.memory_tokens} if PieceKind.MEMORY in kinds else {}
    if PieceKind.RETRIEVED in kinds:
        input = sum(part.tokens for part in parts if part.kind is PieceKind.INPUT)
        taken = _fixed(parts, budget) + sum(most.values()) + input
        room = budget.window - taken - max(budget.usual_answer, budget.answer)
        most[PieceKind.RETRIEVED] = max(0, min(budget.settings.retrieved_tokens, room // 2))
    return most


def _wanted(parts: Sequence[Part], repeated: Iterable[int], budget: Budget) -> frozenset[int]:
    """Of each kind of which not all need be shown as many as there is room for, those that come
    first before others."""
    wanted: list[int] = []
    for kind, left in _most(parts, budget).items():
        found = [
            place
            for place, part in enumerate(parts)
            if part.kind is kind and _is_optional(part) and place not in set(repeated)
        ]
        found.sort(key=lambda place: (parts[place].rank or 0, place))
        for place in found:
            if parts[place].tokens <= left:
                wanted.append(place)
                left -= parts[place].tokens
    return frozenset(wanted)

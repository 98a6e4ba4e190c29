"""Folded text as an automaton's source: phrases in all their spellings, and expressions whose
letters are folded as the text is."""

import itertools
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence

from antiphon.policy.automaton import Match, Outcome, State, Unit
from antiphon.policy.graph import GraphTooLarge, graph_of
from antiphon.policy.normal import CAPITAL_I, SIGNS, Kind, fold, folded, is_word, kind_of
from antiphon.policy.pattern import Pattern
from antiphon.policy.spelling import STOPS, Spelling
from antiphon.policy.syntax import Between, Chars, Choice, Guard, Part, Repeat, Row

_KEPT_FOR_EACH = 16
"""Partial matches of each spelling, on average, that texts come upon."""
_PHRASES = 64
"""Phrases that an expression may stand for and still be taken as a list of them."""


class Disguised:
    """The context is whether a word's character came last."""

    start = False

    def __init__(self, spellings: Sequence[Spelling], patterns: Sequence[Pattern]) -> None:
        self.holds = any(each.holds for each in spellings) or any(each.holds for each in patterns)
        self._spellings = tuple(spellings)
        self._patterns = tuple(patterns)
        self._firsts: dict[str, list[Spelling]] = {}
        for each in spellings:
            for unit in dict.fromkeys(each.first_units):
                self._firsts.setdefault(unit, []).append(each)
        self._known = {
            sign
            for each in spellings
            for letter in each.letters
            for sign in each.signs_of(letter.character)
        } | set(STOPS)
        chars = {place.chars: None for each in patterns for place in each.graph.places}
        self._chars = tuple(chars)
        self.size = _KEPT_FOR_EACH * len(self._spellings)
        self.weight = 0
        self._together: dict[frozenset[State], _Together] = {}
        self._begun: dict[tuple[Hashable, Unit], tuple[Outcome, ...]] = {}

    def signature(self, character: str) -> Hashable:
        return tuple(map(self._read_alike, fold(character)))

    def _read_alike(self, unit: str) -> Hashable:
        if unit in self._known:
            return unit
        return kind_of(unit), *(reads_folded(chars, unit) for chars in self._chars)

    def units(self, character: str) -> Sequence[Unit]:
        return fold(character)

    def context(self, before: Hashable, unit: Unit) -> Hashable:
        return is_word(str(unit))

    def begin(self, before: Hashable, unit: Unit) -> Sequence[Outcome]:
        key = (before, unit)
        if key not in self._begun:
            self._begun[key] = tuple(self._begin(bool(before), str(unit)))
        return self._begun[key]

    def _begin(self, before: bool, unit: str) -> Iterator[Outcome]:
        yield from self.together(
            outcome
            for spelling in self._firsts.get(unit, ())
            if not (before and spelling.after_no_word)
            for outcome in spelling.begin(unit)
        )
        for pattern in self._patterns:
            yield from pattern.begin(before, unit)

    def together(self, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
        """All that is alive as one."""
        matches: dict[Outcome, None] = {}
        alive: dict[State, None] = {}
        for outcome in outcomes:
            if isinstance(outcome, Match):
                matches[outcome] = None
            else:
                alive[outcome] = None
        if not alive:
            return tuple(matches)
        key = frozenset(alive)
        if key not in self._together:
            self.weight += len(key)
            self._together[key] = _Together(self, tuple(alive))
        return *matches, self._together[key]

    def forget(self) -> None:
        self._begun.clear()
        self._together.clear()
        self.weight = 0
        for spelling in self._spellings:
            spelling.forget()
        for pattern in self._patterns:
            pattern.forget()


class _Together:
    """Partial matches of phrases that began in the same place: one, however many phrases there
    are."""

    __slots__ = ("_after", "_members", "_source", "complete", "holding")

    def __init__(self, source: Disguised, members: tuple[State, ...]) -> None:
        self._source = source
        self._members = members
        self.holding = tuple(dict.fromkeys(rule for each in members for rule in each.holding))
        self.complete = tuple(dict.fromkeys(rule for each in members for rule in each.complete))
        self._after: dict[Unit, tuple[Outcome, ...]] = {}

    def after(self, unit: Unit) -> tuple[Outcome, ...]:
        known = self._after.get(unit)
        if known is None:
            known = self._after[unit] = self._source.together(
                outcome for each in self._members for outcome in each.after(unit)
            )
        return known


def reads_folded(chars: Chars, unit: str) -> bool:
    """Whether an expression's character may be this one, whose case is lost."""
    if chars.literal is not None:
        like_i = unit == CAPITAL_I and chars.literal in "il"
        return unit == chars.literal or like_i or unit in SIGNS.get(chars.literal, "")
    cases = (chars.has(unit.lower()), chars.has(unit.upper()[:1]))
    return all(cases) if chars.source.startswith(("[^", ".", "\\D", "\\W", "\\S")) else any(cases)


def folded_pattern(rule: int, holds: bool, root: Part) -> Pattern | None:
    """None where nothing of it is left, or more than is allowed."""
    try:
        graph = graph_of(_folded(root))
    except GraphTooLarge:
        return None
    if graph.may_be_empty:
        return None
    return Pattern(rule, holds, graph, reads=reads_folded, is_word=is_word)


def _folded(part: Part) -> Part:
    match part:
        case Chars(literal=str(literal)):
            return Row(tuple(Chars(re.escape(each), each) for each in folded(literal)))
        case Row(parts):
            return Row(tuple(map(_folded, parts)))
        case Choice(parts):
            return Choice(tuple(map(_folded, parts)))
        case Repeat(inner, least, most):
            return Repeat(_folded(inner), least, most)
        case _:
            return part


def phrases_of(root: Part) -> tuple[tuple[str, ...], bool] | None:
    r"""The phrases that an expression stands for, where it is a list of some few, as
    `\b(?:one|another) phrase\b` is; and whether words end where they do."""
    parts = root.parts if isinstance(root, Row) else (root,)
    edges = [isinstance(parts[end], Between) for end in (0, -1)] if parts else [False]
    guards = {each.guard for each in parts if isinstance(each, Between)}
    if len(set(edges)) > 1 or not guards <= {Guard.BORDER}:
        return None
    if edges[0]:
        parts = parts[1:-1]
    found = _texts(Row(parts))
    if not found or not all(text.strip() and kinds(text) for text in found):
        return None
    return tuple(dict.fromkeys(found)), edges[0]


def kinds(text: str) -> bool:
    """Whether it is words and white space, and more than a letter or two."""
    words = "".join(text.split())
    return len(words) > 2 and all(kind_of(each) is Kind.WORD for each in words)


def _texts(part: Part) -> list[str]:
    """Empty where they are too many, or where it is no list."""
    match part:
        case Chars(literal=str(literal)):
            return [literal]
        case Chars(source=r"\s"):
            return [" "]
        case Choice(parts):
            each = [_texts(one) for one in parts]
            found = list(itertools.chain.from_iterable(each)) if all(each) else []
        case Row(parts):
            found = [""]
            for one in parts:
                found = [left + right for left in found for right in _texts(one)]
                if len(found) > _PHRASES:
                    return []
        case Repeat(Chars(source=r"\s"), least, _) if least:
            return [" "]
        case Repeat(inner, least, most):
            if most > 4:
                return []
            texts = _texts(inner)
            found = []
            for times in range(least, most + 1):
                found += map("".join, itertools.islice(itertools.product(texts, repeat=times), 65))
            if not texts:
                return []
        case _:
            return []
    return found if len(found) <= _PHRASES else []

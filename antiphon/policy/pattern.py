"""Expressions as an automaton's source: on text as it is, or on folded text."""

from collections.abc import Callable, Hashable, Sequence

from antiphon.policy.automaton import End, Match, Outcome, Unit
from antiphon.policy.graph import Graph
from antiphon.policy.syntax import Chars, Guard, holds_between

Reads = Callable[[Chars, str], bool]
IsWord = Callable[[str], bool]


def is_word_as_is(character: str) -> bool:
    r"""As `\\w` of the standard library has it."""
    return character.isalnum() or character == "_"


def reads_as_is(chars: Chars, character: str) -> bool:
    return chars.has(character)


class Pattern:
    """One expression of one rule. It is numbered as its rule is."""

    def __init__(
        self,
        rule: int,
        holds: bool,
        graph: Graph,
        *,
        reads: Reads = reads_as_is,
        is_word: IsWord = is_word_as_is,
    ) -> None:
        self.rule = rule
        self.holds = holds
        self.graph = graph
        self._reads = reads
        self.is_word = is_word
        self._states: dict[tuple[int, bool], _At] = {}

    def begin(self, after_word: bool, character: str) -> tuple[Outcome, ...]:
        return self.arrive(self.graph.first, after_word, character)

    def arrive(
        self, ways: Sequence[tuple[int, Guard]], before: bool, character: str
    ) -> tuple[Outcome, ...]:
        after = self.is_word(character)
        reached: dict[Outcome, None] = {}
        for number, guard in ways:
            place = self.graph.places[number]
            if holds_between(guard, before, after) and self._reads(place.chars, character):
                if Guard.NONE in place.ends:
                    reached[Match(self.rule, End.HERE)] = None
                if place.following or Guard.NONE not in place.ends:
                    reached[self._at(number, after)] = None
        return tuple(reached)

    def forget(self) -> None:
        self._states.clear()

    def _at(self, number: int, word: bool) -> "_At":
        key = (number, word)
        if key not in self._states:
            self._states[key] = _At(self, number, word)
        return self._states[key]


class _At:
    """A character of the expression was read; the last one belonged to a word, or not."""

    __slots__ = ("_after", "_ends", "_pattern", "_ways", "_word", "complete", "holding")

    def __init__(self, pattern: Pattern, number: int, word: bool) -> None:
        place = pattern.graph.places[number]
        self.holding = (pattern.rule,) if pattern.holds else ()
        self._pattern = pattern
        self._ways = place.following
        self._ends = tuple(guard for guard in place.ends if guard)
        self._word = word
        self._after: dict[Unit, tuple[Outcome, ...]] = {}
        self.complete = (pattern.rule,) if self._is_end(False) else ()

    def after(self, unit: Unit) -> tuple[Outcome, ...]:
        known = self._after.get(unit)
        if known is None:
            assert isinstance(unit, str)
            known = self._pattern.arrive(self._ways, self._word, unit)
            if self._is_end(self._pattern.is_word(unit)):
                known = (Match(self._pattern.rule, End.BEFORE), *known)
            self._after[unit] = known
        return known

    def _is_end(self, after: bool) -> bool:
        return any(holds_between(guard, self._word, after) for guard in self._ends)


class AsIs:
    """Text as it is. The context is whether a word's character came last."""

    start = False
    weight = 0
    size = 0

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.holds = any(each.holds for each in patterns)
        self._patterns = tuple(patterns)
        chars = {place.chars: None for each in patterns for place in each.graph.places}
        self._chars = tuple(chars)
        self._begun: dict[tuple[Hashable, Unit], tuple[Outcome, ...]] = {}

    def signature(self, character: str) -> Hashable:
        read = (chars.has(character) for chars in self._chars)
        return is_word_as_is(character), *read

    def units(self, character: str) -> Sequence[Unit]:
        return (character,)

    def context(self, before: Hashable, unit: Unit) -> Hashable:
        return is_word_as_is(str(unit))

    def begin(self, before: Hashable, unit: Unit) -> Sequence[Outcome]:
        key = (before, unit)
        if key not in self._begun:
            self._begun[key] = tuple(
                outcome
                for each in self._patterns
                for outcome in each.begin(bool(before), str(unit))
            )
        return self._begun[key]

    def forget(self) -> None:
        self._begun.clear()
        for each in self._patterns:
            each.forget()

"""Ways in which a phrase is disguised by the letters it is written with, as partial matches of
folded text: other signs for letters, letters apart or repeated, rot13, back to front.

A disguise never joins ordinary words: where letters are set apart all of them are, or by signs that
stand within a word, and such a phrase begins and ends where words do.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from antiphon.policy.automaton import End, Match, Outcome, Unit
from antiphon.policy.normal import CAPITAL_I, LEET, SIGNS, Kind, folded, kind_of

GAP_MOST = 16
"""Characters between two words of a phrase."""
STOPS = ".?!"
_SENTENCE = GAP_MOST + 1
"""A gap that has only a stop so far: with a space after it a sentence has ended."""
_WITHIN_MOST = 3
"""Signs between two letters of a word."""
_APART_MOST = 4
"""Characters between letters that are all set apart."""
_REPEATED = 3
"""No English word has a letter three times in a row, so from here on it is a disguise: "good" is
not a "god" that is drawn out."""
_APART_LEAST = 3
_ROT13_LEAST = 4
_REVERSED_LEAST = 6
"""Letters of a phrase; shorter words are too often another word when they are turned: "live"."""


class Manner(Enum):
    """How letters follow each other."""

    PLAIN = auto()
    LEET = auto()
    """Signs may stand for letters: not for most of a short word, or figures would be words."""
    WITHIN = auto()
    """Signs may stand between letters, and letters be repeated."""
    APART = auto()
    """Something stands between any two letters."""


@dataclass(frozen=True, slots=True)
class Letter:
    """`times` in a row. `after_gap` where a word of the phrase begins that isn't its first."""

    character: str
    times: int = 1
    after_gap: bool = False


class Spelling:
    """One way to write one phrase of one rule."""

    def __init__(
        self, rule: int, holds: bool, manner: Manner, letters: tuple[Letter, ...], edges: bool
    ) -> None:
        self.rule = rule
        self.holds = holds
        self.manner = manner
        self.letters = letters
        first, last = letters[0].character, letters[-1].character
        self.after_no_word = edges and kind_of(first) is Kind.WORD
        self.before_no_word = edges and kind_of(last) is Kind.WORD
        count = len(letters)
        self._signs_most = 0
        if manner is Manner.LEET:
            self._signs_most = count // 2 if count <= 4 else count - 2
        self._accepted = tuple(self._characters(letter.character) for letter in letters)
        self._states: dict[tuple[int, int, int, int], _Spelled] = {}

    @property
    def first_units(self) -> Iterator[str]:
        plain, signs = self._accepted[0]
        yield from plain
        if self._signs_most:
            yield from signs

    def signs_of(self, letter: str) -> str:
        """All that may be read as the letter."""
        return "".join(self._characters(letter))

    def begin(self, unit: str) -> tuple[Outcome, ...]:
        return self._read(0, unit, 0)

    def forget(self) -> None:
        self._states.clear()

    def after(self, at: int, times: int, gap: int, signs: int, unit: str) -> tuple[Outcome, ...]:
        """After `times` of letter `at`, and then `gap` characters that are none."""
        reached: list[Outcome] = []
        kind = kind_of(unit)
        within = self.manner is Manner.WITHIN
        letter = self.letters[at]
        repeated = within and unit in self._accepted[at][0]
        if repeated:
            reached.append(self._state(at, min(times + 1, max(_REPEATED, letter.times)), 0, signs))
        complete = not within or times == letter.times or times >= _REPEATED
        if not complete:
            return (*reached, *self._within(at, times, gap, signs, kind))
        if at == len(self.letters) - 1:
            if not repeated and not (self.before_no_word and kind is Kind.WORD):
                reached.append(Match(self.rule, End.BEFORE))
            return tuple(reached)
        following = self.letters[at + 1]
        if following.after_gap:
            if gap:
                reached += self._read(at + 1, unit, signs)
            if kind in (Kind.SPACE, Kind.SIGN, Kind.OTHER):
                reached += self._gap(at, times, gap, signs, unit)
        elif self.manner is Manner.APART:
            if gap:
                reached += self._read(at + 1, unit, signs)
            if kind in (Kind.SPACE, Kind.SIGN) and gap < _APART_MOST:
                reached.append(self._state(at, times, gap + 1, signs))
        else:
            reached += self._read(at + 1, unit, signs)
            reached += self._within(at, times, gap, signs, kind)
        return tuple(reached)

    def _gap(self, at: int, times: int, gap: int, signs: int, unit: str) -> tuple[Outcome, ...]:
        """One more character between two words, unless they are of two sentences."""
        if gap == _SENTENCE:
            return () if kind_of(unit) is Kind.SPACE else (self._state(at, times, 2, signs),)
        if not gap and unit in STOPS and self.manner is not Manner.APART:
            return (self._state(at, times, _SENTENCE, signs),)
        return (self._state(at, times, gap + 1, signs),) if gap < GAP_MOST else ()

    def _within(self, at: int, times: int, gap: int, signs: int, kind: Kind) -> tuple[Outcome, ...]:
        if self.manner is Manner.WITHIN and kind is Kind.SIGN and gap < _WITHIN_MOST:
            return (self._state(at, times, gap + 1, signs),)
        return ()

    def ends_with_text(self, at: int, times: int) -> bool:
        letter = self.letters[at]
        return at == len(self.letters) - 1 and (
            self.manner is not Manner.WITHIN or times == letter.times or times >= _REPEATED
        )

    def _read(self, at: int, unit: str, signs: int) -> tuple[Outcome, ...]:
        """The unit as letter `at`, which is the next."""
        plain, others = self._accepted[at]
        if unit not in plain:
            if unit not in others or signs >= self._signs_most:
                return ()
            signs += 1
        if (
            at == len(self.letters) - 1
            and not self.before_no_word
            and (self.manner is not Manner.WITHIN or self.letters[at].times == 1)
        ):
            return (Match(self.rule, End.HERE),)
        return (self._state(at, 1, 0, signs),)

    def _state(self, at: int, times: int, gap: int, signs: int) -> "_Spelled":
        key = (at, times, gap, signs)
        if key not in self._states:
            self._states[key] = _Spelled(self, key)
        return self._states[key]

    def _characters(self, letter: str) -> tuple[str, str]:
        """Those that are the letter, and those that may stand for it."""
        plain = letter + (CAPITAL_I if letter == "i" else "")
        if self.manner is not Manner.PLAIN:
            plain += SIGNS.get(letter, "")
        others = LEET.get(letter, "") if self.manner is Manner.LEET else ""
        return plain, "".join(each for each in others if each not in plain)


class _Spelled:
    __slots__ = ("_after", "_key", "_spelling", "complete", "holding")

    def __init__(self, spelling: Spelling, key: tuple[int, int, int, int]) -> None:
        self.holding = (spelling.rule,) if spelling.holds else ()
        self._spelling = spelling
        self._key = key
        at, times, gap, _ = key
        ends = not gap and spelling.ends_with_text(at, times)
        self.complete = (spelling.rule,) if ends else ()
        self._after: dict[Unit, tuple[Outcome, ...]] = {}

    def after(self, unit: Unit) -> tuple[Outcome, ...]:
        known = self._after.get(unit)
        if known is None:
            assert isinstance(unit, str)
            known = self._after[unit] = self._spelling.after(*self._key, unit)
        return known


def spellings(rule: int, holds: bool, phrase: str, *, edges: bool) -> list[Spelling]:
    """All of a phrase; none where nothing of it is left when it is folded."""
    words = _words(phrase)
    if not words:
        return []
    plain = _letters(words)
    found = [Spelling(rule, holds, Manner.LEET, plain, edges)]
    if not all(kind_of(each) is Kind.WORD for word in words for each in word):
        return found
    count = len(plain)
    found.append(Spelling(rule, holds, Manner.WITHIN, _runs(words), True))
    if count >= _APART_LEAST:
        found.append(Spelling(rule, holds, Manner.APART, plain, True))
    turned = [codecs.encode(word, "rot13") for word in words]
    if count >= _ROT13_LEAST and turned != words:
        found.append(Spelling(rule, holds, Manner.PLAIN, _letters(turned), True))
    reversed_words = [word[::-1] for word in reversed(words)]
    if count >= _REVERSED_LEAST and reversed_words != words:
        found.append(Spelling(rule, holds, Manner.PLAIN, _letters(reversed_words), True))
    return found


def plain_spelling(rule: int, holds: bool, phrase: str, *, edges: bool) -> Spelling | None:
    """As an encoded text is expected to have it; None for one that is too short to be told from
    what other texts decode to."""
    words = _words(phrase)
    letters = _letters(words)
    if len(letters) < _APART_LEAST:
        return None
    return Spelling(rule, holds, Manner.PLAIN, letters, edges)


def _words(phrase: str) -> list[str]:
    words = (folded(word) for word in phrase.split())
    return [word for word in words if word]


def _letters(words: list[str]) -> tuple[Letter, ...]:
    return tuple(
        Letter(character, after_gap=bool(number and not index))
        for number, word in enumerate(words)
        for index, character in enumerate(word)
    )


def _runs(words: list[str]) -> tuple[Letter, ...]:
    runs: list[Letter] = []
    for letter in _letters(words):
        last = runs[-1] if runs else None
        if last is not None and last.character == letter.character and not letter.after_gap:
            runs[-1] = Letter(last.character, last.times + 1, last.after_gap)
        else:
            runs.append(letter)
    return tuple(runs)

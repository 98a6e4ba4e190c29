"""Finds the turn's system prompt in its output: so many of its words in a row, whatever their case,
spacing and punctuation.

Text is held from the first word of a run that could still become long enough.
"""

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace

from antiphon.verdicts import Action, Finding

INDEXED_WORDS = 4_000
"""Words of a system prompt that are known; more would cost the start of a turn too much."""
_APART = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_JOINED = r"\u00ad\u0300-\u036f\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff"
_PIECE = re.compile(rf"[{_APART}]|(?:[{_JOINED}]|(?![{_APART}])[^\W_])+|.", re.DOTALL)
"""A part of a word, or one character between words. Marks and what can't be seen join a word;
scripts without spaces have a word for each character."""
_ALONE = re.compile(rf"[{_APART}]|(?![{_JOINED}])[\W_]")


class PromptIndex:
    """Every sequence of words that a prompt has: its suffix automaton, which follows an output at a
    constant cost a word."""

    def __init__(self, prompt: str) -> None:
        self.transitions: list[dict[str, int]] = [{}]
        self.lengths = [0]
        self.links = [-1]
        last = 0
        for count, word in enumerate(_words(prompt)):
            if count == INDEXED_WORDS:
                break
            last = self._append(word, last)

    def _append(self, word: str, last: int) -> int:
        new = self._state({}, self.lengths[last] + 1)
        state = last
        while state >= 0 and word not in self.transitions[state]:
            self.transitions[state][word] = new
            state = self.links[state]
        if state < 0:
            self.links[new] = 0
            return new
        target = self.transitions[state][word]
        if self.lengths[target] != self.lengths[state] + 1:
            copy = self._state(dict(self.transitions[target]), self.lengths[state] + 1)
            self.links[copy] = self.links[target]
            self.links[target] = copy
            while state >= 0 and self.transitions[state].get(word) == target:
                self.transitions[state][word] = copy
                state = self.links[state]
            target = copy
        self.links[new] = target
        return new

    def _state(self, transitions: dict[str, int], length: int) -> int:
        self.transitions.append(transitions)
        self.lengths.append(length)
        self.links.append(0)
        return len(self.lengths) - 1


@functools.lru_cache(maxsize=16)
def prompt_index(prompt: str) -> PromptIndex:
    """Turns of one conversation, and often those of one application, share a prompt."""
    return PromptIndex(prompt)


class Leak:
    """A tracker. A run is found when it has become long enough, and once, however long it gets."""

    def __init__(self, index: PromptIndex, words: int, finding: Finding) -> None:
        self._index = index
        self._words = words
        self._finding = finding
        self._holds = finding.action is not Action.ANNOTATE and not finding.shadow
        self._fed = 0
        self._word = ""
        self._word_from = 0
        self._state = 0
        self._run: list[int] = []
        """Where each word of the run that is under way begins."""
        self._told = False

    @property
    def held_from(self) -> int:
        if not self._holds:
            return self._fed
        if self._run and not self._told:
            return self._run[0]
        return self._word_from if self._word else self._fed

    def feed(self, text: str) -> Sequence[Finding]:
        found = []
        for match in _PIECE.finditer(text):
            piece, at = match.group(), self._fed + match.start()
            if _ALONE.match(piece) is None:
                self._word_from = self._word_from if self._word else at
                self._word += piece
                continue
            found += self._end_word(at)
            if piece.isalpha():
                self._word, self._word_from = piece, at
                found += self._end_word(at + 1)
        self._fed += len(text)
        return found

    def finish(self) -> Sequence[Finding]:
        return self._end_word(self._fed)

    def _end_word(self, end: int) -> list[Finding]:
        word, self._word = _plain(self._word), ""
        if not word:
            return []
        if self._told:
            following = self._index.transitions[self._state].get(word)
            if following is not None:
                self._state = following
                return []
            # What comes now can't be part of a match that begins inside of the one that was told.
            self._told, self._state, self._run = False, 0, []
        self._follow(word)
        if len(self._run) < self._words:
            return []
        self._told = True
        return [replace(self._finding, start=self._run[0], end=end)]

    def _follow(self, word: str) -> None:
        """The longest run that ends with this word: a shorter one where the longer is broken."""
        index = self._index
        length = len(self._run)
        while word not in index.transitions[self._state] and self._state:
            self._state = index.links[self._state]
            length = index.lengths[self._state]
        following = index.transitions[self._state].get(word)
        if following is None:
            self._state, self._run = 0, []
            return
        self._state = following
        self._run = [*self._run[len(self._run) - length :], self._word_from]


def _words(text: str) -> Iterator[str]:
    for match in _PIECE.finditer(text):
        if word := _plain(match.group()):
            yield word


def _plain(piece: str) -> str:
    """As it is compared; "" for what is no word."""
    letters = filter(str.isalnum, unicodedata.normalize("NFKD", piece))
    return "".join(letters).casefold()

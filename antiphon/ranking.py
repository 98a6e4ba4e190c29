"""How what was found by words and what was found by meaning becomes one list. Pure; it knows no
text, no store and no model.

Both scores are absolute, and are added up: measured on questions with known answers, that loses
fewer of them than adding up ranks does (docs/files.md has the figures), and it tells a search that
finds what was asked for from one that finds whatever is least unlike it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from antiphon.document_records import FoundChunk
from antiphon.embedding import Neighbour
from antiphon.ids import FileId

TEXT_SHARE = 0.5
"""What words count for beside the meaning: from 0.4 to 0.6 there is hardly a difference."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")
_EMPTY_WORDS = """
    a about after again all also am an and any are as at be because been before being between
    both but by can could did do does doing down during each for from further get give had has
    have having he her here hers him his how i if in into is it its itself just like me more
    most my no nor not now of off on once only or other our out over own please same she should
    so some such tell than that the their them then there these they this those through to too
    under until up us very was we were what when where which while who whom whose why will with
    would you your yours
"""
"""English words that every text has. Those of other languages only cost time: as common as they
are there, they count for next to nothing."""
_EMPTY = frozenset(_EMPTY_WORDS.split())
_MOST_TERMS = 24
"""Of a long question, its first words: more make a search slower, and no better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A piece of a file, with a score of 0…1."""

    file: FileId
    number: int
    score: float


class HybridRanker:
    """What is found by both kinds comes before what is found by one of them."""

    def terms(self, question: str) -> Sequence[str]:
        """The words of a question that are worth looking for, each once."""
        words = [_without_clitic(word) for word in _WORD.findall(question.casefold())]
        meaningful = [word for word in words if word not in _EMPTY]
        return tuple(dict.fromkeys(meaningful or words))[:_MOST_TERMS]

    def ranked(
        self,
        texts: Sequence[FoundChunk],
        neighbours: Sequence[Neighbour],
        *,
        text_share: float | None,
    ) -> Sequence[Ranked]:
        """All of them, the best first. Where nothing is known of the meaning, words count alone."""
        share = TEXT_SHARE if text_share is None else text_share
        if not neighbours:
            share = 1.0
        by_text = {(each.file, each.chunk.number): each.score for each in texts}
        by_meaning = {(each.file, each.number): max(each.similarity, 0.0) for each in neighbours}
        # Of a piece that only words have found it is known that its meaning is no nearer than that
        # of the last neighbour.
        least = min(by_meaning.values(), default=0.0)
        scores = {
            key: share * by_text.get(key, 0.0) + (1 - share) * by_meaning.get(key, least)
            for key in by_text.keys() | by_meaning.keys()
        }
        return [
            Ranked(file=file, number=number, score=min(score, 1.0))
            for (file, number), score in sorted(
                scores.items(), key=lambda each: (-each[1], each[0])
            )
        ]


def averaged(ways: Sequence[Sequence[Ranked]]) -> Sequence[Ranked]:
    """One list of what was found of a question that was asked in these ways, by the mean of its
    scores, the best first: what isn't found in one way has none of it."""
    if len(ways) == 1:
        return ways[0]
    scores: dict[tuple[FileId, int], float] = {}
    for each in chain.from_iterable(ways):
        key = (each.file, each.number)
        scores[key] = scores.get(key, 0.0) + each.score / len(ways)
    return [
        Ranked(file=file, number=number, score=score)
        for (file, number), score in sorted(scores.items(), key=lambda each: (-each[1], each[0]))
    ]


def _without_clitic(word: str) -> str:
    """`president's` is about a president."""
    return word.replace("\u2019", "'").partition("'")[0] or word

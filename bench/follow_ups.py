"""Conversations of two questions, made of questions that each stand by themselves.

The first names what it is about; the second, about a passage near to the first one's, leaves out
what both have in common and says "it" instead, as people do.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from antiphon.ranking import HybridRanker
from bench.questions import Question

_NEAR = 3000
"""Characters between what answers the first and what answers the second."""
_TOKEN = re.compile(r"[^\W_]+(?:[-'\u2019][^\W_]+)*|\s+|.")
_JOINING = frozenset(("a", "an", "and", "for", "in", "of", "on", "the", "to"))
_DETERMINERS = frozenset(("a", "an", "that", "the", "these", "this", "those"))
_RANKER = HybridRanker()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """`said` is how the second question is asked after the first."""

    first: str
    said: str
    second: Question


def follow_ups(questions: Sequence[Question]) -> list[Conversation]:
    """Of each question and the next one of its text, where they are near and about the same."""
    ordered = sorted(questions, key=lambda each: (each.corpus, each.start))
    made = []
    for first, second in pairwise(ordered):
        shared = set(_RANKER.terms(first.text)) & set(_RANKER.terms(second.text))
        is_near = first.corpus == second.corpus and second.start - first.start <= _NEAR
        if is_near and shared:
            said = without(second.text, shared)
            made.append(Conversation(first=first.text, said=said, second=second))
    return made


def interrupted(questions: Sequence[Question], *, seed: int = 1) -> list[Conversation]:
    """Of each question, as it is, after one about another text."""
    dice = random.Random(seed)
    made = []
    for second in questions:
        first = dice.choice([each for each in questions if each.corpus != second.corpus])
        made.append(Conversation(first=first.text, said=second.text, second=second))
    return made


def without(question: str, left_out: set[str]) -> str:
    """The question, with "it" for these words and whatever joins several of them."""
    said: list[str] = []
    joining: list[str] = []
    is_it = False
    for token in _TOKEN.findall(question):
        is_joining = token.isspace() or token.casefold() in _JOINING
        if not is_joining and left_out.issuperset(_RANKER.terms(token) or [token]):
            if not is_it:
                while said and (said[-1].isspace() or said[-1].casefold() in _DETERMINERS):
                    said.pop()
                said += [" ", "it"]
            joining, is_it = [], True
            continue
        if is_it and is_joining:
            joining.append(token)
            continue
        said += [*joining, token]
        joining, is_it = [], False
    return "".join(said).strip()

"""What is searched for when somebody asks in the middle of a conversation. Pure; no model is asked.

"And what did it cost?" says little by itself: a question that leans on what was said before it is
searched for as it is and together with that, one that stands by itself as it is alone.
"""

import re
from collections.abc import Sequence

from antiphon.retrieval import LOOKED_BACK

_LONGEST = 400
"""Characters of an earlier message: its beginning. More would count for more than what is asked."""
_SHORT = 4
"""Words: so few seldom say what they are about, in any language."""

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_STANDING_IN = frozenset(("he", "her", "him", "it", "it's", "she", "them", "they", "they're"))
"""English words that stand for something else."""
_PERHAPS_WORDS = """
    above another else former hers his instead its latter more one ones other others previous same
    such that that's their theirs then there these this those
"""
_PERHAPS = frozenset(_PERHAPS_WORDS.split())
"""That do so unless the question has named something before them: "the king and his sons"."""
_OPENINGS = frozenset(("also", "and", "but", "or", "so"))
_LONG_OPENINGS = frozenset(("what about", "how about"))


def searched_for(question: str, before: Sequence[str]) -> tuple[str, ...]:
    """The question; and, where it leans, with as much of what its user has said before it, the
    latest first, as it takes until something stands by itself. Where nothing is asked, nothing is
    added."""
    texts = [question]
    for earlier in before[:LOOKED_BACK]:
        if not question.strip() or not leans(texts[-1]):
            break
        texts.append(earlier[:_LONGEST])
    return (question,) if len(texts) == 1 else (question, "\n".join(texts))


def leans(question: str) -> bool:
    """Whether it is likely to be understood only with what was said before it."""
    found = _WORD.findall(question)
    words = [word.casefold().replace("\u2019", "'") for word in found]
    if len(words) <= _SHORT or not _STANDING_IN.isdisjoint(words):
        return True
    if words[0] in _OPENINGS or " ".join(words[:2]) in _LONG_OPENINGS:
        return True
    # Names, as far as capital letters show them; the first word has one anyway.
    name = next((at for at, word in enumerate(found) if at and word[0].isupper()), len(words))
    return not _PERHAPS.isdisjoint(words[:name])

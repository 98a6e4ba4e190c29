"""How a model's own words are taken: what it says around its answer is left out, and what is no
answer is seen to be none. Pure; for titles and summaries."""

from antiphon.actors.workers.expressions import phrases
from antiphon.actors.workers.words import folded, language, scripts, words

_REFUSAL = phrases(
    r"""\b(?:i'm sorry|i am sorry|i apologi[sz]e|i can(?:no|')t|i'm (?:un|not )able|i am (?:un
    |not )able|as an ai|language model|i don't have|i do not have|i'm here to help|tut mir leid
    |ich kann (?:leider )?nicht|als ki|je suis désolé\w?|je ne peux pas|en tant qu'ia
    |en tant que modèle|lo siento|no puedo|como (?:una )?ia|como modelo de)\b"""
)
_RUN = 6
"""Words in a row that only come from the instruction itself."""


def is_refusal(text: str) -> bool:
    return _REFUSAL.search(text.replace("\u2019", "'")) is not None


def repeats(text: str, instruction: str) -> bool:
    """Whether it says the instruction over again, or a good part of it."""
    said, asked = _flat(text), _flat(instruction)
    if not said:
        return False
    runs = (said[at : at + _RUN] for at in range(max(1, len(said) - _RUN + 1)))
    whole = f" {' '.join(asked)} "
    return any(f" {' '.join(run)} " in whole for run in runs)


def is_of_its_kind(text: str, source: str) -> bool:
    """Whether it is written in a script and, as far as that can be told, in the language of what
    it is about."""
    known = scripts(source)
    if known and not scripts(text) <= known:
        return False
    spoken, expected = language(text), language(source)
    return spoken is None or expected is None or spoken == expected


def _flat(text: str) -> list[str]:
    return [folded(word) for word in words(text)]

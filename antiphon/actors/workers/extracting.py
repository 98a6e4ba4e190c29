"""A summary made of what was said, word for word: the sentences that say most, in their order.

Pure, and the same for the same lines. What users say of themselves and of what they want goes
before everything else, since no answer can bring it back. Sentences of an earlier summary compete
with the new ones, so that what was said first outlives many summaries.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from antiphon.actors.workers.expressions import phrases
from antiphon.actors.workers.facts import names, numbers
from antiphon.actors.workers.lines import Line, Speaker
from antiphon.actors.workers.sentences import is_question, sentences, statement_of
from antiphon.actors.workers.words import estimate_tokens, terms, words

_LONGEST = 240
"""Characters of one sentence: the rest of a longer one is left out, and seen to be."""
_MOST = 2_000
"""Sentences that compete: more take longer than they are worth."""
_ALIKE = 0.8
"""Of what one says, in the other: then one of them is enough."""
_KEPT = 0.5
"""What was worth keeping once is worth more than what is as good and new."""
_SPEAKER = re.compile(rf"^({'|'.join(Speaker)}): ")
_OF_THEMSELVES = phrases(
    r"""\b(?:i|i'm|i've|i'll|my|we|we're|we've|our|me|us|ich|mein\w{0,2}|wir|unser\w{0,2}|mir|mich
    |je|j'\w+|mon|ma|mes|nous|notre|nos|yo|mi|mis|me|soy|tengo|vivo|trabajo|nosotros
    |nuestr[oa]s?|somos|io|mio|mia|sono|ho|noi|nostr[oaie]|eu|meu|minha|sou|tenho|moro|nós|ik
    |mijn|wij|we|ons|onze)\b"""
)
_MATTERS = phrases(
    r"""\b(?:remember|important|must|never|always|decid\w+|agree\w*|plan\w*|prefer\w*|favou?rite
    |allerg\w+|deadline|due|budget|password|called|named|name|call me|instead|changed?|need
    |want|merk\w*|wichtig\w*|muss|nie|immer|entschieden|geplant|lieber|bevorzug\w+|lieblings\w+
    |heiß\w+|frist|termin|statt|brauche|will|souviens|retiens|important\w*|jamais|toujours
    |décid\w+|préfèr\w+|appel\w+|besoin|veux|dois|recuerda|importante|nunca|siempre|decid\w+
    |prefier\w+|llam\w+|necesito|quiero|debo)\b"""
)
_ASKS = phrases(
    r"""^\W*(?:please\s+|and\s+|so\s+|ok(?:ay)?,?\s+|now\s+)*(?:can|could|would|will)\s+you\b
    |^\W*(?:please\s+|now\s+|then\s+|and\s+)*(?:tell|give|show|explain|write|list|name|describe
    |summari[sz]e|translate|say|make|help|suggest|compare|continue|repeat|answer|count|what|how
    |why|when|where|who|which)\b|^\W*(?:kannst|könntest|bitte|erkläre?|schreib\w*|nenn\w*
    |sag\w*|was|wie|warum|wann|wo|wer)\b|^\W*(?:peux|pouvez|explique|écri\w+|donne|dis|qu'est
    |quel\w*|comment|pourquoi|quand|où|qui)\b|^\W*(?:puedes|podrías|explica|escribe|dime|dame
    |qué|cómo|por qué|cuándo|dónde|quién)\b"""
)
_IN_PASSING = phrases(
    r"""\b(?:thanks|thank you|i (?:read|heard|think|thought|find|found|guess|see|know|didn't know)
    |interesting|great|cool|nice|wow|danke|ich (?:finde|fand|glaube|denke|dachte|habe gelesen
    |habe gehört|wusste)|interessant|toll|merci|je (?:trouve|pense|crois|savais|ne savais)|j'ai lu
    |intéressant|super|gracias|creo|pienso|leí|no sabía|interesante)\b"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One that competes. `place` is where it stands among all."""

    speaker: Speaker
    text: str
    place: int
    is_kept: bool
    """It stands in the earlier summary."""


def extract(earlier: str, lines: Sequence[Line], tokens: int) -> str:
    """At most so many tokens, by estimate; empty where nothing was said."""
    found = list(_competing(earlier, lines))
    chosen: list[Sentence] = []
    known: list[frozenset[str]] = []
    room = tokens
    for sentence in sorted(found, key=lambda each: (-worth(each), each.place)):
        cost = estimate_tokens(f"{sentence.text} ")
        about = frozenset(terms(sentence.text))
        if cost > room or any(_are_alike(about, other) for other in known):
            continue
        chosen.append(sentence)
        known.append(about)
        room -= cost
    chosen.sort(key=lambda each: each.place)
    return _fitting(chosen, tokens)


def said_in(summary: str) -> Iterator[tuple[Speaker, str]]:
    """The sentences of a summary, whoever made it."""
    for line in summary.splitlines():
        named = _SPEAKER.match(line)
        speaker = Speaker.OTHER if named is None else Speaker(named[1])
        for sentence in sentences(line if named is None else line[named.end() :]):
            yield speaker, sentence


def worth(sentence: Sentence) -> float:
    """How much is lost without it."""
    text = sentence.text
    length = len(words(text))
    found = min(len(numbers(text)), 2) * 0.6 + min(len(names([text])), 3) * 0.5
    if sentence.speaker is Speaker.ASSISTANT:
        value = 0.2 + 0.5 * found
    else:
        value = 1.0 + found
        if is_question(text) or _ASKS.match(text):
            value -= 1.5
        elif _IN_PASSING.search(text):
            value -= 0.5
        else:
            value += 1.5 if _OF_THEMSELVES.search(text) else 1.2
    if _MATTERS.search(text):
        value += 0.8
    if length < 3:
        value -= 1.5
    elif length > 35:
        value -= 0.5
    return value + (_KEPT if sentence.is_kept else 0.0)


def _competing(earlier: str, lines: Iterable[Line]) -> Iterator[Sentence]:
    place = 0
    for speaker, text in said_in(earlier):
        yield Sentence(speaker=speaker, text=_clipped(text), place=place, is_kept=True)
        place += 1
    for line in lines:
        for text in sentences(line.text):
            if place >= _MOST:
                return
            said = statement_of(text) or text
            yield Sentence(speaker=line.speaker, text=_clipped(said), place=place, is_kept=False)
            place += 1


def _clipped(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST].rsplit(None, 1)[0]} …"


def _are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    smaller = min(len(one), len(other))
    return smaller > 0 and len(one & other) >= _ALIKE * smaller


def _fitting(chosen: list[Sentence], tokens: int) -> str:
    """A line for each change of speaker; what that adds may be too much for the last one."""
    while chosen:
        text = "\n".join(_shown(chosen))
        if estimate_tokens(text) <= tokens:
            return text
        chosen.remove(min(chosen, key=lambda each: (worth(each), -each.place)))
    return ""


def _shown(chosen: Sequence[Sentence]) -> Iterator[str]:
    line: list[str] = []
    speaker: Speaker | None = None
    for sentence in chosen:
        if sentence.speaker is not speaker and line:
            yield _line(speaker, line)
            line = []
        speaker = sentence.speaker
        line.append(sentence.text)
    if line:
        yield _line(speaker, line)


def _line(speaker: Speaker | None, texts: Sequence[str]) -> str:
    text = " ".join(texts)
    return text if speaker in {None, Speaker.OTHER} else f"{speaker}: {text}"

"""The summary of a conversation's first items: when one is due, how a model is asked for it, and
whether what it writes is worth more than the sentences as they were said. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from antiphon.actors.workers.asking import is_of_its_kind, is_refusal, repeats
from antiphon.actors.workers.extracting import extract, said_in
from antiphon.actors.workers.facts import facts, numbers
from antiphon.actors.workers.lines import Line, Speaker, lines_of, turns_of, whole
from antiphon.actors.workers.sentences import sentences
from antiphon.actors.workers.words import estimate_tokens, folded, terms, words
from antiphon.context_records import Summary
from antiphon.context_settings import ContextSettings
from antiphon.events import Message
from antiphon.ids import ItemId
from antiphon.records import Item

EXTRACT = "extract"
"""Who has made a summary of sentences as they were said."""
_SHORTEST = 20
_LEAST_VARIED = 0.35
"""Different words among all: a model that goes round in circles has fewer."""
_CLIPS = (600, 300, 150, 80)
"""Characters of each line that a model is shown, so that all lines have room."""
_CHARS_A_TOKEN = 3

INSTRUCTION = (
    "Summarise the conversation below in a few sentences, in its own language. Keep every name, "
    "number, date, decision and wish of the user. Add nothing that was not said."
)
_PREFIX = re.compile(
    r"^(?:here(?:'s| is)[^:\n]{0,60}:|(?:summary|zusammenfassung|résumé|resumen)\s*:)\s*", re.I
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What the next summary is to cover, beside what the present one does."""

    items: tuple[Item, ...]
    lines: tuple[Line, ...]
    tokens: int
    earlier: str
    """The text of the present summary."""
    until: ItemId

    @property
    def source(self) -> str:
        return "\n".join([self.earlier, *(line.text for line in self.lines)])


def due(
    items: Sequence[Item], summary: Summary | None, *, room: int, settings: ContextSettings
) -> Due | None:
    """From the items that follow the present summary; `room` is for turns, before any is left out.
    Whole turns, the oldest first, as many as leave `keep_share` of what there may be before a
    summary is due."""
    turns = list(turns_of(whole(items)))
    left = sum(turn.tokens for turn in turns)
    threshold = settings.summarise_at_share * room
    if left <= threshold:
        return None
    keep = settings.keep_share * threshold
    covered: list[Item] = []
    tokens = 0
    for turn in turns[:-1]:
        if left - tokens <= keep:
            break
        covered += turn.items
        tokens += turn.tokens
    if not covered:
        return None
    return Due(
        items=tuple(covered),
        lines=tuple(lines_of(covered)),
        tokens=tokens,
        earlier="" if summary is None else summary.text,
        until=covered[-1].id,
    )


def messages(due: Due, *, tokens: int) -> tuple[Message, ...] | None:
    """What a model is shown, within so many tokens; None where even clipped lines are too many."""
    for clip in _CLIPS:
        said = [f"{line.speaker}: {_clipped(line.text, clip)}" for line in due.lines]
        earlier = [f"Earlier: {due.earlier}"] if due.earlier else []
        text = "\n".join([INSTRUCTION, "", *earlier, *said, "", "Summary:"])
        if len(text) <= tokens * _CHARS_A_TOKEN and estimate_tokens(text) <= tokens:
            return (Message(role="user", content=text),)
    return None


def extracted(due: Due, *, tokens: int) -> str:
    """Empty where nothing was said, and nothing was summarised before."""
    return extract(due.earlier, due.lines, tokens)


def better(answer: str, as_said: str, due: Due, *, is_cut: bool, tokens: int) -> str | None:
    """The summary in a model's answer, where it keeps as many of the facts that matter as the
    sentences that were said; None otherwise. `is_cut` says that it had no room for more."""
    text = _checked(answer, due, is_cut=is_cut, tokens=tokens)
    if text is None:
        return None
    known = _facts_of(due)
    return text if _kept(known, text) >= _kept(known, as_said) else None


def _checked(answer: str, due: Due, *, is_cut: bool, tokens: int) -> str | None:
    """The summary in a model's answer; None where there is none."""
    text = _PREFIX.sub("", answer.strip()).strip()
    spoken = sentences(text)
    if is_cut and spoken and not text.endswith((".", "!", "?", "。", "！", "？")):
        spoken.pop()
    text = " ".join(spoken)
    if len(text) < _SHORTEST or estimate_tokens(text) > 2 * tokens:
        return None
    if is_refusal(text) or repeats(text, INSTRUCTION) or _goes_in_circles(text, spoken):
        return None
    if text.startswith(tuple(f"{speaker}:" for speaker in Speaker)):
        return None  # it goes on with the conversation
    source = due.source
    if not is_of_its_kind(text, source) or numbers(text) - numbers(source):
        return None
    return text


def _facts_of(due: Due) -> frozenset[str]:
    """Of what users have said and of what was kept so far; where that is nothing that could be
    right or wrong, its words."""
    kept = [text for speaker, text in said_in(due.earlier) if speaker is not Speaker.ASSISTANT]
    users = [line.text for line in due.lines if line.speaker is Speaker.USER]
    text = "\n".join([*kept, *users])
    return _said(text) or frozenset(terms(text))


def _said(text: str) -> frozenset[str]:
    return facts(sentence for _, sentence in said_in(text))


def _kept(known: frozenset[str], text: str) -> int:
    return len(known & (numbers(text) | set(map(folded, words(text)))))


def _goes_in_circles(text: str, spoken: Sequence[str]) -> bool:
    said = list(terms(text))
    varied = len(set(said)) / max(len(said), 1)
    return varied < _LEAST_VARIED or any(one == other for one, other in pairwise(spoken))


def _clipped(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most].rsplit(None, 1)[0]} …"

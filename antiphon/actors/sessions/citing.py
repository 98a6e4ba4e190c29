"""A turn's citations, pure: marks in what was generated become events of their own, and no client
ever sees one, however the text was cut into pieces.

It stands before the policy: what is judged is the text that leaves, so a mark can hide nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from antiphon.actors.sessions.alignment import Alignment
from antiphon.actors.sessions.calling import Spoken
from antiphon.sources import Source
from antiphon.tools import CallEnded, CallStarted
from antiphon.turn_events import ChoiceEnded, Cited, Delta, Said
from antiphon.verdicts import Action, Finding, Stage

OPENING, CLOSING = "【", "】"
_NUMBERS = r"\s{0,2}\d{1,4}(?:\s{0,2}[,;]\s{0,2}\d{1,4}){0,7}\s{0,2}"
_NAME = rf"[†:|][^{OPENING}{CLOSING}\n]{{0,40}}"
"""Some models write what they cite, too."""
_MARK = re.compile(rf"{OPENING}({_NUMBERS})(?:{_NAME})?{CLOSING}")
_BEGUN = re.compile(rf"{OPENING}[\d\s,;]{{0,71}}(?:{_NAME})?")
"""What comes next may make it a mark. It is never longer than 114 characters."""
_CUT = re.compile(rf"{OPENING}\s*\d.*")


def mark(number: int) -> str:
    """What a model writes to cite the source of that number."""
    return f"{OPENING}{number}{CLOSING}"


@dataclass(slots=True)
class _Text:
    """One choice's. Positions are characters of what was generated."""

    held: str = ""
    """What may become a mark."""
    out: int = 0
    """How many characters have been let out."""
    read: int = 0
    has_space: bool = False
    """The last that was read was one, and it is held: before a mark it only comes where a word
    follows that."""
    is_marked: bool = False
    """The last that was read was a mark."""
    alignment: Alignment = field(default_factory=Alignment)


class Citing:
    """Of one turn, whose model was shown these sources. Without any, everything passes."""

    def __init__(self, sources: Sequence[Source], choices: int) -> None:
        self._sources = tuple(sources)
        self._texts = [_Text() for _ in range(choices)]

    def take(self, event: Spoken) -> Sequence[Said | ChoiceEnded]:
        """What was generated."""
        if not self._sources:
            return (event,)
        text = self._texts[event.choice]
        match event:
            case Delta():
                text.alignment.add(event.text, event.logprobs)
                return list(self._read(event.choice, text, event.text))
            case ChoiceEnded() | CallStarted():
                return [*self._flush(event.choice, text), event]
            case CallEnded() | _:
                return (event,)

    def reset(self) -> None:
        """Nothing was generated after all, and will be anew."""
        self._texts = [_Text() for _ in self._texts]

    def _read(self, choice: int, text: _Text, new: str) -> Iterator[Delta | Cited]:
        """Text as far as nothing in it can be a mark, and marks that are whole."""
        waiting, text.held = text.held + new, ""
        while waiting:
            begin = waiting.find(OPENING)
            if begin < 0:
                yield from self._said(choice, text, waiting)
                return
            found = _MARK.match(waiting, begin)
            if found is None and _BEGUN.fullmatch(waiting, begin) is not None:
                yield from self._said(choice, text, waiting[:begin])
                text.held = waiting[begin:]
                return
            if found is None:
                yield from self._said(choice, text, waiting[: begin + 1])
                waiting = waiting[begin + 1 :]
                continue
            yield from self._said(choice, text, waiting[:begin])
            yield from self._cited(choice, text, found)
            waiting = waiting[found.end() :]

    def _flush(self, choice: int, text: _Text) -> Iterator[Delta]:
        """There is no more of it. A mark that was cut off is none, and no text either."""
        held, text.held = text.held, ""
        if _CUT.fullmatch(held) is not None:
            _skip(text, len(held))
        elif held:
            yield from self._said(choice, text, held)
        rest = " " if text.has_space and not text.is_marked else ""
        text.has_space = False
        text.out += len(rest)
        logprobs = text.alignment.dealt(0, (), is_last=True)
        if rest or logprobs:
            yield Delta(choice=choice, text=rest, logprobs=logprobs)

    def _said(self, choice: int, text: _Text, said: str) -> Iterator[Delta]:
        if not said:
            return
        shown = said
        if text.has_space and (said[0].isalnum() or not text.is_marked):
            shown = f" {shown}"
        text.has_space, text.is_marked = said.endswith(" "), False
        if text.has_space:
            shown = shown[:-1]
        text.out += len(shown)
        text.read += len(said)
        logprobs = text.alignment.dealt(len(said), ())
        if shown or logprobs:
            yield Delta(choice=choice, text=shown, logprobs=logprobs)

    def _cited(self, choice: int, text: _Text, found: re.Match[str]) -> Iterator[Cited]:
        """One for each source that it names; what names none says nothing."""
        _skip(text, found.end() - found.start())
        for number in dict.fromkeys(map(int, re.findall(r"\d+", found[1]))):
            if 1 <= number <= len(self._sources):
                source = self._sources[number - 1]
                yield Cited(choice=choice, at=text.out, file=source.file, filename=source.filename)


def _skip(text: _Text, source: int) -> None:
    """Log-probabilities of a mark's tokens spell it, so they go with it."""
    start, text.read = text.read, text.read + source
    replaced = Finding(
        rule="", stage=Stage.OUTPUT, action=Action.TRANSFORM, start=start, end=text.read
    )
    text.alignment.dealt(source, (replaced,))
    text.is_marked = True

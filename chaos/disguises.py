"""Fuzzes the output window: `python -m chaos.disguises --streams 20000 --seed 1`.

Banned phrases in every disguise, in plain text, in a tool call's arguments and in JSON answers, cut
at every character and every byte, as a decoder with hold-back delivers them. No character of a
match may pass. With `--broken` a window that holds too little is tried, to see that leaks are seen.
"""

import argparse
import codecs
import itertools
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from antiphon.moderating import OutputWindow, Passed
from antiphon.policy.bounded import Bounded, BoundedRule
from antiphon.policy.expression import literal, parse
from antiphon.policy.window import Window
from antiphon.testing.disguises import disguises_of
from antiphon.verdicts import Action, Stage

PHRASES = (
    "bad",
    "evil",
    "moron",
    "asshole",
    "launch code",
    "kill yourself",
    "project bluebird",
    "buy stolen cards",
    "jazz queue",
    "how to hide my body",
)
_WORDS = re.findall(
    r"\S+",
    """the and a of to in is was for on with as by at from that it an be this which or are not
    have he she they people time year way day man thing world life hand part child eye woman
    place work week case point company number group problem fact batch back killer evident codes
    launched blue birds jazzy queues body hidden carded badge 1,042 3.14 v2.0 e.g. U.S. it's
    we'll""",
)
_HELD_AT_FAULT = 3


@dataclass(frozen=True, slots=True)
class Case:
    """A text with a phrase in it, of which the first `safe` characters may pass."""

    name: str
    phrase: str
    text: str
    safe: int
    end: int
    """Where the disguised phrase ends."""


class TooShort:
    """What a window is that holds a fixed number of characters: it must be caught."""

    def __init__(self, bounded: Bounded) -> None:
        self._bounded = bounded
        self._text = ""
        self._sent = 0
        self._blocked: str | None = None

    @property
    def held(self) -> int:
        return len(self._text) - self._sent

    def feed(self, text: str) -> Passed:
        self._text += text
        return self._pass(max(self._sent, len(self._text) - _HELD_AT_FAULT))

    def finish(self) -> Passed:
        return self._pass(len(self._text))

    def _pass(self, up_to: int) -> Passed:
        found = self._bounded.search(self._text, Stage.OUTPUT)
        if found:
            up_to = max(self._sent, min(up_to, found[0].start))
            self._blocked = found[0].rule
        text = self._text[self._sent : up_to]
        self._sent = up_to
        return Passed(text=text, source=len(text), blocked_by=self._blocked)


def rules() -> Bounded:
    """The phrases, among rules of other kinds that see the same text."""
    banned = [
        BoundedRule(
            rule=phrase,
            action=Action.BLOCK,
            expressions=(literal(phrase, whole_words=True, ignore_case=True),),
            disguises=True,
        )
        for phrase in PHRASES
    ]
    others = [
        BoundedRule(
            rule="key",
            action=Action.BLOCK,
            expressions=(parse(r"\bsk-[A-Za-z0-9_-]{20,64}\b"),),
            disguises=False,
        ),
        BoundedRule(
            rule="name",
            action=Action.ANNOTATE,
            expressions=(parse(r"\b[A-Z][a-z]{2,20} [A-Z][a-z]{2,20}\b"),),
            disguises=False,
        ),
    ]
    return Bounded([*banned, *others])


def cases(rng: random.Random) -> Iterator[Case]:
    """Every phrase in every disguise in every kind of output, over and over, in any order."""
    combinations = [
        (phrase, name, disguise, kind)
        for phrase in PHRASES
        for name, disguise in disguises_of(phrase).items()
        for kind in (_in_text, _in_arguments, _in_answer)
    ]
    while True:
        rng.shuffle(combinations)
        for phrase, name, disguise, kind in combinations:
            disguised = disguise(phrase, rng)
            before, said, after = kind(
                _some_words(rng, 0, 12), disguised.text, _some_words(rng, 0, 6), rng
            )
            shown = disguised.text[: disguised.start]
            safe = len(before) + len(kind("", shown, "", random.Random(0))[1])
            name = f"{name}, {kind.__name__.lstrip('_').replace('_', ' ')}"
            yield Case(name, phrase, before + said + after, safe, len(before) + len(said))


def _some_words(rng: random.Random, least: int, most: int) -> str:
    words = rng.choices(_WORDS, k=rng.randint(least, most))
    return rng.choice([" ", " ", "\n"]).join(words)


def _in_text(before: str, said: str, after: str, rng: random.Random) -> tuple[str, str, str]:
    opening = rng.choice(["", " ", "\n", " (", ' "', " **", "  `"]) if before else ""
    # Words that touch it would make it part of a longer word.
    closing = rng.choice([" ", "\n", ". ", "! ", ")", '"', "**", "` "]) if after else ""
    return before + (opening or " " * bool(before)), said, closing + after


def _in_arguments(before: str, said: str, after: str, rng: random.Random) -> tuple[str, str, str]:
    ascii_only = rng.random() < 0.5

    def quoted(text: str) -> str:
        return json.dumps(text, ensure_ascii=ascii_only)[1:-1]

    gap = " " if before else ""
    return (
        '{"query": "' + quoted(before + gap),
        quoted(said),
        quoted(" " + after if after else "") + '", "limit": 3}',
    )


def _in_answer(before: str, said: str, after: str, rng: random.Random) -> tuple[str, str, str]:
    gap = rng.choice([" ", "\n", "\t"]) if before else ""
    opening = '{"title": "x", "items": [{"text": "' + json.dumps(before + gap)[1:-1]
    closing = json.dumps(rng.choice([" ", "\n", ","]) + after)[1:-1] + '"}]}'
    return opening, json.dumps(said, ensure_ascii=False)[1:-1], closing


def borders(case: Case) -> Iterator[int]:
    """Every byte at which the phrase may be cut."""
    first = len(case.text[: max(0, case.safe - 1)].encode())
    return iter(range(first, len(case.text[: case.end + 1].encode()) + 1))


def pieces(case: Case, place: int, rng: random.Random) -> list[str]:
    """The text as a decoder delivers it that is given it up to the byte, and then the rest; some
    are cut in other places too."""
    data = case.text.encode("utf-8", "surrogatepass")
    places = {0, place, len(data)}
    if rng.random() < 0.3:
        places.update(rng.sample(range(len(data) + 1), min(len(data), rng.randint(1, 12))))
    if rng.random() < 0.05:
        places.update(range(len(data)))
    decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
    cuts = sorted(places)
    parts = [decoder.decode(data[a:b]) for a, b in itertools.pairwise(cuts)]
    return [*parts, decoder.decode(b"", final=True)]


@dataclass(slots=True)
class Report:
    streams: int = 0
    leaked: int = 0
    withheld: int = 0
    """Blocked as they must be, but with less passed than may pass."""
    held_most: int = 0

    @property
    def failed(self) -> bool:
        return bool(self.leaked or self.withheld)


def judge(case: Case, parts: Sequence[str], window: OutputWindow, report: Report) -> str | None:
    """What is wrong with one stream, if anything is."""
    report.streams += 1
    got = ""
    blocked_by = None
    for part in parts:
        passed = window.feed(part)
        got += passed.text
        blocked_by = blocked_by or passed.blocked_by
        report.held_most = max(report.held_most, window.held)
    last = window.finish()
    got += last.text
    blocked_by = blocked_by or last.blocked_by
    if blocked_by is None or got != case.text[: min(len(got), case.safe)]:
        report.leaked += 1
        return f"leaked {got[case.safe : case.end]!r}"
    if blocked_by == case.phrase and len(got) < case.safe:
        report.withheld += 1
        return f"withheld {case.text[len(got) : case.safe]!r}"
    return None


def run(streams: int, seed: int, *, broken: bool = False, seconds: float = 600) -> Report:
    """Prints what went wrong, and how often."""
    rng = random.Random(seed)
    bounded = rules()
    report = Report()
    wrong: Counter[str] = Counter()
    deadline = time.monotonic() + seconds
    for case in cases(rng):
        for place in borders(case):
            if report.streams >= streams or time.monotonic() > deadline:
                break
            window = TooShort(bounded) if broken else Window([bounded.tracker(Stage.OUTPUT)])
            parts = pieces(case, place, rng)
            problem = judge(case, parts, window, report)
            if problem is not None:
                wrong[case.name] += 1
                if sum(wrong.values()) <= 10:
                    print(f"{case.name}: {problem} of {case.text!r} at byte {place}")
        else:
            continue
        break
    for name, count in wrong.most_common(20):
        print(f"{count:6} wrong: {name}")
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600, help="stop after this long")
    parser.add_argument("--broken", action="store_true", help="a window that must be caught")
    options = parser.parse_args()
    report = run(options.streams, options.seed, broken=options.broken, seconds=options.seconds)
    print(
        f"{report.streams} streams, {report.leaked} leaked, {report.withheld} withheld too much;"
        f" at most {report.held_most} characters held"
    )
    if report.streams < options.streams:
        print(f"only {report.streams} of {options.streams} were run in time")
        sys.exit(1)
    sys.exit(report.failed)


if __name__ == "__main__":
    main()

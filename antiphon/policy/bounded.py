"""Rules that look for something of bounded length, run together: over a stream or a whole text.

Every rule is looked for in the text as it is; one that sees through disguises also in folded text
with its escapes undone, and in what runs of base64 and hexadecimal digits decode to.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from antiphon.policy.automaton import Machine, Source
from antiphon.policy.disguised import Disguised, folded_pattern, phrases_of
from antiphon.policy.encoded import BASE64, HEXADECIMAL, Encoded
from antiphon.policy.expression import Expression
from antiphon.policy.pattern import AsIs, Pattern
from antiphon.policy.reader import Reader
from antiphon.policy.spelling import Spelling, plain_spelling, spellings
from antiphon.policy.syntax import shortest
from antiphon.verdicts import Action, Finding, Stage

BEFORE = 128
"""Characters before a match that whoever confirms it is shown."""
_ENCODED_LEAST = 4
"""Characters of the shortest match of an expression that is looked for in encoded text."""

Confirm = Callable[[str, str], tuple[int, int, str] | None]
"""From what matched and what stands before it to where in it the entity is, and its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedRule:
    """`disguises` finds it in disguise as well, whatever its case. `confirm` has the last word on a
    match. `{entity}` in the replacement is the name it gives."""

    rule: str
    action: Action
    expressions: tuple[Expression, ...]
    disguises: bool
    replacement: str = "[removed]"
    confirm: Confirm | None = None
    category: str | None = None
    shadow: bool = False

    @property
    def acts(self) -> bool:
        """Whether it changes what leaves."""
        return self.action is not Action.ANNOTATE and not self.shadow


class Bounded:
    """Compiled once and shared by every text, on one thread."""

    def __init__(self, rules: Sequence[BoundedRule]) -> None:
        self.rules = tuple(rules)
        patterns: list[Pattern] = []
        spelled: list[Spelling] = []
        folded: list[Pattern] = []
        plain: list[Spelling] = []
        decoded: list[Pattern] = []
        for number, rule in enumerate(rules):
            for expression in rule.expressions:
                phrases = _phrases(expression) if rule.disguises else None
                if phrases is None or not all(map(str.isascii, phrases[0])):
                    patterns.append(Pattern(number, rule.acts, expression.graph))
                if not rule.disguises:
                    continue
                for phrase in phrases[0] if phrases else ():
                    edges = phrases is not None and phrases[1]
                    spelled += spellings(number, rule.acts, phrase, edges=edges)
                    one = plain_spelling(number, rule.acts, phrase, edges=edges)
                    plain += [one] if one is not None else []
                pattern = folded_pattern(number, rule.acts, expression.root)
                if phrases is None and pattern is not None:
                    folded.append(pattern)
                    if shortest(expression.root) >= _ENCODED_LEAST:
                        decoded.append(pattern)
        self.as_is = Machine(AsIs(patterns)) if patterns else None
        seen: list[Source] = []
        if spelled or folded:
            seen.append(Disguised(spelled, folded))
        if plain or decoded:
            inner = Disguised(plain, decoded)
            acting = (number for number, rule in enumerate(rules) if rule.disguises and rule.acts)
            root = tuple(itertools.islice(acting, 1))
            wide = any(not letters.letters[0].character.isascii() for letters in plain)
            wide = wide or bool(decoded)
            seen += [
                Encoded(encoding, inner, root=root, wide=wide) for encoding in (BASE64, HEXADECIMAL)
            ]
        self.disguised = tuple(map(Machine, seen))

    def tracker(self, stage: Stage) -> "BoundedTracker":
        """For one text that comes in pieces."""
        return BoundedTracker(self, stage, eager=True)

    def search(self, text: str, stage: Stage) -> list[Finding]:
        """In a whole text, in its order. Of each rule's matches the one that begins first, then the
        longest; where a later one overlaps it, the rest of that is a finding of its own."""
        tracker = BoundedTracker(self, stage, eager=False)
        found = [*tracker.feed(text), *tracker.finish()]
        return sorted(found, key=lambda finding: (finding.start, finding.end))


def _phrases(expression: Expression) -> tuple[tuple[str, ...], bool] | None:
    if expression.phrase is not None:
        return (expression.phrase,), expression.whole_words
    return phrases_of(expression.root)


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    entity: str = ""


class BoundedTracker:
    """A tracker. With `eager`, a block is said as soon as one match is complete, which need not be
    the longest; and only where it begins before the last one that was said."""

    def __init__(self, bounded: Bounded, stage: Stage, *, eager: bool) -> None:
        self._rules = bounded.rules
        self._stage = stage
        self._eager = eager
        self._reader = Reader(bounded.as_is, bounded.disguised)
        self._keeps_text = any(rule.confirm is not None for rule in bounded.rules)
        self._text = ""
        """What was read last, where anybody may have to be shown it."""
        self._matches: dict[int, set[_Match]] = {}
        """By rule: complete, and perhaps not the longest or the first yet."""
        self._told: dict[int, int] = {}
        """Where each rule's last finding ended; for a block, where it began."""
        self.held_from = 0

    def feed(self, text: str) -> Sequence[Finding]:
        if self._keeps_text:
            self._text += text
        reader = self._reader
        reader.feed(text)
        if reader.hits or self._matches:
            return self._settle()
        self.held_from = reader.held_from
        if self._keeps_text:
            self._shorten()
        return ()

    def finish(self) -> Sequence[Finding]:
        self._reader.finish()
        return self._settle()

    def _settle(self) -> list[Finding]:
        reader = self._reader
        found: list[Finding] = []
        hits, reader.hits = reader.hits, []
        for number, start, end in hits:
            match = self._confirmed(number, start, end)
            if match is None:
                continue
            rule = self._rules[number]
            if self._eager and rule.acts and rule.action is Action.BLOCK:
                if match.start < self._told.get(number, match.start + 1):
                    self._told[number] = match.start
                    found.append(self._finding(rule, match))
            else:
                self._matches.setdefault(number, set()).add(match)
        for number in list(self._matches):
            rule = self._rules[number]
            found += self._decided(number, reader.held_from if rule.acts else reader.alive_from)
            if not self._matches[number]:
                del self._matches[number]
        # What is complete and not decided yet is held by the partial match that may still win.
        self.held_from = reader.held_from
        if self._keeps_text:
            self._shorten()
        return found

    def _confirmed(self, number: int, start: int, end: int) -> _Match | None:
        confirm = self._rules[number].confirm
        if confirm is None:
            return _Match(start, end)
        first = self._reader.fed - len(self._text)
        before = self._text[max(0, start - first - BEFORE) : start - first]
        span = confirm(self._text[start - first : end - first], before)
        return None if span is None else _Match(start + span[0], start + span[1], span[2])

    def _decided(self, number: int, limit: int) -> list[Finding]:
        """Those of a rule before which no other can begin any more."""
        matches = self._matches[number]
        decided = sorted(
            (match for match in matches if match.start < limit),
            key=lambda match: (match.start, -match.end),
        )
        found = []
        for match in decided:
            matches.discard(match)
            start = max(match.start, self._told.get(number, 0))
            if start < match.end:
                self._told[number] = match.end
                rest = _Match(start, match.end, match.entity)
                found.append(self._finding(self._rules[number], rest))
        return found

    def _finding(self, rule: BoundedRule, match: _Match) -> Finding:
        replaces = rule.action is Action.TRANSFORM
        return Finding(
            rule=rule.rule,
            stage=self._stage,
            action=rule.action,
            start=match.start,
            end=match.end,
            category=rule.category,
            shadow=rule.shadow,
            replacement=rule.replacement.replace("{entity}", match.entity) if replaces else None,
        )

    def _shorten(self) -> None:
        """Keep what may still be shown to somebody."""
        needless = len(self._text) - (self._reader.fed - self._reader.alive_from) - BEFORE
        if needless > BEFORE:
            self._text = self._text[needless:]

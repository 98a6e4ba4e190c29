"""Finds what no sound text has in a row: control characters, replacement characters, lone
surrogates.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from antiphon.verdicts import Action, Finding

_BAD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ufffe\uffff\ud800-\udfff]+")


class Malformed:
    """A tracker. A run is found when it has become long enough, and once, however long it gets."""

    def __init__(self, run: int, finding: Finding) -> None:
        self._needed = run
        self._finding = finding
        self._holds = finding.action is not Action.ANNOTATE and not finding.shadow
        self._fed = 0
        self._length = 0

    @property
    def held_from(self) -> int:
        pending = self._length if self._length < self._needed else 0
        return self._fed - pending if self._holds else self._fed

    def feed(self, text: str) -> Sequence[Finding]:
        if not text:
            return []
        found = []
        at = 0
        for match in _BAD.finditer(text):
            if match.start():
                self._length = 0
            before, self._length = self._length, self._length + len(match.group())
            if before < self._needed <= self._length:
                start = self._fed + match.start() - before
                found.append(replace(self._finding, start=start, end=start + self._needed))
            at = match.end()
        if at < len(text):
            self._length = 0
        self._fed += len(text)
        return found

    def finish(self) -> Sequence[Finding]:
        return []

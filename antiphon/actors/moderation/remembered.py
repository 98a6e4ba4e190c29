"""Verdicts that need not be found again: so the history of a conversation, which every turn has
judged anew, costs nothing. Keeps hashes of texts, and what was found where; never a text.

Scopes share nothing, so that nobody can tell by the time it takes what another tenant has sent.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from antiphon.verdicts import PolicyScope, Stage, Verdict

_MOST = 8192
"""A few hundred bytes each."""


@dataclass(frozen=True, slots=True)
class TextKey:
    """One text before one version's rules for one scope at one stage."""

    version: str
    scope: PolicyScope
    stage: Stage
    digest: bytes


def key_of(version: str, scope: PolicyScope, stage: Stage, text: str) -> TextKey:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return TextKey(version, scope, stage, digest)


class Remembered:
    """The verdicts that were asked for last."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._verdicts: OrderedDict[TextKey, Verdict] = OrderedDict()

    def __len__(self) -> int:
        return len(self._verdicts)

    def get(self, key: TextKey) -> Verdict | None:
        verdict = self._verdicts.get(key)
        if verdict is not None:
            self._verdicts.move_to_end(key)
        return verdict

    def put(self, key: TextKey, verdict: Verdict) -> None:
        """One that isn't whole is not kept: the next try may be better."""
        if verdict.not_run:
            return
        self._verdicts[key] = verdict
        self._verdicts.move_to_end(key)
        while len(self._verdicts) > self._most:
            self._verdicts.popitem(last=False)

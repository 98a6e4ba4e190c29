"""Verdicts that need not be found again: so the history of a conversation, which every turn has
judged anew, costs nothing. Keeps hashes of texts, and what was found where; never a text.

Scopes share nothing, so that nobody can tell by the time it takes what another tenant has sent.
"""

import hashlib
from collections import OrderedDict

import msgspec

from antiphon.verdicts import PolicyScope, Stage, Verdict

_MOST = 8192
"""Some two hundred bytes each, where nothing was found."""
_DIGEST_BYTES = 20


def key_of(version: str, scope: PolicyScope, stage: Stage, text: str) -> bytes:
    """Of one text before one version's rules for one scope at one stage."""
    before = msgspec.msgpack.encode((version, scope, stage))
    digest = hashlib.blake2b(before, digest_size=_DIGEST_BYTES)
    digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.digest()


class Remembered:
    """The verdicts that were asked for last."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._verdicts: OrderedDict[bytes, Verdict] = OrderedDict()
        self._clean = Verdict(version="")
        """Of the version that was last seen, one for all texts in which nothing was found."""

    def __len__(self) -> int:
        return len(self._verdicts)

    def get(self, key: bytes) -> Verdict | None:
        verdict = self._verdicts.get(key)
        if verdict is not None:
            self._verdicts.move_to_end(key)
        return verdict

    def put(self, key: bytes, verdict: Verdict) -> None:
        """One that isn't whole is not kept: the next try may be better."""
        if verdict.not_run:
            return
        if verdict.version != self._clean.version:
            self._clean = Verdict(version=verdict.version)
        self._verdicts[key] = self._clean if verdict == self._clean else verdict
        self._verdicts.move_to_end(key)
        while len(self._verdicts) > self._most:
            self._verdicts.popitem(last=False)

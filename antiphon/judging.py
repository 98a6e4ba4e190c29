"""What the server and its judge processes say to each other: the frames of that contract.

A judge is given rules as text, by their version, and texts to judge by them. It keeps no text.
"""

import msgspec

from antiphon.verdicts import CategoryScores, Failure, PolicyScope, Stage, Verdict

SAMPLE = (
    "The quick brown fox jumps over the lazy dog, and nobody knows why. Pack my box with five "
    "dozen liquor jugs! Call 555-0100 or write to info@example.com before 31.12.1999 (see "
    'https://example.com/?q=1#top): it\'s "free", about $20, 100 % yours; [1] {x} <y> *z*.\n'
)
"""An ordinary text. Matchers and classifiers that are made for their first text are made for this
one, before anybody's comes."""

# ── server → judge ───────────────────────────────────────────────────────────────────────────────


class Load(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="load"):
    """Be ready to judge by these rules. Answered by Loaded or Unusable, also when they are there
    already. `lists` are the files that they name, as the server has read them."""

    version: str
    source: str
    text: str
    lists: dict[str, str] = {}


class Forget(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="forget"):
    """Nobody will ask for this version any more."""

    version: str


class Job(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Texts to be judged by rules that were loaded before."""

    version: str
    scope: PolicyScope
    stage: Stage
    texts: tuple[str, ...]


class Batch(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="batch"):
    """All that came together: `jobs` by rules, `scored` by the classifier alone. Answered by Judged
    with the same number. What isn't judged within `budget_s` is given up: others wait."""

    number: int
    budget_s: float
    jobs: tuple[Job, ...] = ()
    scored: tuple[str, ...] = ()


class HaltJudge(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="halt"):
    """End the process in order."""


JudgeCommand = Load | Forget | Batch | HaltJudge

# ── judge → server ───────────────────────────────────────────────────────────────────────────────


class JudgeReady(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="ready"):
    """The first frame of a judge: its classifier is loaded. `model` is what that is called."""

    pid: int
    model: str


class Loaded(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="loaded"):
    """It judges by that version when asked."""

    version: str


class Unusable(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="unusable"):
    """It can't judge by that version."""

    version: str
    problem: str


class Judged(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="judged"):
    """One entry for each job, with a verdict for each of its texts, or why there is none:
    DEADLINE, or WORKER_LOST for an unknown version and for a matcher that failed."""

    number: int
    verdicts: tuple[tuple[Verdict, ...] | Failure, ...] = ()
    scores: tuple[CategoryScores, ...] | Failure = ()


class Beat(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="beat"):
    """Said when it has had nothing else to say for a second: it lives."""


JudgeFrame = JudgeReady | Loaded | Unusable | Judged | Beat

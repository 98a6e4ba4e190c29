"""What the policy says: the values that rooms exchange about a text that was judged.

A verdict names the one version of the rules that made it. A rule that could not be run is said to
be so: that is never the same as having passed. No value here holds a judged text.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from antiphon.ids import new_policy_event_id

CATEGORIES = (
    "harassment",
    "harassment/threatening",
    "hate",
    "hate/threatening",
    "illicit",
    "illicit/violent",
    "self-harm",
    "self-harm/intent",
    "self-harm/instructions",
    "sexual",
    "sexual/minors",
    "violence",
    "violence/graphic",
)
"""OpenAI's categories, as `/v1/moderations` names them."""

REFUSAL = "I can't help with that."
"""What a blocked client is told where no rules have a text for it."""


class Stage(enum.StrEnum):
    """Where a text stands in a turn."""

    INPUT = "input"
    RETRIEVED = "retrieved"
    TOOL = "tool"
    OUTPUT = "output"


class Action(enum.StrEnum):
    """What a match does."""

    BLOCK = "block"
    TRANSFORM = "transform"
    ANNOTATE = "annotate"


class OnFailure(enum.StrEnum):
    """What a rule that can't be run does: closed blocks, open lets pass."""

    CLOSED = "closed"
    OPEN = "open"


class Failure(enum.StrEnum):
    """Why a rule was not run."""

    DEADLINE = "deadline"
    QUEUE_FULL = "queue_full"
    WORKER_LOST = "worker_lost"
    CIRCUIT_OPEN = "circuit_open"
    TOO_LONG = "too_long"
    UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One match of one rule: characters `start` to `end` of the text as it was given. A shadow is
    counted and does nothing."""

    rule: str
    stage: Stage
    action: Action
    start: int = 0
    end: int = 0
    category: str | None = None
    score: float | None = None
    shadow: bool = False
    replacement: str | None = None
    """What a transforming rule puts in the span's place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRun:
    """A rule that was to judge the text and didn't."""

    rule: str
    stage: Stage
    failure: Failure
    on_failure: OnFailure
    shadow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryScores:
    """How much a text is of each category, 0…1, and for which it is flagged."""

    model: str
    scores: Mapping[str, float]
    flagged: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the rules of one version say of one text."""

    version: str
    findings: tuple[Finding, ...] = ()
    not_run: tuple[NotRun, ...] = ()
    scores: CategoryScores | None = None
    """Where a classifier was run."""

    @property
    def blocked_by(self) -> str | None:
        """The first rule that blocks it: by a match, or because it fails closed."""
        for finding in self.findings:
            if finding.action is Action.BLOCK and not finding.shadow:
                return finding.rule
        for missing in self.not_run:
            if missing.on_failure is OnFailure.CLOSED and not missing.shadow:
                return missing.rule
        return None

    @property
    def transforms(self) -> tuple[Finding, ...]:
        """What is to be replaced, in the order of the text, without overlaps: of two that overlap
        the one that begins first, then the longer one, and what it leaves of the other."""
        chosen: list[Finding] = []
        candidates = [
            finding
            for finding in self.findings
            if finding.action is Action.TRANSFORM and not finding.shadow
        ]
        for finding in sorted(candidates, key=lambda found: (found.start, -found.end)):
            start = max(finding.start, chosen[-1].end if chosen else 0)
            if start < finding.end:
                chosen.append(replace(finding, start=start))
        return tuple(chosen)

    def applied(self, text: str) -> str:
        """The text with its transforms made."""
        pieces, at = [], 0
        for finding in self.transforms:
            pieces += [text[at : finding.start], finding.replacement or ""]
            at = finding.end
        return "".join([*pieces, text[at:]])


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyScope:
    """On whose behalf a text is judged: rules may be for some tenants or plans only."""

    tenant: str | None = None
    plan: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """What a client asked of the classifier for one turn: to see its scores, and perhaps that what
    it flags is blocked, whether or not a rule says so."""

    blocks_input: bool = False
    blocks_output: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was judged in one turn, for whoever shows it: `input` is all its texts together,
    `output` one verdict for each choice."""

    version: str
    input: Verdict | None = None
    output: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEvent:
    """One finding, or one rule that was not run, as the store keeps it. `text` is there only where
    the operator wants texts kept."""

    request: str
    rule: str
    version: str
    action: str
    """block, transform, annotate; `not_run` for a rule that could not be run; `withheld` for output
    that was blocked, where it is kept."""
    stage: Stage
    created_ms: int
    response: str | None = None
    user: str | None = None
    shadow: bool = False
    detail: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Such as the category and the score, or why it was not run."""
    text: str | None = None
    id: str = field(default_factory=new_policy_event_id)
    """So that writing it twice is writing it once."""

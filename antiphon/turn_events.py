"""What a turn yields, one event after another, up to its end or its failure. They stay in the
server and are dataclasses."""

import enum
from dataclasses import dataclass, field

from antiphon.errors import AntiphonError
from antiphon.events import TokenLogprob
from antiphon.ids import FileId, ItemId, ModelName
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.verdicts import Judged
from antiphon.views import Manifest


class FinishReason(enum.StrEnum):
    """How a choice ended, in OpenAI's words."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    TOOL_CALLS = "tool_calls"

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return self in {FinishReason.STOP, FinishReason.TOOL_CALLS}


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """Where a caller stands with one limit, after this request: `reset_s` is when all of it will be
    there again. `name` is `requests` or `tokens`."""

    name: str
    limit: int
    remaining: int
    reset_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlaced:
    """The first event of a turn that was taken: which model answers, and why if it isn't the one
    that was asked for. It comes before the turn has a slot, and again where the engine was gone
    before anything was generated: the last one counts."""

    model: ModelName
    tier: str = "default"
    moved: str | None = None
    """Why another model answers: `overload`, `canary`, `fallback`; None when it is the first
    choice."""
    limits: tuple[RateLimit, ...] = ()
    expected_s: float | None = None
    """When its first text should come; None where nothing is known that could be trusted."""
    policy: str | None = None
    """The version of the rules that judge it; None where there are none."""
    manifest: Manifest | None = None
    """What the model is shown; None where it is simply what the client sent."""
    counts: tuple[tuple[ItemId, int], ...] = ()
    """Tokens of items that had not been counted before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """New text of one choice; several engine steps may be merged into one when the reader is
    behind."""

    choice: int
    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """The choice's text says that it has something from a file: after so many of its
    characters."""

    choice: int
    at: int
    file: FileId
    filename: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The policy ends this choice: what the reader is told instead of the rest. Its end follows, as
    one of `CONTENT_FILTER`. `text` was not generated."""

    choice: int
    text: str
    messages: tuple[int, ...] = ()
    """Which of the turn's messages are to blame, by their places: no model may be shown them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceEnded:
    """No more text for this choice."""

    choice: int
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of a turn: the prompt once, the answers of all choices together."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    """Of the prompt: what the engine had computed before."""

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """The terminal event of a turn that completed: every choice has ended."""

    usage: Usage
    judged: Judged | None = None
    """What the policy said; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    """The terminal event of a turn that did not complete, with the typed reason."""

    error: AntiphonError
    usage: Usage = field(default=Usage(prompt_tokens=0, completion_tokens=0))


Said = Delta | Cited | CallStarted | CallDelta | CallEnded
"""What a model says in a choice."""


TurnEvent = TurnPlaced | Said | Refused | ChoiceEnded | TurnEnded | TurnFailed

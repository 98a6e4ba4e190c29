"""What is noted of a turn on its way, for whoever asks later why it took so long: ids, times and
counts, and no text of anybody's."""

import msgspec

from antiphon.events import CancelCause, EndReason
from antiphon.ids import EngineRequest, ModelName, SlotIndex
from antiphon.views import Manifest
from antiphon.workload import WorkloadClass


class Arrived(msgspec.Struct, frozen=True, kw_only=True, tag="arrived"):
    """A session was started for it. `upkeep` is the server's own work, such as a title."""

    asked: ModelName
    response: str | None
    user: str | None
    messages: int
    choices: int
    upkeep: bool = False


class InputJudged(msgspec.Struct, frozen=True, kw_only=True, tag="input_judged"):
    """The policy has said what it makes of the input, so long after it was asked; `rule` is which
    one has blocked it."""

    seconds: float
    rule: str | None = None


class Placed(msgspec.Struct, frozen=True, kw_only=True, tag="placed"):
    """This pool is to answer, and its model is shown that. There is another one where it refuses
    after all, or is lost before it has said anything."""

    model: ModelName
    moved: str | None
    reasons: tuple[str, ...]
    passed: tuple[tuple[ModelName, str], ...]
    """Which pools were passed over, and why."""
    predicted_s: float | None
    prompt_tokens: int
    max_tokens: int
    manifest: Manifest | None = None


class Unplaced(msgspec.Struct, frozen=True, kw_only=True, tag="unplaced"):
    """No pool takes it."""

    passed: tuple[tuple[ModelName, str], ...]


class Queued(msgspec.Struct, frozen=True, kw_only=True, tag="queued"):
    """The scheduler has it. So many hold a slot and wait, not counting its own."""

    lane: WorkloadClass
    generations: int
    slots: int
    running: int
    waiting: int


class Granted(msgspec.Struct, frozen=True, kw_only=True, tag="granted"):
    """It has a slot: its prompt is computed next, or, when `resumed`, it goes on."""

    generation: EngineRequest
    slot: SlotIndex
    waited_s: float
    resumed: bool = False


class FirstToken(msgspec.Struct, frozen=True, kw_only=True, tag="first_token"):
    generation: EngineRequest


class FirstShown(msgspec.Struct, frozen=True, kw_only=True, tag="first_shown"):
    """The first text leaves: what the policy held back of it until now is the time since the first
    token."""


class Paused(msgspec.Struct, frozen=True, kw_only=True, tag="paused"):
    """It gave its slot to somebody who waits, and waits itself."""

    generation: EngineRequest
    tokens: int


class OutputBlocked(msgspec.Struct, frozen=True, kw_only=True, tag="output_blocked"):
    """The policy has ended so many of its choices."""

    choices: int


class EngineLost(msgspec.Struct, frozen=True, kw_only=True, tag="engine_lost"):
    """Nothing was generated yet: it is placed once more."""

    error: str


class CancelAsked(msgspec.Struct, frozen=True, kw_only=True, tag="cancel_asked"):
    cause: CancelCause


class Freed(msgspec.Struct, frozen=True, kw_only=True, tag="freed"):
    """The engine has given the slot back; after an end that came early, this is later."""

    generation: EngineRequest
    slot: SlotIndex
    reason: EndReason
    tokens: int


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """`reason` is stop, length, content_filter, tool_calls, abort or error."""

    reason: str
    error: str | None = None
    """Its class."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    longest_gap_s: float = 0.0
    """Between two steps that brought tokens."""


Moment = (
    Arrived
    | InputJudged
    | Placed
    | Unplaced
    | Queued
    | Granted
    | FirstToken
    | FirstShown
    | Paused
    | OutputBlocked
    | EngineLost
    | CancelAsked
    | Freed
    | Ended
)

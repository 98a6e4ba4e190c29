"""What an engine driver is told, and what it tells the owners of generations."""

from dataclasses import dataclass

from antiphon.actors.ref import Ref
from antiphon.actors.reply import Reply
from antiphon.errors import AntiphonError
from antiphon.events import Abort, Admit, Capabilities, Released, SlotText
from antiphon.ids import EngineRequest, SlotIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationLost:
    """The generation failed or its engine is gone; nothing follows."""

    request: EngineRequest
    error: AntiphonError


GenerationNews = SlotText | GenerationLost


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Admit a generation whose lease the scheduler holds; `owner` gets its news.

    `host` is the one that the lease belongs to. A mailbox outlives incarnations, so a Begin may
    reach the next host's driver, whose scheduler knows nothing of it.
    """

    host: int
    admit: Admit
    owner: Ref[GenerationNews]


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseSlot:
    """Take a generation out of its slot and keep it. Whether that came before its end says the
    reason of its SlotReleased. Ignored for one that is not in a slot, and by an engine that can't
    pause. An Abort, before or after, ends it: its slot in the message is then of no account."""

    request: EngineRequest
    slot: SlotIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSlot:
    """Go on with a generation whose SlotReleased said PAUSED, in a slot whose lease the scheduler
    holds. Its owner is the one of its Begin. When nothing is known of it the slot is released."""

    host: int
    request: EngineRequest
    slot: SlotIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A ready and empty engine: which host it is, counted over the pool's life, and what it can
    do."""

    host: int
    capabilities: Capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    """A new scheduler is here, which knows nothing of what the engine runs or keeps for the former
    one: all that is aborted. Answered when every slot is free."""

    reply: Reply[Engine]


DriverMessage = Begin | PauseSlot | ResumeSlot | Abort | TakeOver


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotReleased:
    """Told to the scheduler: the slot is free. `at` is `current_time()`, read with the frame. With
    the reason PAUSED the generation is kept for a ResumeSlot, unless an Abort is on its way."""

    released: Released
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstToken:
    """Told to the scheduler: the generation has its first token, as of `current_time()`. Said once,
    not again after a pause."""

    request: EngineRequest
    at: float


EngineNews = FirstToken | SlotReleased

"""What an engine driver is told, and what it tells the owners of generations."""

from dataclasses import dataclass

from antiphon.actors.ref import Ref
from antiphon.actors.reply import Reply
from antiphon.errors import AntiphonError
from antiphon.events import Abort, Admit, Capabilities, Released, SlotText
from antiphon.ids import EngineRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationLost:
    """The generation failed or its engine is gone; nothing follows."""

    request: EngineRequest
    error: AntiphonError


GenerationNews = SlotText | GenerationLost


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Admit a generation whose lease the scheduler holds; `owner` gets its news.

    `incarnation` is the driver's that the lease belongs to. A mailbox outlives incarnations, so
    a Begin may reach the next one, whose scheduler knows nothing of it.
    """

    incarnation: int
    admit: Admit
    owner: Ref[GenerationNews]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskCapabilities:
    """Answered with what the ready engine can do."""

    reply: Reply[Capabilities]


DriverMessage = Begin | Abort | AskCapabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotReleased:
    """Told to the scheduler: the slot is free. `at` is `current_time()`, read with the frame."""

    released: Released
    at: float

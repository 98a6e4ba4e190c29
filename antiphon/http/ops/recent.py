"""What is remembered of the last turns, with the clock that it was told by."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from antiphon.http.ops.pulse import Pulse
from antiphon.http.ops.timelines import Timelines


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """Bounded; one owner, the telemetry, which tells it. Pages read."""

    timelines: Timelines = field(default_factory=Timelines)
    pulse: Pulse = field(default_factory=Pulse)
    clock: Callable[[], float] = time.monotonic

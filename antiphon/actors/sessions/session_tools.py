"""What every session works with."""

from collections.abc import Callable
from dataclasses import dataclass

from antiphon.actors.context.viewing import Viewer
from antiphon.actors.routing.router import Router
from antiphon.actors.sessions.charges import Charges
from antiphon.ports import AbuseSignals
from antiphon.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTools:
    """The same for all of a directory."""

    router: Router
    charges: Charges
    telemetry: Telemetry
    viewer: Viewer
    abuse: AbuseSignals | None = None
    turns: Callable[[], int] = lambda: 1
    """How many are open."""

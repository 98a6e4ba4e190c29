"""Fault sites, in the manner of FoundationDB's BUGGIFY: places in the source where a plan may make
something go wrong that the server promises to survive.

Without a plan a site costs one comparison. For tests of the server, never for production. It knows
no room; rooms name their sites in `fault_plan` and stand their calls where the fault would be.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NoReturn

import structlog

from antiphon.errors import InjectedFault
from antiphon.fault_plan import Action, Fault, FaultPlan, Site

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Armed:
    """A fault, its own dice and its count, so that one site's luck doesn't move another's."""

    fault: Fault
    dice: random.Random
    passes: int = 0

    def strikes(self, at: str) -> bool:
        fault = self.fault
        if not fnmatchcase(at, fault.at):
            return False
        self.passes += 1
        if fault.nth is not None:
            return self.passes == fault.nth
        return self.dice.random() < fault.probability


@dataclass(slots=True)
class Injector:
    """An installed plan at work; `struck` counts what it did."""

    plan: FaultPlan
    struck: Counter[Site] = field(default_factory=Counter)
    _armed: dict[Site, list[_Armed]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for fault in self.plan.faults:
            self.arm(fault)

    def arm(self, fault: Fault) -> None:
        """From now on this goes wrong, too; passes count from here."""
        armed = self._armed.setdefault(fault.site, [])
        armed.append(_Armed(fault, random.Random(f"{self.plan.seed} {fault} {len(armed)}")))

    def disarm(self) -> None:
        """Nothing more goes wrong."""
        self._armed.clear()

    def strike(self, site: Site, at: str) -> Fault | None:
        """Count a pass; the fault that strikes at it."""
        # All of them count, also when more than one would strike.
        struck = [armed.fault for armed in self._armed.get(site, ()) if armed.strikes(at)]
        if not struck:
            return None
        self.struck[site] += 1
        log.warning("fault_injected", site=site.label, action=struck[0].does.value, at=at or None)
        return struck[0]


_injector: Injector | None = None


def maybe(site: Site, at: str = "") -> None:
    """A site in plain code. Raises InjectedFault when the plan says so."""
    if _injector is not None and (fault := _injector.strike(site, at)) is not None:
        if fault.does is Action.SLOW:
            time.sleep(fault.pause_s)
        else:
            _fail(fault)


async def pause(site: Site, at: str = "") -> None:
    """A site in a Trio task, which may also be slow; a checkpoint only then. Raises
    InjectedFault."""
    if _injector is not None and (fault := _injector.strike(site, at)) is not None:
        if fault.does is Action.SLOW:
            # Imported only here, since processes without an event loop have sites, too.
            import trio

            await trio.sleep(fault.pause_s)
        else:
            _fail(fault)


def strikes(site: Site, at: str = "") -> bool:
    """Whether the fault that is written at the call happens now."""
    return _injector is not None and _injector.strike(site, at) is not None


@contextmanager
def injected(plan: FaultPlan) -> Iterator[Injector]:
    """Within it, the plan is at work in this process; plans don't add up."""
    global _injector
    before, _injector = _injector, Injector(plan)
    log.warning("faults_active", plan=str(plan))
    try:
        yield _injector
    finally:
        _injector = before


def from_setting(text: str | None) -> AbstractContextManager[object]:
    """The plan of a process that was configured with one; nothing without. Raises
    SettingsError."""
    return nullcontext() if text is None else injected(FaultPlan.parse(text))


def _fail(fault: Fault) -> NoReturn:
    if fault.does is Action.KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    raise InjectedFault(fault.site.label)

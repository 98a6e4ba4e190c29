"""What attacks a simulated server: it kills, hangs, pauses and breaks what it can, now and then, as
its dice say. What it does, the server promises to survive."""

import random
from collections import Counter
from collections.abc import Callable

import trio
import trio.testing

from antiphon.errors import NoActor
from antiphon.fault_plan import Action, Fault, FaultPlan, Site
from antiphon.faults import Injector
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.rig import Rig
from antiphon.testing.scripted import ScriptedLink

_EVERY_S = (13.0, 45.0)
"""Between two faults: rarer than the tree's restart limits, or it would rightly give up."""
_LONGEST_PAUSE_S = 8.0
"""Less than the silence for which an engine would be given up."""
_SLOW_ODDS = 0.02
_SLOW_S = 0.3
_SIMULATED = ("actor", "driver", "scheduler", "session", "http")
"""The rooms of fault sites that a simulated server passes through; hosts are scripted."""
_ACTORS = ("root/pool/driver", "root/pool/scheduler", "root/shard-*")


def simulated_sites(action: Action) -> tuple[Site, ...]:
    """Where a simulated server can be made to do that."""
    return tuple(
        site
        for site in Site
        if site.label.partition(".")[0] in _SIMULATED and action in site.actions
    )


def background_plan(seed: int) -> FaultPlan:
    """What is slow for the whole run of that seed."""
    active = FaultPlan.drawn(seed, simulated_sites(Action.SLOW)).faults
    return FaultPlan(
        tuple(
            Fault(fault.site, Action.SLOW, probability=_SLOW_ODDS, pause_s=_SLOW_S)
            for fault in active
        ),
        seed,
    )


class Nemesis:
    """`faults` counts what it did."""

    def __init__(
        self,
        rig: Rig,
        injector: Injector,
        clock: trio.testing.MockClock,
        dice: random.Random,
        tell: Callable[..., None],
    ) -> None:
        self._rig = rig
        self._injector = injector
        self._clock = clock
        self._dice = dice
        self._tell = tell
        # Of the sites where something may be raised, a run has its own few.
        self._sites = dice.sample(simulated_sites(Action.RAISE), 5)
        self._nursery: trio.Nursery
        self.faults: Counter[str] = Counter()

    async def run(self, until: float) -> None:
        """Attack until that time."""
        attacks = (
            self._kill_host,
            self._hang_host,
            self._break_protocol,
            self._fail_generation,
            self._refuse_launches,
            self._stop_session,
            self._jump_clock,
            self._pause_actor,
            self._drop_connection,
            self._stall_reader,
            self._refuse_connection,
            self._strike_site,
            self._strike_site,
        )
        async with trio.open_nursery() as self._nursery:
            while True:
                await trio.sleep(self._dice.uniform(*_EVERY_S))
                if trio.current_time() >= until:
                    break
                attack = self._dice.choice(attacks)
                name = attack.__name__.removeprefix("_")
                self.faults[name] += 1
                self._tell("nemesis", name, attack() or "")

    @property
    def _link(self) -> ScriptedLink:
        return self._rig.launcher.link

    def _kill_host(self) -> None:
        self._link.die("killed by the nemesis")

    def _hang_host(self) -> None:
        self._link.hang()

    def _break_protocol(self) -> None:
        self._link.break_protocol()

    def _fail_generation(self) -> None:
        live = self._link.live
        if live:
            code = self._dice.choice(("capacity", "engine_error"))
            self._link.fail(self._dice.choice(live), code=code, detail="the nemesis")

    def _refuse_launches(self) -> None:
        self._rig.launcher.refusals += ["the nemesis"] * self._dice.randint(1, 2)
        self._link.die("killed by the nemesis")

    def _stop_session(self) -> None:
        running = [
            (shard, child) for shard in self._rig.shards for child, _ in shard.which_children()
        ]
        if running:
            self._nursery.start_soon(_terminate, *self._dice.choice(running))

    def _jump_clock(self) -> None:
        self._clock.jump(self._dice.uniform(0.5, 8.0))

    def _pause_actor(self) -> str:
        """It stops with a message in its hand, and whatever comes has to wait."""
        path = self._dice.choice(_ACTORS)
        pause_s = self._dice.uniform(0.5, _LONGEST_PAUSE_S)
        return self._arm(
            Fault(Site.ACTOR_HANDLE, Action.SLOW, nth=1, at=f"{path}*", pause_s=pause_s)
        )

    def _drop_connection(self) -> str:
        site = self._dice.choice((Site.HTTP_READ_DROP, Site.HTTP_WRITE_DROP))
        return self._arm(Fault(site, nth=self._dice.randint(1, 30)))

    def _stall_reader(self) -> str:
        """A client that takes nothing more, until the write deadline."""
        return self._arm(Fault(Site.HTTP_WRITE_STALL, nth=self._dice.randint(1, 30)))

    def _refuse_connection(self) -> str:
        return self._arm(Fault(Site.HTTP_ACCEPT, nth=1))

    def _strike_site(self) -> str:
        """A bug at one of this run's sites, soon."""
        site = self._dice.choice(self._sites)
        at = f"{self._dice.choice(_ACTORS)}*" if site.label.startswith("actor.") else "*"
        return self._arm(Fault(site, Action.RAISE, nth=self._dice.randint(1, 20), at=at))

    def _arm(self, fault: Fault) -> str:
        self._injector.arm(fault)
        return str(fault)


async def _terminate(shard: Supervisor, child: str) -> None:
    try:
        await shard.terminate_child(child)
    except NoActor:
        pass  # it ended by itself meanwhile

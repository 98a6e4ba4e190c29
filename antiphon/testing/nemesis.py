"""A simulated server under attack: clients that chat, stall and hang up, and a nemesis that kills,
hangs and breaks what it can, in virtual time, on a seeded schedule.

The same seed gives the same history, event for event. In the spirit of FoundationDB's simulation
and of Jepsen's generators, nemeses and checkers.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import trio
import trio.testing

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.errors import AntiphonError, NoActor
from antiphon.events import Admit, CancelCause, Sampling, TurnEnded, TurnFailed
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.history import TurnRecord, Violation, check, numbered_words
from antiphon.testing.rig import Rig, running_rig
from antiphon.testing.schedules import seeded_schedule
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities

_CLIENTS = 12
_SETTLE_S = 120.0
_LONGEST_ANSWER = 40
_FAULT_EVERY_S = (13.0, 45.0)
"""Between two faults: rarer than the tree's restart limits, or it would rightly give up."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a run came to. `story` is the event log that must be the same for the same seed."""

    seed: int
    violations: list[Violation] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)


def simulate(seed: int, *, minutes: float) -> Outcome:
    """Run a server for that many virtual minutes and check every rule."""
    with seeded_schedule(seed):
        clock = trio.testing.MockClock(autojump_threshold=0)
        return trio.run(_simulate, seed, minutes * 60.0, clock, clock=clock)


async def _simulate(seed: int, seconds: float, clock: trio.testing.MockClock) -> Outcome:
    simulation = _Simulation(random.Random(seed), clock, seconds)
    await simulation.run()
    outcome = simulation.outcome
    outcome.seed = seed
    return outcome


class _Simulation:
    def __init__(self, dice: random.Random, clock: trio.testing.MockClock, seconds: float) -> None:
        self._dice = dice
        self._clock = clock
        self._seconds = seconds
        self._records: list[TurnRecord] = []
        self._nursery: trio.Nursery
        self.outcome = Outcome(seed=0)

    async def run(self) -> None:
        launcher = ScriptedLauncher(make=self._link)
        bounds = QueueBounds(max_requests=6, max_tokens=600, deadline_s=20.0)
        async with running_rig(launcher, bounds=bounds, turn_deadline_s=60.0) as rig:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for number in range(_CLIENTS):
                    # Dice of its own each, so that one client's luck doesn't move the others'.
                    nursery.start_soon(self._client, rig, number, self._fork())
                nursery.start_soon(self._nemesis, rig, self._fork())
            await self._settle(rig)
            self.outcome.violations += self._rest(rig)
        if rig.directory.open_turns:
            self.outcome.violations.append(f"{rig.directory.open_turns} turns open after the stop")
        self.outcome.violations += check(self._records)
        self.outcome.outcomes.update(record.outcome for record in self._records)

    def _fork(self) -> random.Random:
        return random.Random(self._dice.getrandbits(64))

    def _link(self) -> ScriptedLink:
        return ScriptedLink(
            capabilities=scripted_capabilities(slots=4, kv_blocks=24),
            answer=_answer,
            step_s=0.02 + 0.08 * self._dice.random(),
        )

    @property
    def _over(self) -> bool:
        return trio.current_time() >= self._seconds

    def _tell(self, *words: object) -> None:
        told = " ".join(str(word) for word in words)
        self.outcome.story.append(f"{trio.current_time():.3f} {told}")

    async def _client(self, rig: Rig, number: int, dice: random.Random) -> None:
        """Ask, read in some manner, think, ask again."""
        turn = 0
        while not self._over:
            turn += 1
            record = TurnRecord(
                name=f"client-{number}-{turn}",
                choices=dice.choice((1, 1, 1, 2, 3)),
                opened_at=trio.current_time(),
            )
            self._records.append(record)
            await self._turn(rig, record, dice)
            self._tell(record.name, record.outcome)
            await trio.sleep(dice.expovariate(0.5))

    async def _turn(self, rig: Rig, record: TurnRecord, dice: random.Random) -> None:
        try:
            stream = await rig.open(
                record.name,
                choices=record.choices,
                max_tokens=dice.randint(1, _LONGEST_ANSWER),
                sampling=Sampling(seed=dice.getrandbits(31)),
            )
        except AntiphonError as error:
            record.refused = type(error).__name__
            return
        leaves_after_s = dice.uniform(0.0, 6.0) if dice.random() < 0.25 else float("inf")
        pause_s = dice.choice((0.0, 0.0, 0.05, 1.5))
        with trio.move_on_after(leaves_after_s):
            while not record.terminal:
                event = await stream.next_event()
                record.add(event, trio.current_time())
                if pause_s and not isinstance(event, TurnEnded | TurnFailed):
                    await trio.sleep(pause_s * dice.random())
        if not record.terminal:
            record.hung_up = True
            stream.cancel(CancelCause.DISCONNECT)

    async def _nemesis(self, rig: Rig, dice: random.Random) -> None:
        faults: tuple[Callable[[Rig, random.Random], None], ...] = (
            self._kill_host,
            self._hang_host,
            self._break_protocol,
            self._fail_generation,
            self._refuse_launches,
            self._stop_session,
            self._jump_clock,
        )
        while True:
            await trio.sleep(dice.uniform(*_FAULT_EVERY_S))
            if self._over:
                return
            fault = dice.choice(faults)
            name = fault.__name__.removeprefix("_")
            self.outcome.faults[name] += 1
            self._tell("nemesis", name)
            fault(rig, dice)

    def _kill_host(self, rig: Rig, dice: random.Random) -> None:
        rig.launcher.link.die("killed by the nemesis")

    def _hang_host(self, rig: Rig, dice: random.Random) -> None:
        """For ever, or for a while that is shorter than the driver's patience."""
        rig.launcher.link.hang()

    def _break_protocol(self, rig: Rig, dice: random.Random) -> None:
        rig.launcher.link.break_protocol()

    def _fail_generation(self, rig: Rig, dice: random.Random) -> None:
        live = rig.launcher.link.live
        if live:
            code = dice.choice(("capacity", "engine_error"))
            rig.launcher.link.fail(dice.choice(live), code=code, detail="the nemesis")

    def _refuse_launches(self, rig: Rig, dice: random.Random) -> None:
        rig.launcher.refusals += ["the nemesis"] * dice.randint(1, 2)
        rig.launcher.link.die("killed by the nemesis")

    def _stop_session(self, rig: Rig, dice: random.Random) -> None:
        running = [(shard, child) for shard in rig.shards for child, _ in shard.which_children()]
        if running:
            shard, child = dice.choice(running)
            self._nursery.start_soon(_terminate, shard, child)

    def _jump_clock(self, rig: Rig, dice: random.Random) -> None:
        self._clock.jump(dice.uniform(0.5, 8.0))

    async def _settle(self, rig: Rig) -> None:
        """Nobody asks and nobody attacks: whatever still runs must come to its end."""
        with trio.move_on_after(_SETTLE_S):
            await rig.directory.wait_idle()
            # Turns are over before the engine has let go of their slots, or has come back itself.
            await trio.sleep(_SETTLE_S / 2)

    def _rest(self, rig: Rig) -> list[Violation]:
        """What must be true of a server that has come to rest."""
        rules = {
            "end of all turns": rig.directory.open_turns == 0,
            "a scheduler": rig.view.schedule is not None,
            "free slots": rig.view.schedule is not None and rig.running == 0,
            "an empty queue": rig.view.schedule is not None and rig.waiting == 0,
            "reserved blocks": rig.view.schedule is not None
            and rig.view.schedule.load().reserved_blocks == 0,
            "forgotten tokens": rig.status.tokens == {},
            "a ready engine": rig.status.problem(trio.current_time()) is None,
        }
        return [
            f"at rest, not as it should be: {name}" for name, holds in rules.items() if not holds
        ]


async def _terminate(shard: Supervisor, child: str) -> None:
    try:
        await shard.terminate_child(child)
    except NoActor:
        pass  # it ended by itself meanwhile


def _answer(admit: Admit) -> list[str]:
    """As long as the seed says, often longer than allowed."""
    return numbered_words(admit.request, 1 + admit.sampling.seed * 7919 % _LONGEST_ANSWER)

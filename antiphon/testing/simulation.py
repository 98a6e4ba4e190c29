"""A simulated server under attack: clients that chat, stall and hang up, over HTTP and beneath it,
while a nemesis does what it can, in virtual time, on a seeded schedule.

The same seed gives the same history, event for event. In the spirit of FoundationDB's simulation
and of Jepsen's generators, nemeses and checkers.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import trio
import trio.testing

from antiphon import faults
from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.errors import AntiphonError
from antiphon.events import Admit, CancelCause, Sampling
from antiphon.fault_plan import Site
from antiphon.faults import Injector
from antiphon.settings import HttpSettings
from antiphon.testing.history import TurnRecord, Violation, check, numbered_words
from antiphon.testing.nemesis import Nemesis, background_plan
from antiphon.testing.rig import MODEL, Rig, running_rig
from antiphon.testing.schedules import seeded_schedule
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.web import ConnectionCut, connected, local_web, read_answer, send_chat
from antiphon.turn_events import TurnEnded, TurnEvent, TurnFailed

_CLIENTS = 10
_WEB_CLIENTS = 3
_SETTLE_S = 120.0
_BACKGROUND = 0.3
"""Of all turns: enough that others make them give way all the time."""
_USERS = (None, "user_a", "user_b")
_LONGEST_ANSWER = 40
_PAUSES_S = (0.0, 0.0, 0.0, 0.05, 1.5)
_LONG_STALL_S = 45.0
"""Longer than the engine's silence and any write deadline: a reader that has gone for a coffee."""
_CUTTING = (Site.HTTP_READ_DROP, Site.HTTP_WRITE_DROP, Site.HTTP_WRITE_STALL, Site.HTTP_STREAM)

Turn = Callable[[TurnRecord, random.Random], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a run came to. `story` is the event log that must be the same for the same seed."""

    seed: int
    violations: list[Violation] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    sites: Counter[str] = field(default_factory=Counter)
    """How often each fault site struck."""
    story: list[str] = field(default_factory=list)


def simulate(seed: int, *, minutes: float) -> Outcome:
    """Run a server for that many virtual minutes and check every rule."""
    with seeded_schedule(seed), faults.injected(background_plan(seed)) as injector:
        clock = trio.testing.MockClock(autojump_threshold=0)
        simulation = _Simulation(seed, clock, minutes * 60.0, injector)
        trio.run(simulation.run, clock=clock)
        return simulation.outcome


class _Simulation:
    def __init__(
        self, seed: int, clock: trio.testing.MockClock, seconds: float, injector: Injector
    ) -> None:
        self._dice = random.Random(seed)
        self._clock = clock
        self._seconds = seconds
        self._injector = injector
        self._records: list[TurnRecord] = []
        self.outcome = Outcome(seed=seed)

    async def run(self) -> None:
        launcher = ScriptedLauncher(make=self._link)
        bounds = QueueBounds(max_requests=6, max_tokens=600, deadline_s=20.0)
        async with running_rig(launcher, bounds=bounds, turn_deadline_s=60.0) as rig:
            async with local_web(rig.directory, HttpSettings(), rig.telemetry) as place:
                async with trio.open_nursery() as nursery:
                    for number in range(_CLIENTS):
                        # Dice of its own each, so that one's luck doesn't move the others'.
                        turn = partial(self._turn, rig)
                        nursery.start_soon(self._client, f"client-{number}", turn, self._fork())
                    for number in range(_WEB_CLIENTS):
                        web_turn = partial(self._web_turn, place)
                        nursery.start_soon(self._client, f"web-{number}", web_turn, self._fork())
                    nemesis = Nemesis(rig, self._injector, self._clock, self._fork(), self._tell)
                    nursery.start_soon(nemesis.run, self._seconds)
                self._injector.disarm()
                await self._settle(rig)
            self.outcome.violations += self._rest(rig)
        if rig.directory.open_turns:
            self.outcome.violations.append(f"{rig.directory.open_turns} turns open after the stop")
        self.outcome.faults = nemesis.faults
        self.outcome.sites.update({s.label: n for s, n in self._injector.struck.items()})
        self.outcome.violations += check(self._records)
        self.outcome.violations += self._uncaused_cuts()
        self.outcome.outcomes.update(record.outcome for record in self._records)

    def _fork(self) -> random.Random:
        return random.Random(self._dice.getrandbits(64))

    def _link(self) -> ScriptedLink:
        return ScriptedLink(
            capabilities=scripted_capabilities(slots=4, kv_blocks=24),
            answer=_answer,
            step_s=0.02 + 0.08 * self._dice.random(),
        )

    def _tell(self, *words: object) -> None:
        told = " ".join(str(word) for word in words)
        self.outcome.story.append(f"{trio.current_time():.3f} {told}")

    async def _client(self, name: str, turn: Turn, dice: random.Random) -> None:
        """Ask, read in some manner, think, ask again."""
        number = 0
        while trio.current_time() < self._seconds:
            number += 1
            record = TurnRecord(
                name=f"{name}-{number}",
                choices=dice.choice((1, 1, 1, 2, 3)),
                opened_at=trio.current_time(),
            )
            self._records.append(record)
            await turn(record, dice)
            self._tell(record.name, record.outcome)
            await trio.sleep(dice.expovariate(0.5))

    async def _turn(self, rig: Rig, record: TurnRecord, dice: random.Random) -> None:
        """As an HTTP handler has it, without HTTP."""
        try:
            stream = await rig.open(
                record.name,
                choices=record.choices,
                max_tokens=dice.randint(1, _LONGEST_ANSWER),
                sampling=Sampling(seed=dice.getrandbits(31)),
                background=dice.random() < _BACKGROUND,
                user=dice.choice(_USERS),
            )
        except AntiphonError as error:
            record.refused = type(error).__name__
            return
        leaves_after_s = dice.uniform(0.0, 6.0) if dice.random() < 0.25 else float("inf")
        pause_s = dice.choice(_PAUSES_S)
        stalls = dice.random() < 0.02
        with trio.move_on_after(leaves_after_s):
            while not record.terminal:
                event = await stream.next_event()
                record.add(event, trio.current_time())
                if isinstance(event, TurnEnded | TurnFailed):
                    break
                if stalls:
                    stalls = False
                    await trio.sleep(_LONG_STALL_S)
                if pause_s:
                    await trio.sleep(pause_s * dice.random())
        if not record.terminal:
            record.hung_up = True
            stream.cancel(CancelCause.DISCONNECT)

    async def _web_turn(self, place: Path, record: TurnRecord, dice: random.Random) -> None:
        """The same through a socket: the client leaves by closing it."""
        is_stream = dice.random() < 0.7
        body = {
            "model": MODEL,
            "messages": [{"role": "user", "content": "hello there"}],
            "n": record.choices,
            "max_tokens": dice.randint(1, _LONGEST_ANSWER),
            "seed": dice.getrandbits(31),
            "stream": is_stream,
        }
        if is_stream:
            body["stream_options"] = {"include_usage": True}
        leaves_after_s = dice.uniform(0.0, 6.0) if dice.random() < 0.25 else float("inf")

        def tell(event: TurnEvent) -> None:
            record.add(event, trio.current_time())

        with trio.move_on_after(leaves_after_s) as patience:
            async with connected(place) as client:
                try:
                    await send_chat(client, record.name, body)
                    await read_answer(client, tell, is_stream=is_stream)
                except ConnectionCut:
                    record.cut = True
        record.hung_up = patience.cancelled_caught and not record.terminal

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
            "nothing paused": rig.status.paused == 0,
            "a ready engine": rig.status.problem(trio.current_time()) is None,
        }
        return [
            f"at rest, not as it should be: {name}" for name, holds in rules.items() if not holds
        ]

    def _uncaused_cuts(self) -> list[Violation]:
        """A connection that ends before its answer is one that a fault ended."""
        cuts = sum(record.cut for record in self._records)
        causes = sum(self._injector.struck[site] for site in _CUTTING)
        return [f"{cuts} connections cut, {causes} by faults"] if cuts > causes else []


def _answer(admit: Admit) -> list[str]:
    """As long as the seed says, often longer than allowed."""
    return numbered_words(admit.request, 1 + admit.sampling.seed * 7919 % _LONGEST_ANSWER)

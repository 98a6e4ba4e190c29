"""Random trees, faults and schedules: after each storm nothing is left, lost or wrong."""

import gc
import random
import weakref
from collections import Counter
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from antiphon.supervision.context import ChildContext
from antiphon.supervision.exits import Ignored, Stopped, is_abnormal
from antiphon.supervision.reports import (
    ChildExited,
    ChildStarted,
    RestartScheduled,
)
from antiphon.supervision.spec import Backoff, ChildSpec, Grace, Restart, Strategy, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.supervision.tree import Node
from antiphon.testing.probes import ReportLog, Tree
from antiphon.testing.schedules import seeded_schedule

PATIENT = Backoff(base_s=0.05, max_s=0.4)


class Life:
    """Held by an incarnation while it runs: what is left of it shows what holds on to the dead."""


class Storm:
    """Grows a tree from a seed; its workers fail at any moment, also while they start or stop."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.log = ReportLog()
        self.calm = False
        self.alive: Counter[str] = Counter()
        self.most_alive: Counter[str] = Counter()
        self.lives: weakref.WeakSet[Life] = weakref.WeakSet()

    def fails(self, chance: float) -> bool:
        return not self.calm and self.rng.random() < chance

    async def work(self, context: ChildContext) -> Ignored | None:
        path = context.path
        life = Life()
        self.lives.add(life)
        self.alive[path] += 1
        self.most_alive[path] = max(self.most_alive[path], self.alive[path])
        try:
            if self.rng.random() < 0.5:
                await trio.sleep(self.rng.random() / 10)
            if context.incarnation > 1 and self.fails(0.3):
                raise OSError("while starting")
            context.ready()
            while not context.stopping.is_set():
                with trio.move_on_after(self.rng.uniform(0.1, 3)):
                    await context.stopping.wait()
                if self.fails(0.2):
                    raise ValueError("while running")
            if self.fails(0.1):
                raise KeyError("while stopping")
            await trio.sleep(self.rng.random() * (0.2 if self.calm else 2))
            return None
        finally:
            self.alive[path] -= 1

    def supervisor(self, depth: int) -> Supervisor:
        children: list[ChildSpec] = []
        for number in range(self.rng.randint(1, 4)):
            if depth and self.rng.random() < 0.5:
                children.append(self.supervisor(depth - 1).child(f"s{number}", backoff=PATIENT))
            else:
                children.append(
                    ChildSpec(
                        id=f"w{number}",
                        start=self.work,
                        restart=Restart.PERMANENT,
                        shutdown=Grace(1.0),
                        backoff=PATIENT,
                    )
                )
        spec = SupervisorSpec(
            strategy=self.rng.choice(list(Strategy)), intensity=10**6 if depth == 2 else 5
        )
        return Supervisor(spec, children, reports=self.log, rng=self.rng)

    async def rage(self) -> None:
        root = self.supervisor(2)
        async with trio.open_nursery() as nursery:
            tree = await Tree(root, budget_s=1000).begin(nursery)
            await trio.sleep(30)
            self.calm = True
            await trio.sleep(120)
            assert not tree.ended.is_set()
            nodes = list(_nodes(root.snapshot()))
            assert all(node.state == "up" for node in nodes)
            assert all(node.counts.specs == node.counts.active for node in nodes if node.counts)
            workers = {node.path for node in nodes if node.counts is None}
            assert workers == {path for path, count in self.alive.items() if count == 1}
            outcome = await tree.end()
        assert outcome.exit == Stopped()

    def check(self) -> None:
        assert max(self.most_alive.values()) == 1, "two incarnations at once"
        assert not +self.alive
        gc.collect()
        assert not self.lives, "something holds on to what has ended"
        started: Counter[str] = Counter()
        exited: Counter[str] = Counter()
        for report in self.log.reports:
            if isinstance(report, ChildStarted):
                started[report.path] += 1
            elif isinstance(report, ChildExited):
                # Incarnations are numbered from one, also by a supervisor that was restarted.
                assert report.incarnation >= 1
                assert report.ordered or is_abnormal(report.exit)
                exited[report.path] += 1
        assert all(exited[path] >= count for path, count in started.items())
        by_themselves = sum(not exit.ordered for exit in self.log.of(ChildExited))
        planned = len(self.log.of(RestartScheduled))
        assert planned <= by_themselves, "a restart that no end had asked for"


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _nodes(child)


@pytest.mark.parametrize("seed", range(200))
def test_after_the_storm_everybody_is_up_again_and_stops_cleanly(seed: int) -> None:
    storm = Storm(seed)
    with seeded_schedule(seed):
        trio.run(storm.rage, clock=trio.testing.MockClock(autojump_threshold=0))

    storm.check()


def test_the_same_seed_tells_the_same_story() -> None:
    stories = []
    for _ in range(2):
        storm = Storm(7)
        with seeded_schedule(7):
            trio.run(storm.rage, clock=trio.testing.MockClock(autojump_threshold=0))
        stories.append([(type(report).__name__, report.path) for report in storm.log.reports])

    assert stories[0] == stories[1]
    assert len(stories[0]) > 50

"""Random trees, faults and schedules: after each storm nothing is left, lost or wrong."""

import random
from collections import Counter

import pytest
import trio
import trio.testing

from antiphon.supervision.context import ChildContext
from antiphon.supervision.exits import Ignored, Stopped, is_abnormal
from antiphon.supervision.reports import ChildExited, ChildStarted
from antiphon.supervision.spec import Backoff, ChildSpec, Grace, Restart, Strategy, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.supervision.tree import Node
from antiphon.testing.probes import ReportLog, Tree
from antiphon.testing.schedules import seeded_schedule

PATIENT = Backoff(base_s=0.05, max_s=0.4)


class Storm:
    """Grows a tree from a seed; its workers fail at any moment, also while they start or stop."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.log = ReportLog()
        self.calm = False
        self.alive: Counter[str] = Counter()
        self.most_alive: Counter[str] = Counter()

    def fails(self, chance: float) -> bool:
        return not self.calm and self.rng.random() < chance

    async def work(self, context: ChildContext) -> Ignored | None:
        path = context.path
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
            assert all(state == "up" for state in _states(root.snapshot()))
            outcome = await tree.end()
        assert outcome.exit == Stopped()

    def check(self) -> None:
        assert max(self.most_alive.values()) == 1, "two incarnations at once"
        assert not +self.alive
        balance: Counter[str] = Counter()
        for report in self.log.reports:
            if isinstance(report, ChildStarted):
                balance[report.path] += 1
            elif isinstance(report, ChildExited):
                assert report.incarnation >= 1
                assert report.ordered or is_abnormal(report.exit)


def _states(node: Node) -> list[str]:
    return [node.state, *(state for child in node.children for state in _states(child))]


@pytest.mark.parametrize("seed", range(25))
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

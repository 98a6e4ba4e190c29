"""The pure core against arbitrary lives: whatever happens in whatever order, the rules hold."""

import itertools
import math
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.ids import ActorPath
from antiphon.supervision import state as s
from antiphon.supervision.core import initial, step
from antiphon.supervision.exits import Crashed, Exit, Ignored, Killed, Normal
from antiphon.supervision.spec import (
    Backoff,
    ChildSpec,
    Forever,
    Grace,
    Now,
    Restart,
    Strategy,
    SupervisorSpec,
)
from antiphon.supervision.state import LEAVING, LIVE, Mode, Phase

ROOT = ActorPath("root")


async def never_run(context) -> None:
    raise AssertionError


def child_specs(id: str) -> st.SearchStrategy[ChildSpec]:
    return st.builds(
        ChildSpec,
        id=st.just(id),
        start=st.just(never_run),
        restart=st.sampled_from(Restart),
        shutdown=st.sampled_from([Grace(2.0), Forever(), Now()]),
        init_timeout_s=st.sampled_from([1.0, math.inf]),
        backoff=st.sampled_from(
            [Backoff(), Backoff(base_s=0, max_s=0), Backoff(max_consecutive=2)]
        ),
    )


supervisor_specs = st.one_of(
    st.builds(
        SupervisorSpec,
        strategy=st.sampled_from(Strategy),
        intensity=st.integers(0, 4),
        period_s=st.just(5.0),
    ),
    st.builds(
        SupervisorSpec,
        dynamic=st.just(True),
        max_children=st.sampled_from([None, 2]),
        intensity=st.integers(0, 4),
    ),
)

IDS = "abcd"
moves = st.lists(
    st.one_of(
        st.tuples(st.just("ready"), st.integers(0, 3)),
        st.tuples(st.just("end"), st.integers(0, 3), st.sampled_from([Normal(), Crashed("E")])),
        st.tuples(st.just("decline"), st.integers(0, 3)),
        st.tuples(st.just("heed"), st.integers(0, 3)),
        st.tuples(st.just("time"), st.sampled_from([0.0, 0.5, 3.0, 40.0])),
        st.tuples(st.just("add"), st.sampled_from(IDS)),
        st.tuples(st.just("terminate"), st.sampled_from(IDS)),
        st.tuples(st.just("revive"), st.sampled_from(IDS)),
        st.tuples(st.just("recycle"), st.sampled_from(IDS)),
        st.tuples(st.just("delete"), st.sampled_from(IDS)),
        st.tuples(st.just("stop"), st.sampled_from([math.inf, 10.0])),
    ),
    max_size=40,
)


class World:
    """Plays the driver: keeps what runs, checks every effect against it."""

    def __init__(self, spec: SupervisorSpec, children: Iterable[ChildSpec]) -> None:
        self.now = 100.0
        self.state = initial(ROOT, spec, children)
        self.live: dict[str, int] = {}
        self.told: set[str] = set()
        self.cancelled: set[str] = set()
        self.gone: dict[str, bool] = {}
        self.starts = self.ends = 0
        self.asked: set[int] = set()
        self.answered: set[int] = set()
        self.attempts: list[float] = []
        self.over: s.Over | None = None
        self.tokens = itertools.count(1)
        self.send(s.Boot())

    def token(self) -> int:
        token = next(self.tokens)
        self.asked.add(token)
        return token

    def send(self, event: s.Event) -> None:
        before = self.state
        self.state, effects = step(before, event, self.now)
        for effect in effects:
            self.check(effect)
        self.check_state()

    def check(self, effect: s.Effect) -> None:
        assert self.over is None or isinstance(effect, s.Answer | s.Say | s.Gone)
        match effect:
            case s.Start(spec=spec, incarnation=incarnation):
                assert spec.id not in self.live, "started twice"
                self.live[spec.id] = incarnation
                self.gone[spec.id] = False
                self.starts += 1
            case s.Stop(id=id):
                assert id in self.live, "an effect on a child that does not run"
                self.told.add(id)
            case s.Cancel(id=id):
                assert id in self.live, "an effect on a child that does not run"
                self.cancelled.add(id)
            case s.Ended(spec=spec, incarnation=incarnation):
                assert self.live.pop(spec.id) == incarnation
                self.ends += 1
                self.told.discard(spec.id)
                self.cancelled.discard(spec.id)
            case s.Gone(spec=spec):
                assert spec.id not in self.live
                self.gone[spec.id] = True
            case s.Answer(token=token):
                assert token not in self.answered, "answered twice"
                self.answered.add(token)
            case s.Over():
                self.over = effect

    def check_state(self) -> None:
        running = {id for id, child in self.state.children.items() if child.phase in LIVE | LEAVING}
        assert running == set(self.live), "what runs is not what should"
        assert self.starts - self.ends == len(running)
        for child in self.state.children.values():
            if child.phase is Phase.STARTING and child.spec.init_timeout_s < math.inf:
                assert child.due is not None, "nothing would end this init"
            if child.phase is Phase.KILLING:
                assert child.due is not None, "nothing would end this kill"
        if self.state.mode is Mode.ENDING:
            assert running, "ending, and nobody to wait for"
            assert not any(child.wanted for child in self.state.children.values())
        assert len(self.state.window) <= self.state.spec.intensity + 1
        limit = self.state.spec.max_children
        assert limit is None or len(self.state.children) <= limit
        if self.state.spec.strategy is not Strategy.ONE_FOR_ONE or self.state.mode is Mode.BOOTING:
            starting = [c for c in self.state.children.values() if c.phase is Phase.STARTING]
            assert self.state.spec.dynamic or len(starting) <= 2
        leaving = [c for c in self.state.children.values() if c.phase is Phase.STOPPING]
        if self.ordered():
            assert len(leaving) <= 1, "two at once in an ordered stop"

    def ordered(self) -> bool:
        return (
            self.state.mode is Mode.ENDING
            and not self.state.spec.dynamic
            and self.state.spec.strategy is not Strategy.ONE_FOR_ONE
        )

    def pick(self, index: int) -> str | None:
        ids = sorted(self.live)
        return ids[index % len(ids)] if ids else None

    def exit(self, id: str | None, exit: Exit) -> None:
        if id is not None:
            self.send(s.Exited(id, self.live[id], exit))

    def play(self, move: tuple[object, ...]) -> None:
        match move:
            case ("ready", int(index)) if (id := self.pick(index)) is not None:
                self.send(s.Ready(id, self.live[id]))
            case ("end", int(index), exit):
                self.exit(self.pick(index), exit)  # type: ignore[arg-type]
            case ("decline", int(index)):
                self.exit(self.pick(index), Ignored())
            case ("heed", int(index)):
                ids = sorted(self.told | self.cancelled)
                if ids:
                    id = ids[index % len(ids)]
                    self.exit(id, Killed() if id in self.cancelled else Normal())
            case ("time", float(seconds)):
                self.now += seconds
                self.fire()
            case ("add", str(id)):
                spec = ChildSpec(id=id, start=never_run, restart=Restart.TRANSIENT)
                self.send(s.StartChild(spec, self.token()))
            case ("terminate", str(id)):
                self.send(s.TerminateChild(id, self.token()))
            case ("revive", str(id)):
                self.send(s.RestartChild(id, self.token()))
            case ("recycle", str(id)):
                self.send(s.RecycleChild(id, self.token()))
            case ("delete", str(id)):
                self.send(s.DeleteChild(id, self.token()))
            case ("stop", float(patience)):
                self.send(s.StopOrdered(self.now + patience))

    def fire(self) -> None:
        self.send(s.Due(None))
        for id in list(self.state.children):
            child = self.state.children.get(id)
            if child is not None and child.due is not None and child.due <= self.now:
                self.send(s.Due(id))

    def finish(self) -> None:
        """Order the stop and let everybody heed it."""
        self.send(s.StopOrdered(self.now + 1000))
        for _ in range(20):
            for id in sorted(self.told | self.cancelled):
                if id in self.live:
                    self.exit(id, Normal())


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_the_rules_hold_whatever_happens(data: st.DataObject) -> None:
    spec = data.draw(supervisor_specs)
    count = 0 if spec.dynamic else data.draw(st.integers(0, 4))
    children = [data.draw(child_specs(id)) for id in IDS[:count]]
    world = World(spec, children)

    for move in data.draw(moves):
        world.play(move)
    world.finish()

    assert world.over is not None
    assert not world.live
    assert world.starts == world.ends
    assert world.asked == world.answered
    # After giving up it is the parent that knows whether an incarnation follows.
    assert all(world.gone.values()) or not world.state.leaving


@settings(max_examples=200, deadline=None)
@given(
    gaps=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    intensity=st.integers(0, 4),
    period=st.integers(1, 20),
)
def test_it_gives_up_exactly_when_a_naive_count_of_the_window_says_so(
    gaps: list[int], intensity: int, period: int
) -> None:
    child = ChildSpec(id="a", start=never_run, backoff=Backoff(base_s=0, max_s=0))
    state = initial(ROOT, SupervisorSpec(intensity=intensity, period_s=period), [child])
    now = 0.0
    state, _ = step(state, s.Boot(), now)
    made: list[float] = []

    for gap in gaps:
        state, _ = step(state, s.Ready("a", state.children["a"].incarnation), now)
        now += gap
        made.append(now)
        too_many = sum(now - period <= attempt for attempt in made) > intensity
        state, effects = step(state, s.Exited("a", len(made), Crashed("E")), now)

        assert (state.mode is Mode.OVER) == too_many
        assert any(isinstance(effect, s.Over) for effect in effects) == too_many
        if too_many:
            return


@pytest.mark.parametrize("strategy", list(Strategy))
def test_an_ordered_stop_runs_backwards_from_any_strategy(strategy: Strategy) -> None:
    specs = [ChildSpec(id=id, start=never_run) for id in IDS]
    state = initial(ROOT, SupervisorSpec(strategy=strategy), specs)
    state, effects = step(state, s.Boot(), 0.0)
    for id in IDS:
        state, effects = step(state, s.Ready(id, 1), 0.0)
    assert state.mode is Mode.RUNNING
    stopped = []

    state, effects = step(state, s.StopOrdered(), 0.0)
    while state.mode is not Mode.OVER:
        (id,) = [effect.id for effect in effects if isinstance(effect, s.Stop)]
        stopped.append(id)
        state, effects = step(state, s.Exited(id, 1, Normal()), 0.0)

    assert stopped == list(reversed(IDS))


def test_events_of_an_incarnation_that_is_over_change_nothing() -> None:
    child = ChildSpec(id="a", start=never_run, backoff=Backoff(base_s=0, max_s=0))
    state = initial(ROOT, SupervisorSpec(), [child])
    state, _ = step(state, s.Boot(), 0.0)
    state, _ = step(state, s.Ready("a", 1), 0.0)
    state, _ = step(state, s.Exited("a", 1, Crashed("E")), 1.0)

    for late in (s.Ready("a", 1), s.Exited("a", 1, Crashed("E")), s.Due("a"), s.Due("nobody")):
        assert step(state, late, 1.0) == (state, ())

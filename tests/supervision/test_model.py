"""The core against a naive interpreter of the same rules: after every event the same children are
in the same states, and the same was asked for. Broken rules are noticed."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from antiphon.ids import ActorPath
from antiphon.supervision import commands, core, order, turn
from antiphon.supervision import state as s
from antiphon.supervision.exits import (
    Crashed,
    Exit,
    Ignored,
    InitFailed,
    Interrupted,
    Killed,
    Normal,
    Stopped,
    Stuck,
)
from antiphon.supervision.spec import (
    AutoShutdown,
    Backoff,
    ChildSpec,
    Forever,
    Grace,
    Kind,
    Now,
    Restart,
    Strategy,
    SupervisorSpec,
)
from antiphon.testing.naive import GOING, HERE, Naive

ROOT = ActorPath("root")
IDS = "abcd"
MOVES = 110
EXAMPLES = 400


async def never_run(context) -> None:
    raise AssertionError


def child_specs(id: str, minds: bool) -> st.SearchStrategy[ChildSpec]:
    def build(restart: Restart, significant: bool, kind: Kind, **options: Any) -> ChildSpec:
        if kind is Kind.SUPERVISOR:
            options["shutdown"] = Forever()
        allowed = minds and restart is not Restart.PERMANENT
        return ChildSpec(
            id=id,
            start=never_run,
            restart=restart,
            kind=kind,
            significant=significant and allowed,
            **options,
        )

    return st.builds(
        build,
        restart=st.sampled_from(Restart),
        significant=st.booleans(),
        kind=st.sampled_from([Kind.WORKER, Kind.WORKER, Kind.SUPERVISOR]),
        shutdown=st.sampled_from([Grace(2.0), Forever(), Now()]),
        init_timeout_s=st.sampled_from([1.0, math.inf]),
        backoff=st.sampled_from(
            [
                Backoff(),
                Backoff(base_s=0, max_s=0),
                Backoff(base_s=1, max_s=1.5, max_consecutive=4),
            ]
        ),
    )


supervisor_specs = st.builds(
    lambda shape, **options: SupervisorSpec(**shape, **options),
    st.sampled_from(
        [
            {"strategy": Strategy.ONE_FOR_ONE},
            {"strategy": Strategy.ONE_FOR_ALL},
            {"strategy": Strategy.REST_FOR_ONE},
            {"dynamic": True},
            {"dynamic": True, "max_children": 2},
        ]
    ),
    intensity=st.integers(0, 6),
    auto_shutdown=st.sampled_from(AutoShutdown),
)

ends = st.sampled_from(
    [Normal(), Normal(), Crashed("E"), Crashed("E"), Crashed("E"), Ignored(), Stopped()]
)
index = st.integers(0, 3)
draw = st.sampled_from([-1.0, 0.0, 0.5, 1.0])
ordinary = [
    st.tuples(st.just("all ready")),
    st.tuples(st.just("ready"), index),
    st.tuples(st.just("crash"), index, draw),
    st.tuples(st.just("end"), index, ends, draw),
    st.tuples(st.just("heed"), index, draw),
    st.tuples(st.just("time"), st.sampled_from([0.25, 0.5, 1.0, 3.0, 5.0, 40.0])),
]
orders = [
    st.tuples(st.sampled_from(["add", "terminate", "revive", "delete"]), st.sampled_from(IDS)),
    st.tuples(st.just("stale"), st.sampled_from(IDS)),
]
renewals = [st.tuples(st.just("recycle"), index)]
drastic = [
    st.tuples(st.just("end"), index, st.sampled_from([Interrupted("I"), Stuck()]), draw),
    st.tuples(st.just("stop"), st.sampled_from([math.inf, 10.0, 1.0, 0.0]), st.booleans()),
    st.tuples(st.just("let go"), index),
]
plays = [
    st.lists(st.one_of(*kinds), min_size=MOVES, max_size=MOVES)
    for kinds in (
        ordinary,
        [*ordinary, *ordinary, *orders],
        [*ordinary, *orders, *renewals],
        [*ordinary, *ordinary, *orders, *renewals, *drastic],
    )
]


class Pair:
    """Both, side by side; what runs is known from the naive one. When a supervisor is over, its
    parent starts another."""

    def __init__(self, spec: SupervisorSpec, children: list[ChildSpec], extra: ChildSpec) -> None:
        self.spec, self.children, self.extra = spec, children, extra
        self.now = 100.0
        self.tokens = itertools.count(1)
        self.events = 0
        self.boot()

    def boot(self) -> None:
        self.real = core.initial(ROOT, self.spec, self.children)
        self.naive = Naive(self.spec, self.children)
        self.send(s.Boot())

    def send(self, event: s.Event) -> None:
        self.events += 1
        self.real, effects = core.step(self.real, event, self.now)
        self.naive.take(event, self.now)
        told = [plain for effect in effects if (plain := in_plain_words(effect)) is not None]
        assert Counter(told) == Counter(self.naive.told), event
        assert in_order(told) == in_order(self.naive.told), event
        assert self.real.mode.value == self.naive.mode, event
        assert {
            id: (child.phase.value, child.incarnation, child.wanted, child.due, child.failures)
            for id, child in self.real.children.items()
        } == {
            id: (kid.state, kid.number, kid.wanted, kid.timer, kid.row)
            for id, kid in self.naive.kids.items()
        }, event

    def pick(self, index: int, *states: str) -> str | None:
        ids = [id for id, kid in self.naive.kids.items() if kid.state in states]
        return ids[index % len(ids)] if ids else None

    def exit(self, id: str, exit: Exit, draw: float) -> None:
        self.send(s.Exited(id, self.naive.kids[id].number, exit, draw))

    def play(self, move: tuple[Any, ...]) -> None:
        match move:
            case ("ready", index) if id := self.pick(index, "starting"):
                self.send(s.Ready(id, self.naive.kids[id].number))
            case ("all ready",):
                while id := self.pick(0, "starting"):
                    self.send(s.Ready(id, self.naive.kids[id].number))
            case ("crash", index, draw) if id := self.pick(index, "up"):
                self.exit(id, Crashed("E"), draw)
            case ("end", index, exit, draw) if id := self.pick(index, *HERE, *GOING):
                self.exit(id, exit, draw)
            case ("heed", index, draw) if id := self.pick(index, *GOING):
                killed = self.naive.kids[id].state == "killing"
                self.exit(id, Killed() if killed else Normal(), draw)
            case ("let go", index) if id := self.pick(index, "stuck"):
                self.exit(id, Killed(), 0.0)
            case ("time", seconds):
                self.now += seconds
                for id in [None, *self.naive.kids]:
                    self.send(s.Due(id))
            case ("add", id):
                self.send(s.StartChild(self.renamed(id), next(self.tokens)))
            case ("terminate", id):
                self.send(s.TerminateChild(id, next(self.tokens)))
            case ("revive", id):
                self.send(s.RestartChild(id, next(self.tokens)))
            case ("recycle", index) if id := self.pick(index, *(phase.value for phase in s.Phase)):
                self.send(s.RecycleChild(id, next(self.tokens)))
            case ("delete", id):
                self.send(s.DeleteChild(id, next(self.tokens)))
            case ("stale", id) if kid := self.naive.kids.get(id):
                self.send(s.Exited(id, kid.number - 1, Crashed("E")))
                self.send(s.Ready(id, kid.number + 1))
            case ("stop", patience, leaving):
                self.send(s.StopOrdered(self.now + patience, leaving))
        if self.naive.mode == "over":
            self.boot()

    def renamed(self, id: str) -> ChildSpec:
        extra = self.extra
        return ChildSpec(
            id=id,
            start=never_run,
            restart=extra.restart,
            significant=extra.significant,
            shutdown=extra.shutdown,
            kind=extra.kind,
            backoff=extra.backoff,
        )


def in_plain_words(effect: s.Effect) -> tuple[Any, ...] | None:
    match effect:
        case s.Start(spec=spec, incarnation=incarnation):
            return ("start", spec.id, incarnation)
        case s.Stop(id=id, deadline=deadline, leaving=leaving):
            return ("stop", id, deadline, leaving)
        case s.Cancel(id=id):
            return ("cancel", id)
        case s.Ended(spec=spec, incarnation=incarnation, exit=exit):
            return ("ended", spec.id, incarnation, type(exit).__name__)
        case s.Gone(spec=spec):
            return ("gone", spec.id)
        case s.Answer(token=token, result=result):
            return ("answer", token, None if result is None else type(result).__name__)
        case s.Booted():
            return ("booted",)
        case s.Over(ending=ending, stuck=stuck):
            return ("over", type(ending).__name__, len(stuck))
        case s.Arm() | s.Say():
            return None


def in_order(told: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [one for one in told if one[0] in ("start", "stop", "cancel", "booted", "over")]


@st.composite
def lives(draw: st.DrawFn) -> tuple[SupervisorSpec, list[ChildSpec], ChildSpec, list[Any]]:
    spec = draw(supervisor_specs)
    minds = spec.auto_shutdown is not AutoShutdown.NEVER
    count = 0 if spec.dynamic else draw(st.integers(1, 4))
    children = [draw(child_specs(id, minds)) for id in IDS[:count]]
    return spec, children, draw(child_specs("x", minds)), draw(st.one_of(plays))


def compare(life: tuple[SupervisorSpec, list[ChildSpec], ChildSpec, list[Any]]) -> int:
    *specs, played = life
    pair = Pair(*specs)
    for move in played:
        pair.play(move)
    return pair.events


def test_the_core_does_what_a_naive_interpreter_of_the_rules_does() -> None:
    events = 0

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(lives())
    def run(life) -> None:
        nonlocal events
        events += compare(life)

    run()

    assert events >= 20_000


BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {}


def broken(rule: Callable[[pytest.MonkeyPatch], None]) -> None:
    BROKEN[rule.__name__] = rule


@broken
def a_transient_child_is_restarted_after_a_quiet_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(core, "is_abnormal", lambda exit: True)


@broken
def stops_run_forwards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(order, "_reversed", lambda turn: tuple(turn.children.values()))


@broken
def siblings_are_never_taken_along(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(order, "bystanders", lambda turn, child: ())


@broken
def a_killed_child_is_given_for_ever(patch: pytest.MonkeyPatch) -> None:
    begin_kill = turn.Turn.begin_kill

    def endless(self, child, reason) -> None:
        begin_kill(self, child, reason)
        self.put(self.children[child.spec.id], due=None)

    patch.setattr(turn.Turn, "begin_kill", endless)


@broken
def a_restart_exactly_one_period_ago_no_longer_counts(patch: pytest.MonkeyPatch) -> None:
    begin_start = turn.Turn.begin_start

    def forgetful(self, child) -> bool:
        self.window = tuple(made for made in self.window if made > self.now - self.spec.period_s)
        return begin_start(self, child)

    patch.setattr(turn.Turn, "begin_start", forgetful)


@broken
def a_stable_run_does_not_end_the_row(patch: pytest.MonkeyPatch) -> None:
    put = turn.Turn.put

    def grudging(self, child, **changes):
        if changes.get("failures") == 0 and "last_exit" in changes:
            changes["failures"] = child.failures
        return put(self, child, **changes)

    patch.setattr(turn.Turn, "put", grudging)


@broken
def a_restart_on_command_counts(patch: pytest.MonkeyPatch) -> None:
    recycle = commands.recycle

    def counted(turn, event) -> None:
        recycle(turn, event)
        child = turn.children.get(event.id)
        if child is not None and child.bounce:
            turn.put(child, attempt=True)

    patch.setattr(commands, "recycle", counted)


@broken
def jitter_goes_past_the_cap(patch: pytest.MonkeyPatch) -> None:
    def delay(self, failures, draw) -> float:
        plain = min(self.max_s, self.base_s * 2.0 ** max(0, failures - 2))
        return 0.0 if failures <= 1 else max(0.0, plain * (1 + self.jitter * draw))

    patch.setattr(Backoff, "delay", delay)


@broken
def significant_ends_mean_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(core, "_mind_significance", lambda turn, child: None)


@broken
def a_start_that_failed_is_reported_as_a_crash(patch: pytest.MonkeyPatch) -> None:
    meaning = core._meaning

    def frank(child, exit) -> Exit:
        meant = meaning(child, exit)
        return Crashed("E") if isinstance(meant, InitFailed) else meant

    patch.setattr(core, "_meaning", frank)


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BROKEN[rule](monkeypatch)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(lives())
    def run(life) -> None:
        compare(life)

    with pytest.raises((AssertionError, KeyError)):
        run()

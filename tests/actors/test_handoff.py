from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import structlog.testing
import trio
import trio.testing

from antiphon.actors.actor import ActorContext, actor_child
from antiphon.actors.address import Address
from antiphon.actors.handoff import Handoff, problem_of
from antiphon.errors import SpecError
from antiphon.ids import ActorPath
from antiphon.supervision.exits import Crashed, Exit, InitFailed, Killed, Normal, Stopped
from antiphon.supervision.spec import NO_BACKOFF, Restart, Strategy, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Puppet, Tree

PATH = ActorPath("root/a")
ONE = SupervisorSpec(intensity=100)
Point = namedtuple("Point", "x y")


@dataclass(frozen=True, slots=True)
class Saved:
    count: int
    names: tuple[str, ...] = ()


@dataclass
class Loose:
    count: int


@dataclass
class Counter:
    """Counts messages; `-` crashes it. All incarnations share the lists."""

    seen: list[object] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    picky: bool = False
    last_words: object = None

    def make(self) -> "Incarnation":
        return Incarnation(self)


class Incarnation:
    def __init__(self, counter: Counter) -> None:
        self._all = counter

    def start(self, me: ActorContext[str]) -> None:
        self._me = me
        self._count = 0
        self._all.seen.append(me.handoff)
        match me.handoff:
            case Saved(count=count) if not self._all.picky:
                self._count = count
            case None:
                pass
            case _:
                raise ValueError("a hand-over that it can't use")

    def handle(self, message: str) -> None:
        if message == "-":
            raise RuntimeError
        self._count += 1
        self._me.save(Saved(self._count))
        self._all.counts.append(self._count)

    def terminate(self) -> None:
        if self._all.last_words is not None:
            self._me.save(self._all.last_words)


async def begin(
    nursery: trio.Nursery, spec: SupervisorSpec = ONE, *others: Puppet
) -> tuple[Counter, Address[str], Supervisor]:
    counter, address = Counter(), Address[str](PATH, capacity=8)
    child = actor_child("a", counter.make, address, backoff=NO_BACKOFF)
    supervisor = Supervisor(spec, [*(other.spec() for other in others), child])
    await Tree(supervisor).begin(nursery)
    return counter, address, supervisor


async def quiet() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_the_next_incarnation_is_given_what_the_last_one_saved(
    nursery, autojump_clock
) -> None:
    counter, address, _ = await begin(nursery)

    for message in ("x", "x", "-", "x"):
        address.ref.tell(message)
    await quiet()

    assert counter.seen == [None, Saved(2)]
    assert counter.counts == [1, 2, 3]


async def test_a_hand_over_that_start_cannot_take_is_not_tried_again(
    nursery, autojump_clock
) -> None:
    counter, address, _ = await begin(nursery)
    counter.picky = True

    with structlog.testing.capture_logs() as logs:
        for message in ("x", "-", "x"):
            address.ref.tell(message)
        await quiet()

    assert counter.seen == [None, Saved(1), None]
    assert counter.counts == [1, 1]
    dropped = [line for line in logs if line["event"] == "handoff_dropped"]
    assert [(line["path"], line["incarnation"]) for line in dropped] == [(PATH, 2)]


async def test_what_a_crashed_actor_still_saves_is_not_taken(nursery, autojump_clock) -> None:
    counter, address, _ = await begin(nursery)
    counter.last_words = Saved(99)

    for message in ("x", "-"):
        address.ref.tell(message)
    await quiet()

    assert counter.seen == [None, Saved(1)]


async def test_a_restart_for_a_siblings_sake_hands_over_what_terminate_saved(
    nursery, autojump_clock
) -> None:
    sibling = Puppet("b")
    counter, _, _ = await begin(
        nursery, SupervisorSpec(strategy=Strategy.REST_FOR_ONE, intensity=9), sibling
    )
    counter.last_words = Saved(7)

    sibling.crash()
    await sibling.up(2)
    await quiet()

    assert counter.seen == [None, Saved(7)]


async def test_an_actor_stopped_for_good_starts_afresh_by_hand(nursery, autojump_clock) -> None:
    counter, address, supervisor = await begin(nursery)
    address.ref.tell("x")
    await quiet()

    await supervisor.terminate_child("a")
    await supervisor.restart_child("a")

    assert counter.seen == [None, None]


async def test_a_value_that_cannot_be_handed_over_is_refused_where_it_is_saved(
    nursery, autojump_clock
) -> None:
    refused: list[str] = []

    class Careless:
        def start(self, me: ActorContext[str]) -> None:
            try:
                me.save([1, 2])
            except SpecError as error:
                refused.append(str(error))

        def handle(self, message: str) -> None: ...

        def terminate(self) -> None: ...

    address: Address[str] = Address(PATH, capacity=1)
    child = actor_child("a", Careless, address, restart=Restart.TEMPORARY)
    await Tree(Supervisor(ONE, [child])).begin(nursery)

    assert refused == ["hand-over of root/a: it holds a list, which may change"]


def lives(handoff: Handoff, *ends: tuple[float, Exit]) -> list[bool]:
    """Run incarnations, each for that long to that end; whether each had something."""
    now, had = 0.0, []
    for lived, exit in ends:
        handoff.begin(now)
        had.append(handoff.value is not None)
        now += lived
        handoff.end(exit, now)
    return had


def saved() -> Handoff:
    handoff = Handoff()
    handoff.begin(0.0)
    handoff.save(PATH, 1)
    handoff.end(Crashed("E"), 1.0)
    return handoff


def test_after_three_crashes_in_a_row_it_is_dropped() -> None:
    crash = (1.0, Crashed("E"))

    assert lives(saved(), *[crash] * 5) == [True, True, True, False, False]


@pytest.mark.parametrize("better", [(30.0, Crashed("E")), (1.0, Stopped()), (1.0, Killed())])
def test_a_long_life_or_a_quiet_end_ends_the_row(better: tuple[float, Exit]) -> None:
    crash = (1.0, Crashed("E"))

    assert all(lives(saved(), crash, crash, better, crash, crash))


def test_one_start_that_fails_is_enough() -> None:
    failed = (1.0, InitFailed("E"))

    assert lives(saved(), failed, failed) == [True, False]


def test_a_failed_start_that_was_given_nothing_costs_nothing() -> None:
    handoff = Handoff()
    handoff.begin(0.0)
    handoff.save(PATH, 1)

    assert not handoff.end(InitFailed("E"), 1.0)
    assert lives(handoff, (1.0, Normal())) == [True]


@pytest.mark.parametrize(
    "make",
    [
        lambda: [1],
        lambda: {"a": 1},
        lambda: {1},
        lambda: (1, [2]),
        lambda: Loose(1),
        lambda: Saved([1]),  # type: ignore[arg-type]
        lambda: ValueError("a crash"),
        lambda: print,
        lambda: "x" * 65_537,
        lambda: tuple(range(1_000)),
        lambda: Saved,
    ],
)
def test_only_small_values_that_cannot_change_are_taken(make: Callable[[], object]) -> None:
    assert problem_of(make()) is not None


@pytest.mark.parametrize(
    "value",
    [
        None,
        1.5,
        b"x",
        "x" * 65_536,
        Strategy.ONE_FOR_ALL,
        (1, ("a", frozenset({2}))),
        Saved(1, ("a",)),
        Point(1, 2),
        tuple(range(999)),
    ],
)
def test_plain_frozen_values_are_taken(value: object) -> None:
    assert problem_of(value) is None

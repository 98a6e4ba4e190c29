import math

import pytest
import trio
import trio.testing

from antiphon.errors import SpecError, WouldDeadlock
from antiphon.supervision.exits import Ignored, InitFailed, Stopped
from antiphon.supervision.reports import ChildExited
from antiphon.supervision.spec import (
    NO_BACKOFF,
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
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Puppet, ReportLog, Tree, asleep

ONE = SupervisorSpec()


def puppets(names: str) -> tuple[list[str], list[Puppet]]:
    story: list[str] = []
    return story, [Puppet(name, story) for name in names]


def test_duplicate_ids_are_refused() -> None:
    child = Puppet("a").spec()

    with pytest.raises(SpecError, match="duplicate"):
        Supervisor(ONE, [child, child])


@pytest.mark.parametrize(
    "options",
    [
        {"intensity": -1},
        {"period_s": 0.0},
        {"period_s": math.inf},
        {"dynamic": True, "strategy": Strategy.ONE_FOR_ALL},
        {"max_children": 3},
        {"dynamic": True, "max_children": 0},
        {"strategy": "one_for_one"},
        {"auto_shutdown": "any"},
    ],
)
def test_a_contradictory_supervisor_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(SpecError):
        SupervisorSpec(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"id": ""},
        {"id": "a/b"},
        {"start": None},
        {"restart": "permanent"},
        {"significant": True},
        {"kind": "worker"},
        {"shutdown": Grace(0)},
        {"shutdown": Grace(math.inf)},
        {"shutdown": 5},
        {"shutdown": Now(), "kind": Kind.SUPERVISOR},
        {"kill_grace_s": 0},
        {"init_timeout_s": 0},
    ],
)
def test_a_contradictory_child_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(SpecError):
        ChildSpec(**{"id": "a", "start": Puppet("a").start, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"base_s": -1},
        {"base_s": 2, "max_s": 1},
        {"jitter": 1.5},
        {"stable_after_s": 0},
        {"max_consecutive": 0},
    ],
)
def test_a_contradictory_backoff_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        Backoff(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [ChildSpec, SupervisorSpec, Backoff])
def test_a_field_that_does_not_exist_is_refused(make) -> None:
    with pytest.raises(TypeError, match="intensty"):
        make(intensty=3)


def test_a_dynamic_supervisor_takes_no_static_children() -> None:
    with pytest.raises(SpecError):
        Supervisor(SupervisorSpec(dynamic=True), [Puppet("a").spec()])


def test_a_worker_is_permanent_with_five_seconds_and_a_supervisor_is_waited_for() -> None:
    worker = Puppet("a").spec()
    supervisor = Supervisor(ONE).child("s")

    assert (worker.restart, worker.shutdown, worker.kind) == (
        Restart.PERMANENT,
        Grace(5.0),
        Kind.WORKER,
    )
    assert (supervisor.shutdown, supervisor.kind) == (Forever(), Kind.SUPERVISOR)


async def test_children_start_in_order_each_after_the_one_before_is_ready(
    nursery, autojump_clock
) -> None:
    story, (a, b, c) = puppets("abc")
    gate = trio.Event()

    async def wait(context) -> None:
        await gate.wait()

    a.init = wait
    tree = Tree(Supervisor(ONE, [a.spec(), b.spec(), c.spec()]))
    nursery.start_soon(tree.begin, nursery)
    await trio.testing.wait_all_tasks_blocked()
    assert story == ["+a1"]

    gate.set()
    await c.up(1)

    assert story == ["+a1", "+b1", "+c1"]


async def test_a_failed_boot_stops_what_had_started_and_names_the_child(
    nursery, autojump_clock
) -> None:
    story, (a, b, c) = puppets("abc")

    async def fail(context) -> None:
        raise OSError("no such device")

    b.init = fail
    log = ReportLog()
    tree = await Tree(Supervisor(ONE, [a.spec(), b.spec(), c.spec()], reports=log)).begin(nursery)
    outcome = await tree.over()

    assert story == ["+a1", "+b1", "-b1", "-a1"]
    assert isinstance(outcome.exit, InitFailed)
    assert outcome.exit.kind == "StartFailed"
    assert "root/b" in outcome.exit.message
    assert "no such device" in outcome.exit.message
    failed = log.of(ChildExited)[0].exit
    assert isinstance(failed, InitFailed)
    assert "no such device" in failed.trace


async def test_an_init_that_takes_too_long_fails_the_boot_at_its_timeout(
    nursery, autojump_clock
) -> None:
    story, (a, b) = puppets("ab")
    b.init = asleep
    began = trio.current_time()

    tree = await Tree(Supervisor(ONE, [a.spec(), b.spec()])).begin(nursery)
    outcome = await tree.over()

    assert trio.current_time() - began == pytest.approx(10.0)
    assert isinstance(outcome.exit, InitFailed)
    assert "not ready within 10 s" in outcome.exit.message
    assert story == ["+a1", "+b1", "-b1", "-a1"]


async def test_returning_before_ready_is_a_failed_start(nursery, autojump_clock) -> None:
    async def start(context) -> None:
        pass

    tree = await Tree(Supervisor(ONE, [ChildSpec(id="a", start=start)])).begin(nursery)
    outcome = await tree.over()

    assert isinstance(outcome.exit, InitFailed)
    assert "returned before it was ready" in outcome.exit.message


async def test_a_child_that_declines_is_kept_down_and_a_temporary_one_is_forgotten(
    nursery, autojump_clock
) -> None:
    _, (a, b, c) = puppets("abc")

    async def decline(context) -> Ignored:
        return Ignored()

    a.init = b.init = decline
    supervisor = Supervisor(ONE, [a.spec(), b.spec(restart=Restart.TEMPORARY), c.spec()])
    await Tree(supervisor).begin(nursery)

    assert [(id, phase.value) for id, phase in supervisor.which_children()] == [
        ("a", "down"),
        ("c", "up"),
    ]


async def test_a_stop_during_a_slow_init_cancels_it_and_stops_the_rest(
    nursery, autojump_clock
) -> None:
    story, (a, b, c) = puppets("abc")
    b.init = asleep
    log = ReportLog()
    tree = Tree(Supervisor(ONE, [a.spec(), b.spec(), c.spec()], reports=log))
    nursery.start_soon(tree.begin, nursery)
    await a.up(1)
    await trio.testing.wait_all_tasks_blocked()

    outcome = await tree.end()

    assert story == ["+a1", "+b1", "-b1", "-a1"]
    assert outcome.exit == Stopped()
    assert outcome.stop_s == 0
    assert {report.exit for report in log.of(ChildExited)} == {Stopped()}


async def test_a_stop_during_a_nested_boot_is_ordered_too(nursery, autojump_clock) -> None:
    story, (a, b) = puppets("ab")
    b.init = asleep
    slow = trio.Event()

    async def tidy(context) -> None:
        await trio.sleep(1)
        slow.set()

    a.clean_up = tidy
    inner = Supervisor(ONE, [a.spec(), b.spec()])
    tree = Tree(Supervisor(ONE, [inner.child("inner")]))
    nursery.start_soon(tree.begin, nursery)
    await a.up(1)
    await trio.testing.wait_all_tasks_blocked()

    outcome = await tree.end()

    assert slow.is_set()
    assert outcome.exit == Stopped()
    assert story == ["+a1", "+b1", "-b1", "-a1"]


async def test_a_failed_nested_boot_fails_the_boot_above_without_a_retry(
    nursery, autojump_clock
) -> None:
    story, (a,) = puppets("a")

    async def fail(context) -> None:
        raise OSError

    a.init = fail
    tree = await Tree(Supervisor(ONE, [Supervisor(ONE, [a.spec()]).child("s")])).begin(nursery)
    outcome = await tree.over()

    assert story == ["+a1", "-a1"]
    assert isinstance(outcome.exit, InitFailed)


async def test_a_nested_boot_that_fails_on_a_restart_costs_the_parent_one_attempt_each(
    nursery, autojump_clock
) -> None:
    story, (a,) = puppets("a")

    async def fail_later(context) -> None:
        if "+a1" in story[:-1]:
            raise OSError

    a.init = fail_later
    inner = Supervisor(SupervisorSpec(intensity=0), [a.spec(backoff=NO_BACKOFF)])
    tree = await Tree(
        Supervisor(SupervisorSpec(intensity=2), [inner.child("s", backoff=NO_BACKOFF)])
    ).begin(nursery)
    a.crash()
    outcome = await tree.over()

    assert story.count("+a1") == 3  # the first boot and the two attempts
    assert outcome.exit.kind == "IntensityExceeded"


async def test_a_starting_child_that_calls_its_supervisor_would_deadlock(
    nursery, autojump_clock
) -> None:
    supervisor = Supervisor(ONE)
    refusals = []

    async def start(context) -> None:
        with pytest.raises(WouldDeadlock) as refused:
            await supervisor.start_child(Puppet("other").spec())
        refusals.append(refused.value.path)
        context.ready()
        # Once it is up nobody waits for it, but it can't wait for its own end either.
        await supervisor.start_child(Puppet("third").spec())
        with pytest.raises(WouldDeadlock):
            await supervisor.terminate_child("a")
        await context.stopping.wait()

    await Tree(supervisor).begin(nursery)
    with trio.fail_after(1):
        await supervisor.start_child(ChildSpec(id="a", start=start))
        await trio.testing.wait_all_tasks_blocked()

    assert refusals == ["root"]
    assert supervisor.count_children() == 2


async def test_a_grandchild_of_a_starting_child_would_deadlock_too(nursery, autojump_clock) -> None:
    outer = Supervisor(ONE)
    refused = trio.Event()

    async def start(context) -> None:
        with pytest.raises(WouldDeadlock):
            await outer.terminate_child("inner")
        refused.set()
        context.ready()
        await context.stopping.wait()

    inner = Supervisor(ONE, [ChildSpec(id="a", start=start)])
    await Tree(outer).begin(nursery)
    with trio.fail_after(1):
        await outer.start_child(inner.child("inner"))

    assert refused.is_set()

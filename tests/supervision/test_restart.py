import itertools
import random

import pytest
import trio
import trio.testing

from antiphon.errors import StartFailed
from antiphon.supervision.exits import Crashed, Interrupted, Stopped
from antiphon.supervision.reports import (
    ChildExited,
    ChildStarted,
    RestartDenied,
    RestartScheduled,
    SupervisorGaveUp,
)
from antiphon.supervision.spec import NO_BACKOFF, Backoff, Restart, Strategy, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Puppet, ReportLog, Tree, asleep

ONE = SupervisorSpec(intensity=100)
REST = SupervisorSpec(strategy=Strategy.REST_FOR_ONE, intensity=100)
ALL = SupervisorSpec(strategy=Strategy.ONE_FOR_ALL, intensity=100)


def puppets(names: str) -> tuple[list[str], list[Puppet]]:
    story: list[str] = []
    return story, [Puppet(name, story) for name in names]


async def quiet() -> None:
    await trio.testing.wait_all_tasks_blocked()


# Which ends are restarted.


async def test_a_permanent_child_that_returns_is_restarted(nursery, autojump_clock) -> None:
    _, (a,) = puppets("a")
    log = ReportLog()
    await Tree(Supervisor(ONE, [a.spec()], reports=log)).begin(nursery)

    a.finish()
    await a.up(2)

    assert [report.incarnation for report in log.of(ChildStarted)] == [1, 2]
    assert len(log.of(ChildExited)) == 1


async def test_a_transient_child_that_returns_is_kept_down_and_can_be_started_again(
    nursery, autojump_clock
) -> None:
    story, (a,) = puppets("a")
    supervisor = Supervisor(ONE, [a.spec(restart=Restart.TRANSIENT)])
    await Tree(supervisor).begin(nursery)

    a.finish()
    await quiet()
    assert [phase.value for _, phase in supervisor.which_children()] == ["down"]

    assert await supervisor.restart_child("a")
    assert story == ["+a1", "-a1", "+a2"]


async def test_a_transient_child_that_crashes_is_restarted(nursery, autojump_clock) -> None:
    story, (a,) = puppets("a")
    await Tree(Supervisor(ONE, [a.spec(restart=Restart.TRANSIENT)])).begin(nursery)

    a.crash()
    await a.up(2)

    assert story == ["+a1", "-a1", "+a2"]


async def test_a_temporary_child_is_not_restarted_and_its_id_is_free(
    nursery, autojump_clock
) -> None:
    story, (a,) = puppets("a")
    supervisor = Supervisor(ONE, [a.spec(restart=Restart.TEMPORARY)])
    await Tree(supervisor).begin(nursery)

    a.crash()
    await quiet()
    assert supervisor.which_children() == ()

    await supervisor.start_child(a.spec(restart=Restart.TEMPORARY))
    assert story == ["+a1", "-a1", "+a1"]


@pytest.mark.parametrize("spec", [REST, ALL])
async def test_a_temporary_bystander_is_not_restarted_and_costs_nothing(
    spec, nursery, autojump_clock
) -> None:
    story, (a, b) = puppets("ab")
    supervisor = Supervisor(spec, [a.spec(), b.spec(restart=Restart.TEMPORARY)])
    await Tree(supervisor).begin(nursery)

    a.crash()
    await a.up(2)

    assert story == ["+a1", "+b1", "-a1", "-b1", "+a2"]
    assert supervisor.count_children() == 1
    assert supervisor.snapshot().restarts_in_window == 1


async def test_a_group_of_errors_is_one_exit_that_tells_both(nursery, autojump_clock) -> None:
    _, (a,) = puppets("a")
    log = ReportLog()
    await Tree(Supervisor(ONE, [a.spec()], reports=log)).begin(nursery)

    a.crash(ExceptionGroup("two", [ValueError("first"), KeyError("second")]))
    await a.up(2)

    (exited,) = log.of(ChildExited)
    assert isinstance(exited.exit, Crashed)
    assert exited.exit.kind == "ValueError+KeyError"
    assert "first" in exited.exit.trace
    assert "second" in exited.exit.trace


async def test_an_error_beside_a_cancellation_is_a_crash(nursery, autojump_clock) -> None:
    log = ReportLog()
    started = trio.Event()

    async def fails_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("clean-up")

    async def init(context) -> None:
        started.set()
        async with trio.open_nursery() as inner:
            inner.start_soon(fails_when_cancelled)
            inner.start_soon(trio.sleep_forever)

    puppet = Puppet("a")
    puppet.init = init
    tree = Tree(Supervisor(ONE, [puppet.spec()], reports=log))
    nursery.start_soon(tree.begin, nursery)
    await started.wait()
    await quiet()
    await tree.end()

    (exited,) = log.of(ChildExited)
    assert isinstance(exited.exit, Crashed)
    assert exited.exit.kind == "ValueError"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
async def test_an_interrupt_in_a_child_stops_the_whole_tree_in_order(
    error, nursery, autojump_clock
) -> None:
    story, (a, b, c, d) = puppets("abcd")
    inner = Supervisor(ONE, [b.spec(), c.spec()])
    tree = await Tree(Supervisor(ONE, [a.spec(), inner.child("s"), d.spec()])).begin(nursery)

    b.crash(error)
    outcome = await tree.over()

    assert story[4:] == ["-b1", "-c1", "-d1", "-a1"]
    assert isinstance(outcome.exit, Interrupted)
    assert outcome.exit.kind == type(error).__name__
    assert c.context is not None
    assert c.context.leaving


async def test_a_cancellation_from_outside_stops_in_order_and_restarts_nothing(
    nursery, autojump_clock
) -> None:
    story, (a, b) = puppets("ab")
    log = ReportLog()
    tree = await Tree(Supervisor(ONE, [a.spec(), b.spec()], reports=log)).begin(nursery)

    tree.scope.cancel()
    await tree.ended.wait()

    assert story == ["+a1", "+b1", "-b1", "-a1"]
    assert {report.exit for report in log.of(ChildExited)} == {Stopped()}


# Strategies.


async def test_one_for_one_leaves_siblings_alone(nursery, autojump_clock) -> None:
    story, (a, b, c) = puppets("abc")
    await Tree(Supervisor(ONE, [a.spec(), b.spec(), c.spec()])).begin(nursery)

    b.crash()
    await b.up(2)

    assert story[3:] == ["-b1", "+b2"]


async def test_one_for_all_stops_backwards_and_starts_forwards(nursery, autojump_clock) -> None:
    story, (a, b, c) = puppets("abc")
    await Tree(Supervisor(ALL, [a.spec(), b.spec(), c.spec()])).begin(nursery)

    b.crash()
    await c.up(2)

    assert story[3:] == ["-b1", "-c1", "-a1", "+a2", "+b2", "+c2"]


async def test_rest_for_one_leaves_earlier_siblings_alone(nursery, autojump_clock) -> None:
    story, (a, b, c, d) = puppets("abcd")
    await Tree(Supervisor(REST, [p.spec() for p in (a, b, c, d)])).begin(nursery)

    b.crash()
    await d.up(2)

    assert story[4:] == ["-b1", "-d1", "-c1", "+b2", "+c2", "+d2"]


async def test_a_group_restart_waits_for_each_sibling_to_stop_and_to_be_ready(
    nursery, autojump_clock
) -> None:
    story, (a, b, c) = puppets("abc")

    async def second(context) -> None:
        await trio.sleep(1)

    a.init = b.init = c.clean_up = second
    await Tree(Supervisor(REST, [a.spec(), b.spec(), c.spec()])).begin(nursery)
    began = trio.current_time()

    a.crash()
    await c.up(2)

    assert story[3:] == ["-a1", "-c1", "-b1", "+a2", "+b2", "+c2"]
    assert trio.current_time() - began == pytest.approx(3.0)


async def test_a_sibling_that_fails_during_a_group_restart_is_counted_and_tried_again(
    nursery, autojump_clock
) -> None:
    story, (a, b, c) = puppets("abc")

    async def fail_second(context) -> None:
        if context.incarnation == 2:
            raise OSError

    b.init = fail_second
    supervisor = Supervisor(ALL, [p.spec(backoff=NO_BACKOFF) for p in (a, b, c)])
    await Tree(supervisor).begin(nursery)

    a.crash()
    await c.up(2)

    assert story[3:] == ["-a1", "-c1", "-b1", "+a2", "+b2", "-b2", "-a2", "+a3", "+b3", "+c2"]
    assert supervisor.snapshot().restarts_in_window == 2


async def test_a_sibling_that_crashes_before_its_turn_to_stop_starts_no_second_restart(
    nursery, autojump_clock
) -> None:
    story, (a, b, c) = puppets("abc")

    async def second(context) -> None:
        await trio.sleep(1)

    c.clean_up = second
    supervisor = Supervisor(REST, [a.spec(), b.spec(), c.spec()])
    await Tree(supervisor).begin(nursery)

    a.crash()
    await quiet()
    b.crash()
    await c.up(2)

    assert story[3:] == ["-a1", "-b1", "-c1", "+a2", "+b2", "+c2"]
    assert supervisor.snapshot().restarts_in_window == 1


async def test_a_sibling_that_waits_for_its_restart_is_started_with_the_group(
    nursery, autojump_clock
) -> None:
    story, (a, b) = puppets("ab")
    backoff = Backoff(base_s=100, max_s=100)
    supervisor = Supervisor(REST, [a.spec(), b.spec(backoff=backoff)])
    await Tree(supervisor).begin(nursery)
    b.crash()
    await b.up(2)
    b.crash()
    await quiet()
    began = trio.current_time()

    a.crash()
    await b.up(3)

    assert trio.current_time() == began
    assert story[2:] == ["-b1", "+b2", "-b2", "-a1", "+a2", "+b3"]
    assert supervisor.snapshot().restarts_in_window == 2


async def test_a_child_that_crashes_while_it_stops_is_reported_and_the_stop_goes_on(
    nursery, autojump_clock
) -> None:
    story, (a, b) = puppets("ab")

    async def fail(context) -> None:
        raise ValueError("while stopping")

    b.clean_up = fail
    log = ReportLog()
    tree = await Tree(Supervisor(ONE, [a.spec(), b.spec()], reports=log)).begin(nursery)

    outcome = await tree.end()

    assert story[2:] == ["-b1", "-a1"]
    assert outcome.exit == Stopped()
    crash = log.of(ChildExited)[0]
    assert isinstance(crash.exit, Crashed)
    assert crash.ordered


# Limits.


async def crash_at(puppet: Puppet, times: list[float]) -> None:
    began = trio.current_time()
    for incarnation, at in enumerate(times, start=1):
        await trio.sleep_until(began + at)
        await puppet.up(incarnation)
        puppet.crash()
    await quiet()


@pytest.mark.parametrize(("fourth", "survives"), [(4.9, False), (5.0, False), (5.1, True)])
async def test_more_than_three_restarts_within_five_seconds_are_too_many(
    fourth, survives, nursery, autojump_clock
) -> None:
    _, (a,) = puppets("a")
    log = ReportLog()
    supervisor = Supervisor(
        SupervisorSpec(intensity=3, period_s=5.0), [a.spec(backoff=NO_BACKOFF)], reports=log
    )
    tree = await Tree(supervisor).begin(nursery)
    # A power of two keeps the sums exact, so that the edge is the edge.
    await trio.sleep_until(2.0**20)

    await crash_at(a, [0, 1, 2, fourth])

    assert tree.ended.is_set() is not survives
    assert len(log.of(RestartDenied)) == len(log.of(SupervisorGaveUp)) == (0 if survives else 1)
    if not survives:
        outcome = await tree.over()
        assert outcome.exit.kind == "IntensityExceeded"


async def test_intensity_zero_gives_up_at_the_first_crash(nursery, autojump_clock) -> None:
    story, (a, b) = puppets("ab")
    tree = await Tree(Supervisor(SupervisorSpec(intensity=0), [a.spec(), b.spec()])).begin(nursery)

    a.crash()
    outcome = await tree.over()

    assert story == ["+a1", "+b1", "-a1", "-b1"]
    assert isinstance(outcome.exit, Crashed)


async def test_a_transient_supervisor_that_gave_up_is_restarted(nursery, autojump_clock) -> None:
    story, (a,) = puppets("a")
    inner = Supervisor(SupervisorSpec(intensity=0), [a.spec()])
    await Tree(Supervisor(ONE, [inner.child("s", restart=Restart.TRANSIENT)])).begin(nursery)

    a.crash()
    await quiet()

    assert story == ["+a1", "-a1", "+a1"]


async def test_intensities_multiply_over_levels(nursery, autojump_clock) -> None:
    starts = 0

    async def always_crash(context) -> None:
        nonlocal starts
        starts += 1
        context.ready()
        raise RuntimeError

    from antiphon.supervision.spec import ChildSpec

    leaf = ChildSpec(id="leaf", start=always_crash, backoff=NO_BACKOFF)
    low = Supervisor(SupervisorSpec(intensity=3), [leaf])
    middle = Supervisor(SupervisorSpec(intensity=2), [low.child("low", backoff=NO_BACKOFF)])
    top = Supervisor(SupervisorSpec(intensity=1), [middle.child("middle", backoff=NO_BACKOFF)])

    outcome = await (await Tree(top).begin(nursery)).over()

    assert outcome.exit.kind == "IntensityExceeded"
    assert starts == (3 + 1) * (2 + 1) * (1 + 1)


async def test_starts_that_always_fail_end_after_intensity_attempts(
    nursery, autojump_clock
) -> None:
    story, (a,) = puppets("a")

    async def fail_again(context) -> None:
        if context.incarnation > 1:
            raise OSError

    a.init = fail_again
    tree = await Tree(Supervisor(SupervisorSpec(intensity=3), [a.spec(backoff=NO_BACKOFF)])).begin(
        nursery
    )

    a.crash()
    await tree.over()

    assert story.count("+a2") + story.count("+a3") + story.count("+a4") == 3
    assert "+a5" not in story


def test_backoff_doubles_to_its_cap_after_an_immediate_first_restart() -> None:
    backoff = Backoff(base_s=1, max_s=8, jitter=0)

    assert [backoff.delay(n, 0.0) for n in range(1, 7)] == [0, 1, 2, 4, 8, 8]


def test_jitter_stays_within_its_share_and_the_cap() -> None:
    backoff = Backoff(base_s=1, max_s=8, jitter=0.2)

    for seed in range(1000):
        delays = [backoff.delay(n, random.Random(seed).uniform(-1, 1)) for n in (1, 2, 3, 5, 500)]
        assert delays[0] == 0
        assert 0.8 <= delays[1] <= 1.2
        assert 1.6 <= delays[2] <= 2.4
        assert 6.4 <= delays[3] <= 8
        assert 6.4 <= delays[4] <= 8


async def test_restarts_in_a_row_are_spaced_and_a_stable_run_ends_the_row(
    nursery, autojump_clock
) -> None:
    _, (a,) = puppets("a")
    log = ReportLog()
    backoff = Backoff(base_s=1, max_s=8, jitter=0, stable_after_s=20)
    await Tree(Supervisor(ONE, [a.spec(backoff=backoff)], reports=log)).begin(nursery)

    ups = []
    for incarnation in range(1, 5):
        await a.up(incarnation)
        ups.append(trio.current_time())
        a.crash()
    await a.up(5)
    await trio.sleep(20)
    a.crash()
    await a.up(6)

    assert [later - earlier for earlier, later in itertools.pairwise(ups)] == [0, 1, 2]
    assert [report.delay_s for report in log.of(RestartScheduled)] == [0, 1, 2, 4, 0]
    assert [report.in_row for report in log.of(RestartScheduled)] == [1, 2, 3, 4, 1]


async def test_flapping_slower_than_the_window_ends_by_the_limit_of_a_row(
    nursery, autojump_clock
) -> None:
    _, (a,) = puppets("a")
    backoff = Backoff(base_s=0, max_s=0, stable_after_s=60, max_consecutive=3)
    tree = await Tree(Supervisor(SupervisorSpec(intensity=1), [a.spec(backoff=backoff)])).begin(
        nursery
    )

    await crash_at(a, [0, 10, 20, 30])
    outcome = await tree.over()

    assert outcome.exit.kind == "IntensityExceeded"


async def test_a_stop_during_the_wait_for_a_restart_starts_nothing(nursery, autojump_clock) -> None:
    story, (a,) = puppets("a")
    backoff = Backoff(base_s=100, max_s=100)
    tree = await Tree(Supervisor(ONE, [a.spec(backoff=backoff)])).begin(nursery)
    a.crash()
    await a.up(2)
    a.crash()
    await quiet()

    outcome = await tree.end()

    assert outcome.stop_s == 0
    assert story == ["+a1", "-a1", "+a2", "-a2"]


async def test_terminating_a_child_cancels_its_pending_restart(nursery, autojump_clock) -> None:
    story, (a,) = puppets("a")
    supervisor = Supervisor(ONE, [a.spec(backoff=Backoff(base_s=100, max_s=100))])
    await Tree(supervisor).begin(nursery)
    a.crash()
    await a.up(2)
    a.crash()
    await quiet()

    exit = await supervisor.terminate_child("a")
    await trio.sleep(1000)

    assert isinstance(exit, Crashed)
    assert [phase.value for _, phase in supervisor.which_children()] == ["down"]
    assert story[-1] == "-a2"


async def test_commands_are_served_while_a_child_fails_to_start_again_and_again(
    nursery, autojump_clock
) -> None:
    _, (a, b) = puppets("ab")

    async def fail_again(context) -> None:
        if context.incarnation > 1:
            await asleep(context)

    a.init = fail_again
    supervisor = Supervisor(ONE, [a.spec(init_timeout_s=1, backoff=NO_BACKOFF)])
    await Tree(supervisor).begin(nursery)
    a.crash()
    await trio.sleep(3.5)

    with trio.fail_after(0.1):
        await supervisor.start_child(b.spec())
        await supervisor.terminate_child("b")
        await supervisor.delete_child("b")
        await supervisor.terminate_child("a")

    assert supervisor.count_children() == 1


async def test_whoever_starts_a_temporary_child_hears_that_a_sibling_took_it_along(
    nursery, autojump_clock
) -> None:
    _, (a, b) = puppets("ab")
    supervisor = Supervisor(REST, [a.spec()])
    await Tree(supervisor).begin(nursery)
    b.init = asleep

    async def fell_a_sibling() -> None:
        await quiet()
        a.crash()

    nursery.start_soon(fell_a_sibling)

    with trio.fail_after(1.0), pytest.raises(StartFailed):
        await supervisor.start_child(b.spec(restart=Restart.TEMPORARY))

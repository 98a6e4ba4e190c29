import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio
import trio.testing

from antiphon.errors import ActorStopped, AlreadyPresent, NoActor, StartFailed
from antiphon.supervision.exits import Crashed, Killed, Stopped, Stuck
from antiphon.supervision.reports import ChildExited, ChildStuck, ShutdownSlow
from antiphon.supervision.spec import (
    ChildSpec,
    Forever,
    Grace,
    Now,
    Restart,
    Strategy,
    SupervisorSpec,
)
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Puppet, ReportLog, Tree, asleep

ONE = SupervisorSpec(intensity=100)
DYNAMIC = SupervisorSpec(dynamic=True)


def puppets(names: str) -> tuple[list[str], list[Puppet]]:
    story: list[str] = []
    return story, [Puppet(name, story) for name in names]


@contextmanager
def let_go_at_the_end(*stuck: Puppet) -> Iterator[None]:
    """Trio can't end while a shielded task runs: a failing test would hang."""
    for puppet in stuck:
        puppet.deaf = puppet.shielded = True
    try:
        yield
    finally:
        for puppet in stuck:
            puppet.finish()


async def quiet() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_children_stop_backwards_one_after_another(nursery, autojump_clock) -> None:
    story, (a, b, c) = puppets("abc")

    async def second(context) -> None:
        await trio.sleep(1)

    a.clean_up = b.clean_up = c.clean_up = second
    tree = await Tree(Supervisor(ONE, [a.spec(), b.spec(), c.spec()])).begin(nursery)

    outcome = await tree.end()

    assert story[3:] == ["-c1", "-b1", "-a1"]
    assert outcome.stop_s == pytest.approx(3.0)
    assert outcome.exit == Stopped()


async def test_a_child_that_ignores_the_stop_is_killed_after_its_grace(
    nursery, autojump_clock
) -> None:
    _, (a,) = puppets("a")
    a.deaf = True
    log = ReportLog()
    tree = await Tree(Supervisor(ONE, [a.spec(shutdown=Grace(3))], reports=log)).begin(nursery)

    outcome = await tree.end()

    assert outcome.stop_s == pytest.approx(3.0)
    assert [report.exit for report in log.of(ChildExited)] == [Killed()]
    assert [report.waited_s for report in log.of(ShutdownSlow)] == [pytest.approx(3.0)]
    assert outcome.exit == Stopped()


async def test_a_child_that_ignores_its_cancellation_is_stuck_and_the_others_still_stop(
    nursery, autojump_clock
) -> None:
    story, (a, b, c) = puppets("abc")
    with let_go_at_the_end(b):
        log = ReportLog()
        inner = Supervisor(
            ONE,
            [a.spec(), b.spec(shutdown=Grace(3), kill_grace_s=2), c.spec()],
            reports=log,
        )
        d = Puppet("d", story)
        tree = await Tree(Supervisor(ONE, [d.spec(), inner.child("s")], reports=log)).begin(nursery)

        outcome = await tree.end()

        assert story[4:] == ["-c1", "-a1", "-d1"]
        assert outcome.exit == Stuck(("root/s/b",))
        assert outcome.stuck == ("root/s/b",)
        assert outcome.stop_s == pytest.approx(5.0)
        assert [report.paths for report in log.of(ChildStuck)] == [("root/s/b",)] * 2


async def test_a_stuck_child_that_was_wanted_ends_the_tree(nursery, autojump_clock) -> None:
    story, (a, b) = puppets("ab")
    with let_go_at_the_end(b):
        inner = Supervisor(
            SupervisorSpec(strategy=Strategy.REST_FOR_ONE),
            [a.spec(), b.spec(shutdown=Grace(3), kill_grace_s=2)],
        )
        tree = await Tree(Supervisor(ONE, [inner.child("s")])).begin(nursery)

        a.crash()
        outcome = await tree.over()

        assert outcome.stuck == ("root/s/b",)
        assert "+a2" not in story


async def test_a_shutdown_now_cancels_at_once(nursery, autojump_clock) -> None:
    _, (a,) = puppets("a")

    a.clean_up = asleep
    log = ReportLog()
    tree = await Tree(Supervisor(ONE, [a.spec(shutdown=Now())], reports=log)).begin(nursery)

    outcome = await tree.end()

    assert outcome.stop_s == 0
    assert [report.exit for report in log.of(ChildExited)] == [Killed()]


async def test_dynamic_children_stop_all_at_once(nursery, autojump_clock) -> None:
    async def second(context) -> None:
        await trio.sleep(1)

    supervisor = Supervisor(DYNAMIC)
    tree = await Tree(supervisor).begin(nursery)
    for number in range(100):
        puppet = Puppet(f"p{number}")
        puppet.clean_up = second
        await supervisor.start_child(puppet.spec(restart=Restart.TEMPORARY))

    outcome = await tree.end()

    assert outcome.stop_s == pytest.approx(1.0)
    assert outcome.exit == Stopped()


async def test_a_budget_shorter_than_the_graces_is_kept_and_every_phase_told(
    nursery, autojump_clock
) -> None:
    story, (a, b, c) = puppets("abc")
    a.deaf = b.deaf = c.deaf = True
    log = ReportLog()
    tree = await Tree(
        Supervisor(ONE, [p.spec(shutdown=Grace(6)) for p in (a, b, c)], reports=log), budget_s=10
    ).begin(nursery)

    outcome = await tree.end()

    assert outcome.stop_s is not None
    assert outcome.stop_s <= 10
    assert outcome.exit == Stopped()
    slow = [(report.path, round(report.waited_s, 3)) for report in log.of(ShutdownSlow)]
    # c has its whole grace, b what is left before the reserve for kills; a is cancelled with it.
    assert slow == [("root/c", 6.0), ("root/b", pytest.approx(10 * 0.95 - 1.9 - 6.0))]
    assert sorted(story[3:]) == ["-a1", "-b1", "-c1"]


async def test_the_budget_holds_through_levels_even_when_children_are_stuck(
    nursery, autojump_clock
) -> None:
    _, (a, b, c) = puppets("abc")
    with let_go_at_the_end(a, b, c):
        inner = Supervisor(ONE, [a.spec(shutdown=Forever()), b.spec(shutdown=Forever())])
        tree = await Tree(
            Supervisor(ONE, [c.spec(shutdown=Grace(60)), inner.child("s")]), budget_s=10
        ).begin(nursery)

        outcome = await tree.end()

        assert outcome.stop_s is not None
        assert outcome.stop_s <= 10
        assert sorted(outcome.stuck) == ["root/c", "root/s/a", "root/s/b"]


async def test_when_the_graces_are_used_up_the_rest_is_cancelled_without_waiting_for_the_stuck(
    nursery, autojump_clock
) -> None:
    _, (a, b) = puppets("ab")
    log = ReportLog()
    with let_go_at_the_end(b):
        a.deaf = True
        root = Supervisor(ONE, [a.spec(), b.spec(shutdown=Forever(), kill_grace_s=60)], reports=log)
        tree = await Tree(root, budget_s=10).begin(nursery)

        outcome = await tree.end()

        assert outcome.stuck == ("root/b",)
        # The reserve is a fifth of the time: `a` is gone when it begins.
        (killed,) = log.of(ChildExited)
        assert (killed.path, killed.exit, killed.stop_s) == ("root/a", Killed(), 0.0)


async def test_a_second_stop_request_changes_nothing(nursery, autojump_clock) -> None:
    story, (a, b) = puppets("ab")

    async def second(context) -> None:
        await trio.sleep(1)

    a.clean_up = b.clean_up = second
    tree = await Tree(Supervisor(ONE, [a.spec(), b.spec()])).begin(nursery)
    tree.stop.set()
    await trio.sleep(0.5)

    tree.scope.cancel()
    await tree.ended.wait()

    assert story[2:] == ["-b1", "-a1"]


async def test_cancelling_whoever_runs_the_tree_is_an_ordered_stop_within_the_budget(
    nursery, autojump_clock
) -> None:
    story, (a, b) = puppets("ab")
    b.deaf = True
    tree = await Tree(Supervisor(ONE, [a.spec(), b.spec()]), budget_s=20).begin(nursery)
    began = trio.current_time()

    tree.scope.cancel()
    await tree.ended.wait()

    assert story[2:] == ["-b1", "-a1"]
    assert trio.current_time() - began == pytest.approx(5.0)


async def test_only_a_stop_for_good_is_a_leave_taking(nursery, autojump_clock) -> None:
    _, (a, b) = puppets("ab")
    spec = SupervisorSpec(strategy=Strategy.REST_FOR_ONE)
    tree = await Tree(Supervisor(spec, [a.spec(), b.spec()])).begin(nursery)
    first = await b.up(1)

    a.crash()
    second = await b.up(2)
    await tree.end()

    assert (first.leaving, second.leaving) == (False, True)


async def test_a_dynamic_child_never_comes_back_so_its_stop_is_for_good(
    nursery, autojump_clock
) -> None:
    _, (a, b) = puppets("ab")
    inner = Supervisor(DYNAMIC)
    spec = SupervisorSpec(strategy=Strategy.REST_FOR_ONE)
    await Tree(Supervisor(spec, [a.spec(), inner.child("s")])).begin(nursery)
    await inner.start_child(b.spec())
    context = await b.up(1)

    a.crash()
    await a.up(2)
    await quiet()

    assert context.leaving
    assert inner.count_children() == 0


async def test_a_stop_of_the_whole_hurries_a_part_that_was_stopping_without_haste(
    nursery, autojump_clock
) -> None:
    story, (a, b) = puppets("ab")

    async def told(context) -> None:
        haste = trio.Event()
        context.on_stop(lambda: haste.set() if math.isfinite(context.stop_deadline) else None)
        await haste.wait()
        story.append("hurries")

    b.clean_up = told
    inner = Supervisor(ONE, [a.spec(), b.spec(shutdown=Forever())])
    root = Supervisor(ONE, [inner.child("s")])
    tree = await Tree(root, budget_s=10).begin(nursery)
    nursery.start_soon(root.terminate_child, "s")
    await trio.sleep(1)

    outcome = await tree.end()

    assert story[2:] == ["hurries", "-b1", "-a1"]
    assert outcome.exit == Stopped()


async def test_a_killed_supervisor_takes_its_children_along_and_restarts_none(
    nursery, autojump_clock
) -> None:
    story, (a, b, c) = puppets("abc")
    log = ReportLog()
    told: list[str] = []

    class Listener:
        def started(self, path, incarnation) -> None:
            told.append("started")

        def exited(self, incarnation, exit) -> None:
            told.append(type(exit).__name__)

        def gone(self) -> None:
            told.append("gone")

    async def fail_when_cancelled(context) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("on the way out")

    a.deaf = True
    b.clean_up = fail_when_cancelled
    inner = Supervisor(
        ONE,
        [c.spec(), a.spec(shutdown=Forever(), lifecycle=Listener()), b.spec(shutdown=Forever())],
        reports=log,
    )
    inner._stop_ordered = lambda: None  # type: ignore[method-assign]  # it does not hear the stop
    spec = ChildSpec(id="s", start=inner.run, shutdown=Grace(3), lifecycle=inner)
    tree = await Tree(Supervisor(ONE, [spec], reports=log)).begin(nursery)

    outcome = await tree.end()

    assert outcome.stop_s == pytest.approx(3.0)
    assert sorted(story[3:]) == ["-a1", "-b1", "-c1"]
    assert told[:3] == ["started", "Killed", "gone"]
    assert set(told[3:]) <= {"gone"}
    assert {report.path: type(report.exit).__name__ for report in log.of(ChildExited)} == {
        "root/s": "Killed",
        "root/s/a": "Killed",
        "root/s/b": "Killed",
        "root/s/c": "Killed",
    }


async def test_a_crash_while_the_supervisor_is_being_killed_restarts_nothing(
    nursery, autojump_clock
) -> None:
    story: list[str] = []
    log = ReportLog()

    async def start(context) -> None:
        story.append("start")
        context.ready()
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("on the way out")

    inner = Supervisor(ONE, [ChildSpec(id="a", start=start)], reports=log)
    inner._stop_ordered = lambda: None  # type: ignore[method-assign]  # it does not hear the stop
    spec = ChildSpec(id="s", start=inner.run, shutdown=Now(), lifecycle=inner)
    tree = await Tree(Supervisor(ONE, [spec], reports=log)).begin(nursery)

    await tree.end()

    assert story == ["start"]
    assert [r.path for r in log.of(ChildExited) if isinstance(r.exit, Crashed)] == ["root/s/a"]


async def test_a_bug_in_the_supervisor_ends_it_as_a_crash(nursery, autojump_clock) -> None:
    _, (a,) = puppets("a")

    def broken(report) -> None:
        if isinstance(report, ChildExited):
            raise ZeroDivisionError

    inner = Supervisor(ONE, [a.spec()], reports=broken)
    log = ReportLog()
    await Tree(Supervisor(ONE, [inner.child("s")], reports=log)).begin(nursery)

    a.crash()
    await a.up(1)
    await quiet()

    crash = log.of(ChildExited)[0].exit
    assert isinstance(crash, Crashed)
    assert crash.kind == "ZeroDivisionError"


# Children at run time.


async def test_commands_fail_clearly(nursery, autojump_clock) -> None:
    _, (a, b) = puppets("ab")
    supervisor = Supervisor(ONE, [a.spec()])
    with pytest.raises(ActorStopped):
        await supervisor.start_child(b.spec())
    with pytest.raises(ActorStopped):
        supervisor.start_child_nowait(b.spec())
    tree = await Tree(supervisor).begin(nursery)

    with pytest.raises(AlreadyPresent):
        await supervisor.start_child(a.spec())
    with pytest.raises(AlreadyPresent):
        supervisor.start_child_nowait(a.spec())
    with pytest.raises(AlreadyPresent):
        await supervisor.restart_child("a")
    with pytest.raises(AlreadyPresent):
        await supervisor.delete_child("a")
    with pytest.raises(NoActor):
        await supervisor.terminate_child("nobody")
    await tree.end()
    with pytest.raises(ActorStopped):
        await supervisor.terminate_child("a")


async def test_a_child_whose_first_start_fails_leaves_no_trace(nursery, autojump_clock) -> None:
    async def fail(context) -> None:
        raise OSError("disk on fire")

    supervisor = Supervisor(DYNAMIC)
    await Tree(supervisor).begin(nursery)
    puppet = Puppet("a")
    puppet.init = fail

    with pytest.raises(StartFailed, match="disk on fire"):
        await supervisor.start_child(puppet.spec())

    assert supervisor.count_children() == 0


async def test_terminating_waits_for_the_end_and_tells_it(nursery, autojump_clock) -> None:
    _, (a,) = puppets("a")

    async def second(context) -> None:
        await trio.sleep(1)

    a.clean_up = second
    supervisor = Supervisor(ONE, [a.spec()])
    await Tree(supervisor).begin(nursery)
    began = trio.current_time()

    assert await supervisor.terminate_child("a") == Stopped()
    assert trio.current_time() - began == pytest.approx(1.0)
    assert await supervisor.terminate_child("a") == Stopped()
    assert await supervisor.restart_child("a")
    assert await supervisor.terminate_child("a") == Stopped()
    await supervisor.delete_child("a")

    assert supervisor.count_children() == 0


async def test_a_pending_start_fails_when_the_supervisor_stops(nursery, autojump_clock) -> None:
    supervisor = Supervisor(DYNAMIC)
    tree = await Tree(supervisor).begin(nursery)
    puppet = Puppet("a")
    puppet.init = asleep
    nursery.start_soon(tree.end)

    with pytest.raises(StartFailed, match="stopping"):
        await supervisor.start_child(puppet.spec(init_timeout_s=math.inf))


async def test_a_starter_that_gives_up_waiting_leaves_the_child_running(
    nursery, autojump_clock
) -> None:
    supervisor = Supervisor(DYNAMIC)
    await Tree(supervisor).begin(nursery)
    puppet = Puppet("a")

    async def slow(context) -> None:
        await trio.sleep(2)

    puppet.init = slow
    with trio.move_on_after(1):
        await supervisor.start_child(puppet.spec())
    await puppet.up(1)

    assert supervisor.count_children() == 1

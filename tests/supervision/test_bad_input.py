"""Children that misbehave, and the log lines from which an operator can see which one and how: the
real lines, as they are logged."""

import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import structlog.testing
import trio

from antiphon.errors import SpecError
from antiphon.supervision.context import ChildContext
from antiphon.supervision.exits import Crashed, InitFailed, Stopped, Stuck
from antiphon.supervision.root import Outcome, run_tree
from antiphon.supervision.spec import (
    NO_BACKOFF,
    AutoShutdown,
    ChildSpec,
    Grace,
    Kind,
    Now,
    SupervisorSpec,
)
from antiphon.supervision.supervisor import Supervisor

Start = Callable[[ChildContext], Awaitable[None]]
Lines = list[dict[str, Any]]


async def polite(context: ChildContext) -> None:
    context.ready()
    await context.stopping.wait()


async def never_ready(context: ChildContext) -> None:
    await trio.sleep_forever()


async def returns_at_once(context: ChildContext) -> None:
    context.ready()


async def ignores_its_stop(context: ChildContext) -> None:
    context.ready()
    await trio.sleep_forever()


async def ignores_even_its_cancellation(context: ChildContext) -> None:
    context.ready()
    with trio.CancelScope(shield=True, deadline=trio.current_time() + 60):
        await trio.sleep_forever()


async def run(bad: ChildSpec, *, stop_after_s: float = math.inf) -> tuple[Outcome, Lines]:
    """A tree of a good child and the bad one, to its end."""
    root = Supervisor(SupervisorSpec(), [ChildSpec(id="good", start=polite), bad])
    stop = trio.Event()
    with structlog.testing.capture_logs() as lines:
        async with trio.open_nursery() as nursery:

            async def order_stop() -> None:
                await trio.sleep(stop_after_s)
                stop.set()

            nursery.start_soon(order_stop)
            outcome = await run_tree(root, stop=stop, budget_s=30.0)
            nursery.cancel_scope.cancel()
    return outcome, [dict(line) for line in lines]


def of(lines: Lines, event: str, path: str = "root/bad") -> Lines:
    return [line for line in lines if line["event"] == event and line.get("path") == path]


@pytest.mark.parametrize(
    ("make", "subject", "problem"),
    [
        (lambda: ChildSpec(id="a/b", start=polite), "child 'a/b'", "no '/'"),
        (lambda: ChildSpec(id="a", start=polite, shutdown=Grace(0)), "child 'a'", "grace"),
        (
            lambda: ChildSpec(id="a", start=polite, kind=Kind.SUPERVISOR, shutdown=Now()),
            "child 'a'",
            "stopped Now",
        ),
        (lambda: ChildSpec(id="a", start=polite, significant=True), "child 'a'", "permanent"),
        (lambda: SupervisorSpec(intensity=-1), "supervisor", "intensity"),
        (lambda: SupervisorSpec(period_s=0.0), "supervisor", "period_s"),
        (lambda: SupervisorSpec(max_children=3), "supervisor", "max_children"),
        (
            lambda: Supervisor(SupervisorSpec(), [ChildSpec(id="a", start=polite)] * 2),
            "supervisor",
            "duplicate ids among a",
        ),
    ],
)
def test_a_specification_that_contradicts_itself_names_its_subject_and_the_field(
    make: Callable[[], object], subject: str, problem: str
) -> None:
    with pytest.raises(SpecError) as caught:
        make()

    assert str(caught.value).startswith(f"{subject}: ")
    assert problem in str(caught.value)
    assert AutoShutdown.NEVER is SupervisorSpec().auto_shutdown


async def test_a_child_that_never_becomes_ready_is_named_with_how_long_it_was_given(
    autojump_clock,
) -> None:
    outcome, lines = await run(ChildSpec(id="bad", start=never_ready, init_timeout_s=3.0))

    [line] = of(lines, "child_exited")
    assert (line["log_level"], line["exit"]) == ("error", "initfailed")
    assert line["error"] == "Timeout: not ready within 3 s"
    assert isinstance(outcome.exit, InitFailed)
    assert outcome.exit.message == "root/bad did not start: Timeout: not ready within 3 s"


async def test_a_child_that_ignores_its_stop_is_named_with_how_long_it_was_waited_for(
    autojump_clock,
) -> None:
    bad = ChildSpec(id="bad", start=ignores_its_stop, shutdown=Grace(4.0))

    outcome, lines = await run(bad, stop_after_s=1.0)

    [slow] = of(lines, "shutdown_slow")
    assert (slow["log_level"], slow["waited_s"]) == ("warning", 4.0)
    [exited] = of(lines, "child_exited")
    assert (exited["log_level"], exited["exit"], exited["stop_s"]) == ("warning", "killed", 4.0)
    assert outcome.exit == Stopped()


async def test_a_child_that_ignores_even_its_cancellation_is_named_and_so_is_the_end_it_makes(
    autojump_clock,
) -> None:
    bad = ChildSpec(
        id="bad", start=ignores_even_its_cancellation, shutdown=Grace(4.0), kill_grace_s=1.0
    )

    outcome, lines = await run(bad, stop_after_s=1.0)

    [stuck] = of(lines, "child_stuck")
    assert (stuck["log_level"], stuck["stuck"], stuck["waited_s"]) == ("error", ("root/bad",), 5.0)
    [ended] = [line for line in lines if line["event"] == "tree_stopped"]
    assert (ended["exit"], ended["stuck"]) == ("stuck", ("root/bad",))
    assert outcome.exit == Stuck(("root/bad",))


@pytest.mark.parametrize("options", [{}, {"backoff": NO_BACKOFF}])
async def test_a_child_that_returns_at_once_for_ever_is_given_up_with_the_reason_in_every_line(
    autojump_clock, options: dict[str, Any]
) -> None:
    outcome, lines = await run(ChildSpec(id="bad", start=returns_at_once, **options))

    planned = of(lines, "restart_scheduled")
    assert [line["in_row"] for line in planned] == [1, 2, 3, 4]
    assert {line["after"] for line in planned} == {"it returned by itself"}
    assert [line["log_level"] for line in planned] == ["warning"] * 3 + ["error"]
    [denied] = of(lines, "restart_denied")
    assert denied["reason"] == "more than 3 restarts in 5 s"
    assert denied["after"] == "it returned by itself"
    [gave_up] = of(lines, "supervisor_gave_up", "root")
    assert gave_up["reason"] == "root/bad: more than 3 restarts in 5 s"
    assert isinstance(outcome.exit, Crashed)
    [good] = of(lines, "child_exited", "root/good")
    assert (good["exit"], good["ordered"]) == ("stopped", True)


async def test_a_restart_after_a_crash_says_which_one(autojump_clock) -> None:
    async def crashes(context: ChildContext) -> None:
        context.ready()
        raise ValueError("no such table")

    _, lines = await run(ChildSpec(id="bad", start=crashes))

    assert {line["after"] for line in of(lines, "restart_scheduled")} == {
        "ValueError: no such table"
    }

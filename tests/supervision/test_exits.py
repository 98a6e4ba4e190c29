import pytest
import structlog.testing
import trio

from antiphon.ids import ActorPath
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
    describe,
    exit_of,
    is_abnormal,
)
from antiphon.supervision.reports import (
    ChildExited,
    ChildStarted,
    ChildStuck,
    RestartDenied,
    RestartScheduled,
    ShutdownSlow,
    SupervisorGaveUp,
    log_report,
)

PATH = ActorPath("root/a")


async def cancelled() -> trio.Cancelled:
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as error:
            caught = error
            raise
    return caught


async def test_a_cancellation_alone_is_no_exit() -> None:
    error = await cancelled()

    assert exit_of(error) is None
    assert exit_of(BaseExceptionGroup("both", [error, error])) is None


async def test_what_is_left_of_a_group_beside_cancellations_is_the_exit() -> None:
    inner = BaseExceptionGroup("inner", [await cancelled(), ValueError("x")])

    exit = exit_of(BaseExceptionGroup("outer", [inner, KeyError("y")]))

    assert isinstance(exit, Crashed)
    assert (exit.kind, exit.message) == ("ValueError+KeyError", "x; 'y'")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_group_goes_before_everything_else(kind: type[BaseException]) -> None:
    exit = exit_of(BaseExceptionGroup("both", [ValueError(), kind("3")]))

    assert exit == Interrupted(kind.__name__, "3")


def test_any_other_base_exception_is_a_crash() -> None:
    class Odd(BaseException):
        pass

    exit = exit_of(Odd("unheard of"))

    assert isinstance(exit, Crashed)
    assert exit.kind == "Odd"


def test_an_exit_keeps_the_text_of_the_traceback_and_not_its_frames() -> None:
    try:
        raise ValueError("bad") from OSError("root cause")
    except ValueError as error:
        exit = exit_of(error)

    assert isinstance(exit, Crashed)
    assert "root cause" in exit.trace
    assert "test_an_exit_keeps" in exit.trace


def test_long_messages_are_cut() -> None:
    exit = exit_of(ValueError("x" * 10_000))

    assert isinstance(exit, Crashed)
    assert len(exit.message) == 500


@pytest.mark.parametrize(
    ("exit", "abnormal", "text"),
    [
        (Normal(), False, "normal"),
        (Stopped(), False, "stopped"),
        (Ignored(), False, "ignored"),
        (Killed(), True, "killed"),
        (Crashed("E", "m"), True, "E: m"),
        (InitFailed("E"), True, "E"),
        (Stuck(("root/a", "root/b")), True, "stuck: root/a, root/b"),
        (Interrupted("SystemExit", "3"), True, "SystemExit: 3"),
    ],
)
def test_every_exit_is_described_and_classified(exit: Exit, abnormal: bool, text: str) -> None:
    assert is_abnormal(exit) is abnormal
    assert describe(exit) == text


def exited(exit: Exit, *, temporary: bool) -> ChildExited:
    return ChildExited(
        path=PATH, incarnation=1, temporary=temporary, exit=exit, ordered=False, stop_s=None
    )


@pytest.mark.parametrize(
    ("report", "event", "level"),
    [
        (ChildStarted(path=PATH, incarnation=1, temporary=False), "child_started", "info"),
        (ChildStarted(path=PATH, incarnation=1, temporary=True), "child_started", "debug"),
        (exited(Normal(), temporary=False), "child_exited", "info"),
        (exited(Normal(), temporary=True), "child_exited", "debug"),
        (exited(Crashed("E", "m", "trace"), temporary=True), "child_exited", "error"),
        (exited(Killed(), temporary=True), "child_exited", "warning"),
        (RestartScheduled(path=PATH, delay_s=1, in_row=3), "restart_scheduled", "warning"),
        (RestartScheduled(path=PATH, delay_s=1, in_row=4), "restart_scheduled", "error"),
        (RestartDenied(path=PATH, reason="r"), "restart_denied", "error"),
        (ShutdownSlow(path=PATH, waited_s=1), "shutdown_slow", "warning"),
        (ChildStuck(path=PATH, paths=(PATH,), waited_s=1), "child_stuck", "error"),
        (SupervisorGaveUp(path=PATH, reason="r"), "supervisor_gave_up", "error"),
    ],
)
def test_each_fact_is_logged_once_under_its_name(report, event: str, level: str) -> None:
    with structlog.testing.capture_logs() as lines:
        log_report(report)

    assert [(line["event"], line["log_level"], line["path"]) for line in lines] == [
        (event, level, PATH)
    ]

"""What a supervisor says about its children: one frozen value per fact, and how each is logged.

child_started, child_exited, restart_scheduled, restart_denied, shutdown_slow, child_stuck and
supervisor_gave_up are the event names. Temporary children are many and short-lived, so their
quiet facts are at debug level; a crash is an error whoever had it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import structlog

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
)

log = structlog.get_logger(__name__)

_LOUD_AFTER = 3
"""Restarts in a row after which a scheduled restart is an error and not a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStarted:
    path: ActorPath
    incarnation: int
    temporary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildExited:
    """`ordered` says whether it had been told to stop, `stop_s` how long that took it."""

    path: ActorPath
    incarnation: int
    temporary: bool
    exit: Exit
    ordered: bool
    stop_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartScheduled:
    """`in_row` restarts without a stable run between them, this one included. `after` is the end
    that asks for it."""

    path: ActorPath
    delay_s: float
    in_row: int
    after: Exit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartDenied:
    """The restart that would have exceeded a limit, and how the child ended last."""

    path: ActorPath
    reason: str
    after: Exit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownSlow:
    """The grace ran out and the child is cancelled."""

    path: ActorPath
    waited_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStuck:
    """The child ignored its cancellation, or reported tasks below it that do."""

    path: ActorPath
    paths: tuple[str, ...]
    waited_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorGaveUp:
    path: ActorPath
    reason: str


Report = (
    ChildStarted
    | ChildExited
    | RestartScheduled
    | RestartDenied
    | ShutdownSlow
    | ChildStuck
    | SupervisorGaveUp
)

ReportSink = Callable[[Report], None]


def log_report(report: Report) -> None:
    """The sink used outside tests."""
    match report:
        case ChildStarted():
            say = log.debug if report.temporary else log.info
            say("child_started", path=report.path, incarnation=report.incarnation)
        case ChildExited():
            _log_exit(report)
        case RestartScheduled():
            say = log.error if report.in_row > _LOUD_AFTER else log.warning
            say(
                "restart_scheduled",
                path=report.path,
                delay_s=round(report.delay_s, 3),
                in_row=report.in_row,
                after=_cause(report.after),
            )
        case RestartDenied():
            log.error(
                "restart_denied",
                path=report.path,
                reason=report.reason,
                after=_cause(report.after),
            )
        case ShutdownSlow():
            log.warning("shutdown_slow", path=report.path, waited_s=round(report.waited_s, 3))
        case ChildStuck():
            log.error(
                "child_stuck",
                path=report.path,
                stuck=report.paths,
                waited_s=round(report.waited_s, 3),
            )
        case SupervisorGaveUp():
            log.error("supervisor_gave_up", path=report.path, reason=report.reason)
        case _:
            assert_never(report)


def _cause(exit: Exit | None) -> str | None:
    """Why a restart is due, for somebody who has only this line."""
    match exit:
        case None:
            return None
        case Normal():
            return "it returned by itself"
        case _:
            return describe(exit)


def _log_exit(report: ChildExited) -> None:
    fields: dict[str, object] = {
        "path": report.path,
        "incarnation": report.incarnation,
        "exit": type(report.exit).__name__.lower(),
        "ordered": report.ordered,
    }
    if report.stop_s is not None:
        fields["stop_s"] = round(report.stop_s, 3)
    match report.exit:
        case Crashed() | InitFailed():
            if report.exit.trace:
                fields["trace"] = report.exit.trace
            log.error("child_exited", error=describe(report.exit), **fields)
        case Interrupted() | Killed() | Stuck():
            log.warning("child_exited", error=describe(report.exit), **fields)
        case Normal() | Stopped() | Ignored():
            say = log.debug if report.temporary else log.info
            say("child_exited", **fields)
        case _:
            assert_never(report.exit)

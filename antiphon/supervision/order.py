"""Which stops and starts the order of siblings allows now: the second half of a step.

Stops run backwards, one at a time, and starts forwards, one at a time, while a supervisor boots or
ends or ties its children together; otherwise, and among dynamic children, each goes on its own.
"""

from collections.abc import Iterable
from typing import assert_never

from antiphon.supervision.spec import Strategy
from antiphon.supervision.state import (
    LEAVING,
    LIVE,
    AutoStopped,
    Booted,
    Child,
    Mode,
    Over,
    Phase,
)
from antiphon.supervision.turn import Turn


def settle(turn: Turn, touched: str | None) -> None:
    """Move every child as far towards its goal as it may go now."""
    _stop_some(turn, touched)
    _start_some(turn, touched)
    if turn.mode is Mode.BOOTING and all(
        child.phase is Phase.UP for child in turn.children.values() if child.wanted
    ):
        turn.mode = Mode.RUNNING
        turn.effects.append(Booted())
    if turn.mode is Mode.RUNNING and turn.last_straw is not None:
        turn.end(AutoStopped(path=turn.last_straw))
        _stop_some(turn, None)
    if turn.mode is Mode.ENDING:
        _finish(turn)


def _stop_some(turn: Turn, touched: str | None) -> None:
    if turn.mode is Mode.ENDING and turn.now >= turn.cutoff:
        for child in _reversed(turn):
            if child.phase in LIVE:
                turn.begin_stop(child)
            elif child.phase is Phase.STOPPING:
                turn.run_out(child, "the stop's budget ran out")
        return
    if turn.spec.dynamic or (
        turn.mode is Mode.RUNNING and turn.spec.strategy is Strategy.ONE_FOR_ONE
    ):
        for child in _concerned(turn, touched):
            if child.phase in LIVE and _must_stop(child):
                turn.begin_stop(child)
        return
    for child in _reversed(turn):
        if child.phase in LEAVING:
            return
        if child.phase in LIVE and _must_stop(child):
            turn.begin_stop(child)
            return


def _start_some(turn: Turn, touched: str | None) -> None:
    """A start that would be one restart too many ends the supervisor, so stops begin instead."""
    if turn.spec.dynamic or (
        turn.mode is Mode.RUNNING and turn.spec.strategy is Strategy.ONE_FOR_ONE
    ):
        for child in _concerned(turn, touched):
            if _may_start(turn, child) and not turn.begin_start(child):
                _stop_some(turn, None)
                return
        return
    if any(child.bounce for child in turn.children.values()):
        # Siblings of a failed child are still stopping; the group starts when all are down.
        return
    for child in tuple(turn.children.values()):
        if not child.wanted or child.phase is Phase.UP:
            continue
        if _may_start(turn, child) and not turn.begin_start(child):
            _stop_some(turn, None)
        return


def _finish(turn: Turn) -> None:
    if any(child.phase in LIVE or child.phase in LEAVING for child in turn.children.values()):
        return
    assert turn.ending is not None
    turn.mode = Mode.OVER
    stuck = [
        path
        for child in turn.children.values()
        if child.phase is Phase.STUCK
        for path in child_stuck_paths(turn, child)
    ]
    turn.effects.append(Over(turn.ending, tuple(stuck)))


def bystanders(turn: Turn, child: Child) -> tuple[Child, ...]:
    """The siblings that are restarted together with a child that failed."""
    siblings = tuple(turn.children.values())
    match turn.spec.strategy:
        case Strategy.ONE_FOR_ONE:
            return ()
        case Strategy.ONE_FOR_ALL:
            return tuple(sibling for sibling in siblings if sibling is not child)
        case Strategy.REST_FOR_ONE:
            ids = tuple(turn.children)
            return siblings[ids.index(child.spec.id) + 1 :]
        case _:
            assert_never(turn.spec.strategy)


def take_along(turn: Turn, child: Child) -> None:
    """Have the bystanders stopped, and started again once the child has been."""
    for sibling in bystanders(turn, child):
        if sibling.phase in LIVE:
            turn.put(sibling, bounce=True)
        elif sibling.phase is Phase.WAITING:
            # The group's restart takes the place of its own.
            turn.put(sibling, phase=Phase.DOWN, due=None, attempt=False)


def child_stuck_paths(turn: Turn, child: Child) -> tuple[str, ...]:
    """Who below or at this child ignores its cancellation."""
    paths = getattr(child.last_exit, "paths", ())
    return paths or (turn.path_of(child),)


def _must_stop(child: Child) -> bool:
    return child.bounce or not child.wanted


def _may_start(turn: Turn, child: Child) -> bool:
    if not child.wanted or child.bounce:
        return False
    if child.phase is Phase.WAITING:
        return child.due is not None and child.due <= turn.now
    return child.phase is Phase.DOWN


def _concerned(turn: Turn, touched: str | None) -> Iterable[Child]:
    """Among dynamic children, of which there may be thousands, only the one the event is about can
    have changed, except when the whole supervisor did."""
    if touched is None or turn.mode is not turn.began_in or not turn.spec.dynamic:
        return tuple(turn.children.values())
    child = turn.children.get(touched)
    return () if child is None else (child,)


def _reversed(turn: Turn) -> Iterable[Child]:
    return tuple(reversed(turn.children.values()))

"""Every rule of supervision, as one pure function: `step(state, event, now) -> (state, effects)`.

An event first changes the child that it is about; then `order.settle` compares what is with what is
wanted and asks for the stops and starts that are allowed now.
"""

from collections.abc import Iterable
from typing import assert_never

from antiphon.errors import StartFailed
from antiphon.ids import ActorPath
from antiphon.supervision import commands, order
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
    is_abnormal,
)
from antiphon.supervision.reports import (
    ChildExited,
    ChildStarted,
    ChildStuck,
    RestartScheduled,
)
from antiphon.supervision.spec import AutoShutdown, ChildSpec, Restart, SupervisorSpec
from antiphon.supervision.state import (
    LEAVING,
    LIVE,
    Boot,
    BootFailed,
    Child,
    DeleteChild,
    Due,
    Effect,
    Ended,
    Escalated,
    Event,
    Exited,
    Gone,
    Mode,
    OrderedStop,
    Origin,
    Phase,
    Ready,
    RecycleChild,
    RestartChild,
    StartChild,
    State,
    StopOrdered,
    TerminateChild,
)
from antiphon.supervision.turn import Turn


def initial(path: ActorPath, spec: SupervisorSpec, children: Iterable[ChildSpec] = ()) -> State:
    """A supervisor that has not booted."""
    return State(
        path=path,
        spec=spec,
        children={child.id: Child(spec=child, origin=Origin.BOOT) for child in children},
    )


def step(state: State, event: Event, now: float) -> tuple[State, tuple[Effect, ...]]:
    """Take one event. Events about an incarnation that is over, or a time that was not armed,
    change nothing."""
    turn = Turn(state, now)
    touched: str | None = None
    match event:
        case Boot():
            pass
        case Ready():
            touched = event.id
            _ready(turn, event)
        case Exited():
            touched = event.id
            _exited(turn, event)
        case Due():
            touched = event.id
            _due(turn, event)
        case StopOrdered():
            turn.end(OrderedStop(), leaving=event.leaving, deadline=event.deadline)
        case StartChild():
            touched = event.spec.id
            commands.add(turn, event, commands.refusal(state, event.spec.id))
        case TerminateChild():
            touched = event.id
            commands.terminate(turn, event)
        case RestartChild():
            touched = event.id
            commands.revive(turn, event)
        case RecycleChild():
            touched = event.id
            commands.recycle(turn, event)
        case DeleteChild():
            touched = event.id
            commands.delete(turn, event)
        case _:
            assert_never(event)
    if turn.mode is not Mode.OVER:
        order.settle(turn, touched)
    return turn.state(), tuple(turn.effects)


def _ready(turn: Turn, event: Ready) -> None:
    child = turn.children.get(event.id)
    if child is None or child.incarnation != event.incarnation or child.phase is not Phase.STARTING:
        return
    turn.say(
        ChildStarted(
            path=turn.path_of(child),
            incarnation=child.incarnation,
            temporary=child.spec.restart is Restart.TEMPORARY,
        )
    )
    turn.answer(child.start_tokens, None)
    turn.put(
        child,
        phase=Phase.UP,
        origin=Origin.PROVEN,
        up_since=turn.now,
        since=turn.now,
        due=None,
        start_tokens=(),
    )


def _due(turn: Turn, event: Due) -> None:
    child = None if event.id is None else turn.children.get(event.id)
    if child is None or child.due is None or child.due > turn.now:
        return
    match child.phase:
        case Phase.STARTING:
            timed_out = InitFailed("Timeout", f"not ready within {child.spec.init_timeout_s:g} s")
            child = turn.put(child, condemned=timed_out, since=turn.now)
            turn.begin_kill(child, "not ready in time")
        case Phase.STOPPING:
            turn.run_out(child, "its grace ran out")
        case Phase.KILLING:
            _over(turn, child, Stuck((turn.path_of(child),)), draw=0.0)
        case Phase.WAITING | Phase.DOWN | Phase.UP | Phase.STUCK:
            pass
        case _:
            assert_never(child.phase)


def _exited(turn: Turn, event: Exited) -> None:
    child = turn.children.get(event.id)
    if child is None or child.incarnation != event.incarnation:
        return
    if child.phase is Phase.STUCK and turn.mode is not Mode.OVER:
        # It let go after all; its end has been told already.
        turn.rest(child)
    elif child.phase in LIVE or child.phase in LEAVING:
        _over(turn, child, _meaning(child, event.exit), draw=event.draw)


def _meaning(child: Child, exit: Exit) -> Exit:
    """What an end counts as, given what the child was doing."""
    if isinstance(exit, Interrupted | Stuck):
        return exit
    if child.condemned is not None:
        return child.condemned
    match child.phase, exit:
        case Phase.STARTING, Normal() | Stopped():
            return InitFailed("Returned", "it returned before it was ready")
        case Phase.STARTING, Crashed(kind=kind, message=message, trace=trace):
            return InitFailed(kind, message, trace)
        case Phase.UP, Ignored():
            return Normal()
        case Phase.STOPPING, Normal() | Ignored():
            return Stopped()
        case Phase.KILLING, Normal() | Stopped() | Ignored() | Killed():
            # Cancelled before it was ready, it lost nothing by having no grace.
            return Stopped() if child.up_since is None else Killed()
        case _:
            return exit


def _over(turn: Turn, child: Child, exit: Exit, *, draw: float) -> None:
    """An incarnation has ended: tell everybody, then decide what becomes of the child."""
    ordered = child.phase in LEAVING and child.condemned is None
    path = turn.path_of(child)
    waited = turn.now - child.since
    turn.effects.append(Ended(child.spec, child.incarnation, exit))
    if isinstance(exit, Stuck):
        turn.say(ChildStuck(path=path, paths=exit.paths, waited_s=waited))
    else:
        turn.say(
            ChildExited(
                path=path,
                incarnation=child.incarnation,
                temporary=child.spec.restart is Restart.TEMPORARY,
                exit=exit,
                ordered=ordered,
                stop_s=waited if ordered else None,
            )
        )
    turn.answer(child.stop_tokens, exit)
    unready, bounced = child.up_since is None, child.bounce
    stable = not unready and turn.now - (child.up_since or 0.0) >= child.spec.backoff.stable_after_s
    child = turn.put(
        child,
        phase=Phase.STUCK if isinstance(exit, Stuck) else Phase.DOWN,
        due=None,
        bounce=False,
        condemned=None,
        stop_tokens=(),
        failures=0 if stable else child.failures,
        last_exit=exit,
        last_exit_at=turn.now,
    )
    if isinstance(exit, Interrupted) or (isinstance(exit, Stuck) and child.wanted):
        # Neither can be answered by a restart: the old incarnation may still hold what the new one
        # would need.
        turn.end(Escalated(exit=exit), leaving=isinstance(exit, Interrupted))
    elif isinstance(exit, Stuck):
        if turn.leaves_for_good(child):
            turn.effects.append(Gone(child.spec))
    elif not child.wanted:
        turn.rest(child)
    elif bounced:
        if child.spec.restart is Restart.TEMPORARY:
            turn.answer(child.start_tokens, StartFailed(path, "it had to go with a sibling"))
            turn.drop(child)
    elif unready and child.origin is not Origin.PROVEN:
        _not_started(turn, child, exit)
    elif isinstance(exit, Ignored):
        turn.answer(child.start_tokens, exit)
        turn.rest(turn.put(child, start_tokens=()))
    elif child.spec.restart is Restart.PERMANENT or (
        child.spec.restart is Restart.TRANSIENT and is_abnormal(exit)
    ):
        _restart(turn, child, draw)
    else:
        turn.rest(child)
        _mind_significance(turn, child)


def _mind_significance(turn: Turn, child: Child) -> None:
    """A child has ended by itself and stays down: not for a sibling's sake, not on command."""
    match turn.spec.auto_shutdown:
        case AutoShutdown.NEVER:
            return
        case AutoShutdown.ANY:
            enough = True
        case AutoShutdown.ALL:
            enough = not any(
                other.spec.significant and other.wanted for other in turn.children.values()
            )
        case _:
            assert_never(turn.spec.auto_shutdown)
    if child.spec.significant and enough and turn.mode in (Mode.BOOTING, Mode.RUNNING):
        turn.last_straw = turn.last_straw or turn.path_of(child)


def _not_started(turn: Turn, child: Child, exit: Exit) -> None:
    """The first start failed or was declined: nothing is retried by the one who asked for it."""
    tokens = child.start_tokens
    child = turn.put(child, start_tokens=())
    path = turn.path_of(child)
    if isinstance(exit, Ignored):
        turn.answer(tokens, exit)
        turn.rest(child)
        return
    turn.answer(tokens, StartFailed(path, describe(exit)))
    match child.origin:
        case Origin.BOOT if turn.mode is Mode.BOOTING:
            turn.end(BootFailed(path=path, exit=exit))
        case Origin.ADDED | Origin.BOOT:
            turn.drop(child)
        case Origin.REVIVED:
            turn.rest(child)
        case Origin.PROVEN:
            raise AssertionError("a proven child restarts")
        case _:
            assert_never(child.origin)


def _restart(turn: Turn, child: Child, draw: float) -> None:
    """Plan the restart, and let the strategy say which siblings go with it."""
    failures = child.failures + 1
    limit = child.spec.backoff.max_consecutive
    if limit is not None and failures > limit:
        turn.give_up(child, f"more than {limit} restarts in a row", restarts=failures)
        return
    delay = child.spec.backoff.delay(failures, draw)
    child = turn.put(
        child, failures=failures, attempt=True, phase=Phase.WAITING, due=turn.now + delay
    )
    turn.say(
        RestartScheduled(
            path=turn.path_of(child), delay_s=delay, in_row=failures, after=child.last_exit
        )
    )
    if delay > 0:
        turn.arm(child)
    order.take_along(turn, child)

"""The commands of a supervisor, as rules of the core: start, terminate, restart, recycle and delete
a child.

Served in every mode and whatever the children do; each is answered exactly once.
"""

from antiphon.errors import (
    ActorStopped,
    AlreadyPresent,
    AntiphonError,
    MaxChildren,
    NoActor,
    SpecError,
    StartFailed,
)
from antiphon.ids import ActorPath
from antiphon.supervision import order
from antiphon.supervision.exits import Stopped
from antiphon.supervision.spec import Restart
from antiphon.supervision.state import (
    LEAVING,
    LIVE,
    Answer,
    Child,
    DeleteChild,
    Mode,
    Origin,
    Phase,
    RecycleChild,
    RestartChild,
    StartChild,
    State,
    TerminateChild,
)
from antiphon.supervision.turn import Turn


def refusal(state: State, id: str) -> AntiphonError | None:
    """Why a child of that id can't be added now."""
    if state.mode in (Mode.ENDING, Mode.OVER):
        return ActorStopped(state.path)
    if id in state.children:
        return AlreadyPresent(ActorPath(f"{state.path}/{id}"))
    limit = state.spec.max_children
    if limit is not None and len(state.children) >= limit:
        return MaxChildren(state.path, limit)
    return None


def add(turn: Turn, event: StartChild, refused: AntiphonError | None) -> None:
    tokens = () if event.token is None else (event.token,)
    if refused is not None:
        turn.answer(tokens, refused)
        return
    turn.put(Child(spec=event.spec, origin=Origin.ADDED, start_tokens=tokens))


def terminate(turn: Turn, event: TerminateChild) -> None:
    child = _find(turn, event.id, event.token)
    if child is None:
        return
    path = turn.path_of(child)
    turn.answer(child.start_tokens, StartFailed(path, "it was terminated"))
    child = turn.put(child, wanted=False, bounce=False, attempt=False, start_tokens=())
    if child.phase in LIVE or child.phase in LEAVING:
        turn.put(child, stop_tokens=(*child.stop_tokens, event.token))
        return
    turn.answer((event.token,), child.last_exit or Stopped())
    if child.phase is not Phase.STUCK:
        turn.rest(child)


def revive(turn: Turn, event: RestartChild) -> None:
    child = _find(turn, event.id, event.token)
    if child is None:
        return
    if child.wanted or child.phase is not Phase.DOWN:
        turn.answer((event.token,), AlreadyPresent(turn.path_of(child)))
        return
    turn.put(
        child,
        wanted=True,
        origin=Origin.REVIVED,
        failures=0,
        start_tokens=(*child.start_tokens, event.token),
    )


def recycle(turn: Turn, event: RecycleChild) -> None:
    """As if it had failed, so that its siblings stay consistent with it, but it is told to stop and
    nothing counts: neither its window nor its row of failures."""
    child = _find(turn, event.id, event.token)
    if child is None:
        return
    if child.spec.restart is Restart.TEMPORARY:
        refused = SpecError(f"child {event.id!r}", "a temporary child is not restarted")
        turn.answer((event.token,), refused)
        return
    is_resting = not child.wanted and child.phase is Phase.DOWN
    if child.phase is Phase.STUCK or not (child.wanted or is_resting):
        turn.answer((event.token,), AlreadyPresent(turn.path_of(child)))
        return
    child = turn.put(
        child, wanted=True, failures=0, start_tokens=(*child.start_tokens, event.token)
    )
    if is_resting:
        order.take_along(turn, turn.put(child, origin=Origin.REVIVED))
    elif child.phase in LIVE:
        order.take_along(turn, turn.put(child, bounce=True))
    elif child.phase is Phase.WAITING:
        # Its siblings have been taken along already.
        turn.put(child, phase=Phase.DOWN, due=None, attempt=False)


def delete(turn: Turn, event: DeleteChild) -> None:
    child = _find(turn, event.id, event.token)
    if child is None:
        return
    if child.wanted or child.phase is not Phase.DOWN:
        turn.answer((event.token,), AlreadyPresent(turn.path_of(child)))
        return
    turn.drop(child)
    turn.answer((event.token,), None)


def _find(turn: Turn, id: str, token: int) -> Child | None:
    """The child a command is about, or None when the command has been refused."""
    if turn.mode in (Mode.ENDING, Mode.OVER):
        turn.effects.append(Answer(token, ActorStopped(turn.path)))
        return None
    child = turn.children.get(id)
    if child is None:
        turn.effects.append(Answer(token, NoActor(ActorPath(f"{turn.path}/{id}"))))
    return child

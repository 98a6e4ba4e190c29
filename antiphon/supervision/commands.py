"""The commands of a supervisor, as rules of the core: start, terminate, restart and delete a child.

Served in every mode and whatever the children do; each is answered exactly once.
"""

from antiphon.errors import (
    ActorStopped,
    AlreadyPresent,
    AntiphonError,
    MaxChildren,
    NoActor,
    StartFailed,
)
from antiphon.ids import ActorPath
from antiphon.supervision.exits import Stopped
from antiphon.supervision.state import (
    LEAVING,
    LIVE,
    Answer,
    Child,
    DeleteChild,
    Mode,
    Origin,
    Phase,
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

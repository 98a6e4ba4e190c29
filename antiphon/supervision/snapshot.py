"""Turns a supervisor's state into nodes of the tree, reading children only through the probes they
left in their context."""

from antiphon.ids import ActorPath
from antiphon.supervision.context import ChildContext
from antiphon.supervision.exits import describe
from antiphon.supervision.spec import Kind
from antiphon.supervision.state import Child, Mode, Phase, State
from antiphon.supervision.tree import ChildCounts, LastExit, Node

_MODES = {
    Mode.BOOTING: Phase.STARTING.value,
    Mode.RUNNING: Phase.UP.value,
    Mode.ENDING: Phase.STOPPING.value,
    Mode.OVER: Phase.DOWN.value,
}


def child_node(path: ActorPath, child: Child, context: ChildContext | None, now: float) -> Node:
    """A child as its supervisor knows it; if it is a supervisor, with what that one knows."""
    mailbox = context.mailbox_probe if context is not None else None
    below = context.children_probe if context is not None else None
    inner = below() if below is not None else None
    last = child.last_exit
    return Node(
        path=path,
        kind=child.spec.kind.value,
        state=child.phase.value,
        incarnation=child.incarnation,
        restarts=child.restarts,
        last_exit=None
        if last is None
        else LastExit(
            kind=type(last).__name__.lower(), text=describe(last), age_s=now - child.last_exit_at
        ),
        uptime_s=now - child.up_since
        if child.up_since is not None and child.phase not in (Phase.DOWN, Phase.WAITING)
        else None,
        mailbox=mailbox() if mailbox is not None else None,
        strategy=inner.strategy if inner is not None else None,
        restarts_in_window=inner.restarts_in_window if inner is not None else None,
        intensity=inner.intensity if inner is not None else None,
        period_s=inner.period_s if inner is not None else None,
        counts=inner.counts if inner is not None else None,
        children=inner.children if inner is not None else (),
    )


def supervisor_node(
    state: State,
    children: tuple[Node, ...],
    *,
    incarnation: int,
    up_since: float | None,
    now: float,
) -> Node:
    """A supervisor as it knows itself."""
    oldest = now - state.spec.period_s
    return Node(
        path=state.path,
        kind=Kind.SUPERVISOR.value,
        state=_MODES[state.mode],
        incarnation=incarnation,
        restarts=0,
        last_exit=None,
        uptime_s=None if up_since is None else now - up_since,
        strategy="dynamic" if state.spec.dynamic else state.spec.strategy.value,
        restarts_in_window=sum(made >= oldest for made in state.window),
        intensity=state.spec.intensity,
        period_s=state.spec.period_s,
        counts=count(state),
        children=children,
    )


def count(state: State) -> ChildCounts:
    """A child is active while it has a task; one that waits for its restart has none."""
    children = state.children.values()
    supervisors = sum(child.spec.kind is Kind.SUPERVISOR for child in children)
    return ChildCounts(
        specs=len(children),
        active=sum(child.phase not in (Phase.DOWN, Phase.WAITING) for child in children),
        supervisors=supervisors,
        workers=len(children) - supervisors,
    )

"""The working copy that one step of the core changes, and the single moves a child can make.

Only `core` and `order` use it; the state it was made from is never changed.
"""

import math
from dataclasses import replace
from typing import Any, assert_never

from antiphon.errors import StartFailed
from antiphon.ids import ActorPath
from antiphon.supervision.reports import (
    Report,
    RestartDenied,
    ShutdownSlow,
    SupervisorGaveUp,
)
from antiphon.supervision.spec import Forever, Grace, Kind, Now, Restart
from antiphon.supervision.state import (
    LEAVING,
    Answer,
    Arm,
    Cancel,
    Child,
    Effect,
    Ending,
    GaveUp,
    Gone,
    Mode,
    Phase,
    Say,
    Start,
    State,
    Stop,
)

_KILL_SHARE = 0.2
_KILL_RESERVE_S = 2.0
"""The end of a stop's budget, kept for children that must be cancelled: a fifth, at most this."""


class Turn:
    """One step's changes to a state."""

    __slots__ = (
        "began_in",
        "children",
        "cutoff",
        "deadline",
        "effects",
        "ending",
        "last_straw",
        "leaving",
        "mode",
        "now",
        "path",
        "spec",
        "window",
    )

    def __init__(self, state: State, now: float) -> None:
        self.now = now
        self.effects: list[Effect] = []
        self.path = state.path
        self.spec = state.spec
        self.children = dict(state.children)
        self.mode = self.began_in = state.mode
        self.window = state.window
        self.ending = state.ending
        self.last_straw = state.last_straw
        self.leaving = state.leaving
        self.cutoff = state.cutoff
        self.deadline = state.deadline

    def state(self) -> State:
        return State(
            path=self.path,
            spec=self.spec,
            children=self.children,
            mode=self.mode,
            window=self.window,
            ending=self.ending,
            last_straw=self.last_straw,
            leaving=self.leaving,
            cutoff=self.cutoff,
            deadline=self.deadline,
        )

    def path_of(self, child: Child) -> ActorPath:
        return ActorPath(f"{self.path}/{child.spec.id}")

    def put(self, child: Child, **changes: Any) -> Child:
        changed = replace(child, **changes) if changes else child
        self.children[child.spec.id] = changed
        return changed

    def say(self, report: Report) -> None:
        self.effects.append(Say(report))

    def arm(self, child: Child) -> None:
        if child.due is not None:
            self.effects.append(Arm(child.spec.id, child.due))

    def answer(self, tokens: tuple[int, ...], result: Any) -> None:
        self.effects.extend(Answer(token, result) for token in tokens)

    def leaves_for_good(self, child: Child) -> bool:
        """Whether a child that is stopped now has no next incarnation planned."""
        if self.mode is Mode.ENDING:
            # Children of a dynamic supervisor are not started again with it.
            return self.leaving or self.spec.dynamic
        return not child.wanted or child.spec.restart is Restart.TEMPORARY

    def begin_start(self, child: Child) -> bool:
        """Start it; False, and the supervisor ends, if this restart is one too many."""
        restarts = child.restarts
        if child.attempt:
            oldest = self.now - self.spec.period_s
            self.window = (*(made for made in self.window if made >= oldest), self.now)
            if len(self.window) > self.spec.intensity:
                self.give_up(
                    child,
                    f"more than {self.spec.intensity} restarts in {self.spec.period_s:g} s",
                    restarts=len(self.window),
                )
                return False
            restarts += 1
        patience = child.spec.init_timeout_s
        child = self.put(
            child,
            phase=Phase.STARTING,
            incarnation=child.incarnation + 1,
            attempt=False,
            restarts=restarts,
            since=self.now,
            up_since=None,
            condemned=None,
            due=self.now + patience if patience < math.inf else None,
        )
        self.effects.append(Start(child.spec, child.incarnation))
        self.arm(child)
        return True

    def begin_stop(self, child: Child) -> None:
        """Tell it to stop; cancel it at once where it has no grace or is not ready yet."""
        now, shutdown = self.now, child.spec.shutdown
        due: float
        match shutdown:
            case Now():
                due = now
            case Grace():
                due = min(now + shutdown.seconds, self.cutoff)
            case Forever():
                due = self.cutoff
            case _:
                assert_never(shutdown)
        if child.phase is Phase.STARTING and child.spec.kind is Kind.WORKER:
            # A supervisor is left to stop in order what it has started already.
            due = now
        self.effects.append(Stop(child.spec.id, due, self.leaves_for_good(child)))
        if due <= now:
            self.begin_kill(replace(child, since=now), "stopped without a grace")
            return
        child = self.put(
            child, phase=Phase.STOPPING, since=now, due=due if due < math.inf else None
        )
        self.arm(child)

    def run_out(self, child: Child, reason: str) -> None:
        """Its time to stop is over."""
        self.say(ShutdownSlow(path=self.path_of(child), waited_s=self.now - child.since))
        self.begin_kill(child, reason)

    def begin_kill(self, child: Child, reason: str) -> None:
        child = self.put(
            child,
            phase=Phase.KILLING,
            due=max(self.now, min(self.now + child.spec.kill_grace_s, self.deadline)),
        )
        self.effects.append(Cancel(child.spec.id, reason))
        self.arm(child)

    def drop(self, child: Child) -> None:
        """Forget it; nothing follows under its name."""
        del self.children[child.spec.id]
        self.effects.append(Gone(child.spec))

    def rest(self, child: Child) -> None:
        """It is down and stays down; it keeps its specification unless it is the kind that doesn't.

        While a supervisor ends for a restart of its own, its static children keep their addresses.
        """
        if self.mode is Mode.ENDING and not self.leaving and not self.spec.dynamic:
            self.put(child, phase=Phase.DOWN, due=None)
        elif child.spec.restart is Restart.TEMPORARY or self.spec.dynamic:
            self.drop(child)
        else:
            self.put(child, phase=Phase.DOWN, due=None, wanted=False)
            self.effects.append(Gone(child.spec))

    def give_up(self, child: Child, reason: str, *, restarts: int) -> None:
        path = self.path_of(child)
        self.say(RestartDenied(path=path, reason=reason, after=child.last_exit))
        self.say(SupervisorGaveUp(path=self.path, reason=f"{path}: {reason}"))
        self.end(GaveUp(restarts=restarts))

    def end(self, ending: Ending, *, leaving: bool = False, deadline: float = math.inf) -> None:
        """Nothing is wanted any more. A second reason doesn't replace the first; a shorter
        patience and a final goodbye do count."""
        if self.mode is Mode.OVER:
            return
        shorter = deadline < self.deadline
        if shorter:
            self.deadline = deadline
            left = max(0.0, deadline - self.now)
            self.cutoff = max(self.now, deadline - min(_KILL_RESERVE_S, _KILL_SHARE * left))
            self.effects.append(Arm(None, self.cutoff))
        first = self.mode is not Mode.ENDING
        newly_leaving = leaving and not self.leaving
        self.leaving = self.leaving or leaving
        if first:
            self.mode = Mode.ENDING
            self.ending = ending
        for child in tuple(self.children.values()):
            if first:
                child = self._unwant(child)
            if child.phase is Phase.DOWN and self.leaves_for_good(child):
                self.rest(child)
            elif child.phase is Phase.STUCK and newly_leaving:
                self.effects.append(Gone(child.spec))
            elif child.phase in LEAVING and (shorter or newly_leaving):
                self._hurry(child)

    def _hurry(self, child: Child) -> None:
        """It is stopping already, and learns that it has less time or that it is for good."""
        due = min(math.inf if child.due is None else child.due, self.cutoff)
        if child.phase is Phase.STOPPING and due < math.inf:
            child = self.put(child, due=due)
            self.arm(child)
        self.effects.append(Stop(child.spec.id, due, self.leaves_for_good(child)))

    def _unwant(self, child: Child) -> Child:
        self.answer(
            child.start_tokens, StartFailed(self.path_of(child), "its supervisor is stopping")
        )
        waiting = child.phase is Phase.WAITING
        return self.put(
            child,
            wanted=False,
            bounce=False,
            attempt=False,
            start_tokens=(),
            phase=Phase.DOWN if waiting else child.phase,
            due=None if waiting else child.due,
        )

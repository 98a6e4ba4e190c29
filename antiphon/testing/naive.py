"""The rules of supervision once more, told naively: the model that the real core is compared with.

It shares nothing with the core but the vocabulary of `spec`, `exits` and the events. It keeps all
history, looks at every child after every event, and makes one small move at a time until none is
left. Where the two differ, one of them is wrong.
"""

import math
from collections.abc import Iterable
from typing import Any

from antiphon.supervision import state as s
from antiphon.supervision.exits import (
    Exit,
    Ignored,
    InitFailed,
    Interrupted,
    Killed,
    Normal,
    Stopped,
    Stuck,
)
from antiphon.supervision.spec import (
    AutoShutdown,
    ChildSpec,
    Grace,
    Kind,
    Now,
    Restart,
    Strategy,
    SupervisorSpec,
)

HERE = ("starting", "up")
GOING = ("stopping", "killing")


class Kid:
    """One child, as plain variables."""

    def __init__(self, spec: ChildSpec, asked: str) -> None:
        self.spec, self.asked = spec, asked
        self.state, self.number, self.wanted = "down", 0, True
        self.redo = self.counted = False
        self.timer: float | None = None
        self.ready_at: float | None = None
        self.row = 0
        self.doomed = False
        self.last: str | None = None
        self.starters: list[int] = []
        self.stoppers: list[int] = []

    def temporary(self) -> bool:
        return self.spec.restart is Restart.TEMPORARY


class Naive:
    """One supervisor. `told` is what it asked for during the last event, as tuples."""

    def __init__(self, spec: SupervisorSpec, children: Iterable[ChildSpec]) -> None:
        self.spec = spec
        self.kids = {child.id: Kid(child, "boot") for child in children}
        self.mode = "booting"
        self.now = 0.0
        self.attempts: list[float] = []
        self.why = ""
        self.straw = self.leaving = False
        self.cutoff = self.deadline = math.inf
        self.told: list[tuple[Any, ...]] = []

    def take(self, event: s.Event, now: float) -> None:
        self.now, self.told = now, []
        match event:
            case s.Ready(id=id, incarnation=number):
                kid = self.kids.get(id)
                if kid and kid.number == number and kid.state == "starting":
                    kid.state, kid.asked, kid.ready_at, kid.timer = "up", "", now, None
                    self.answer(kid.starters, None)
            case s.Exited(id=id, incarnation=number, exit=exit, draw=draw):
                kid = self.kids.get(id)
                if kid and kid.number == number and kid.state in (*HERE, *GOING):
                    self.ended(kid, exit, draw)
                elif kid and kid.number == number and kid.state == "stuck" and self.mode != "over":
                    self.rest(kid)
            case s.Due(id=id):
                kid = self.kids.get(id or "")
                if kid and kid.timer is not None and kid.timer <= now:
                    self.run_out(kid)
            case s.StopOrdered(deadline=deadline, leaving=leaving):
                self.end("OrderedStop", leaving, deadline)
            case (
                s.StartChild()
                | s.TerminateChild()
                | s.RestartChild()
                | s.RecycleChild()
                | s.DeleteChild()
            ):
                self.command(event)
        while self.mode != "over" and self.move():
            pass

    def move(self) -> bool:
        """The first thing that can be done; False when there is nothing."""
        kids = list(self.kids.values())
        free = self.spec.dynamic or (
            self.mode == "running" and self.spec.strategy is Strategy.ONE_FOR_ONE
        )
        if self.mode == "ending" and self.now >= self.cutoff:
            for kid in reversed(kids):
                if kid.state in HERE:
                    return self.stop(kid)
                if kid.state == "stopping":
                    return self.kill(kid)
        else:
            for kid in kids if free else reversed(kids):
                if not free and kid.state in GOING:
                    # Each waits for those that were started after it, and for no others.
                    break
                if kid.state in HERE and (kid.redo or not kid.wanted):
                    return self.stop(kid)
        if free or not any(kid.redo for kid in kids):
            for kid in kids:
                if kid.wanted and not kid.redo and kid.state != "up":
                    waits = kid.state == "waiting" and (kid.timer or 0.0) > self.now
                    if kid.state in ("down", "waiting") and not waits:
                        return self.start(kid)
                    if not free:
                        break
        if self.mode == "booting" and all(kid.state == "up" for kid in kids if kid.wanted):
            self.mode = "running"
            self.told.append(("booted",))
            return True
        if self.mode == "running" and self.straw:
            self.end("AutoStopped", False, math.inf)
            return True
        if self.mode == "ending" and not any(kid.state in (*HERE, *GOING) for kid in kids):
            self.mode = "over"
            stuck = sum(kid.state == "stuck" for kid in kids)
            self.told.append(("over", self.why, stuck))
        return False

    def start(self, kid: Kid) -> bool:
        if kid.counted:
            self.attempts.append(self.now)
            recent = [made for made in self.attempts if self.now - self.spec.period_s <= made]
            if len(recent) > self.spec.intensity:
                self.end("GaveUp", False, math.inf)
                return True
        kid.state, kid.counted, kid.ready_at, kid.doomed = "starting", False, None, False
        kid.number += 1
        limit = self.now + kid.spec.init_timeout_s
        kid.timer = None if limit == math.inf else limit
        self.told.append(("start", kid.spec.id, kid.number))
        return True

    def stop(self, kid: Kid) -> bool:
        due = self.cutoff
        if isinstance(kid.spec.shutdown, Grace):
            due = min(due, self.now + kid.spec.shutdown.seconds)
        unready_worker = kid.state == "starting" and kid.spec.kind is Kind.WORKER
        if isinstance(kid.spec.shutdown, Now) or unready_worker:
            due = self.now
        self.told.append(("stop", kid.spec.id, due, self.for_good(kid)))
        if due <= self.now:
            return self.kill(kid)
        kid.state, kid.timer = "stopping", None if due == math.inf else due
        return True

    def kill(self, kid: Kid) -> bool:
        kid.state = "killing"
        kid.timer = max(self.now, min(self.now + kid.spec.kill_grace_s, self.deadline))
        self.told.append(("cancel", kid.spec.id))
        return True

    def run_out(self, kid: Kid) -> None:
        if kid.state == "starting":
            kid.doomed = True
            self.kill(kid)
        elif kid.state == "stopping":
            self.kill(kid)
        elif kid.state == "killing":
            self.ended(kid, Stuck(), 0.0)

    def ended(self, kid: Kid, exit: Exit, draw: float) -> None:
        exit = self.meaning(kid, exit)
        kid.last = type(exit).__name__
        self.told.append(("ended", kid.spec.id, kid.number, kid.last))
        self.answer(kid.stoppers, kid.last)
        was_ready, redone = kid.ready_at is not None, kid.redo
        if kid.ready_at is not None and self.now - kid.ready_at >= kid.spec.backoff.stable_after_s:
            kid.row = 0
        kid.state = "stuck" if isinstance(exit, Stuck) else "down"
        kid.timer, kid.redo, kid.doomed = None, False, False
        crashed = not isinstance(exit, Normal | Stopped | Ignored)
        if isinstance(exit, Interrupted):
            self.end("Escalated", True, math.inf)
        elif isinstance(exit, Stuck):
            if kid.wanted:
                self.end("Escalated", False, math.inf)
            elif self.for_good(kid):
                self.told.append(("gone", kid.spec.id))
        elif not kid.wanted:
            self.rest(kid)
        elif redone:
            if kid.temporary():
                self.answer(kid.starters, "StartFailed")
                self.forget(kid)
        elif not was_ready and kid.asked:
            self.not_started(kid, exit)
        elif isinstance(exit, Ignored):
            self.answer(kid.starters, "Ignored")
            self.rest(kid)
        elif kid.spec.restart is Restart.PERMANENT or (crashed and not kid.temporary()):
            self.plan(kid, draw)
        else:
            self.rest(kid)
            others = [k for k in self.kids.values() if k.spec.significant and k.wanted]
            wish = self.spec.auto_shutdown
            if kid.spec.significant and (
                wish is AutoShutdown.ANY or (wish is AutoShutdown.ALL and not others)
            ):
                self.straw = True

    def meaning(self, kid: Kid, exit: Exit) -> Exit:
        if isinstance(exit, Interrupted | Stuck):
            return exit
        quiet = isinstance(exit, Normal | Stopped | Ignored)
        if kid.doomed:
            return InitFailed("")
        if kid.state == "starting" and not isinstance(exit, Ignored | Killed):
            return InitFailed("")
        if kid.state == "up" and isinstance(exit, Ignored):
            return Normal()
        if kid.state == "stopping" and quiet:
            return Stopped()
        if kid.state == "killing" and (quiet or isinstance(exit, Killed)):
            return Stopped() if kid.ready_at is None else Killed()
        return exit

    def not_started(self, kid: Kid, exit: Exit) -> None:
        if isinstance(exit, Ignored):
            self.answer(kid.starters, "Ignored")
            self.rest(kid)
            return
        self.answer(kid.starters, "StartFailed")
        if kid.asked == "boot" and self.mode == "booting":
            self.end("BootFailed", False, math.inf)
        elif kid.asked == "revive":
            self.rest(kid)
        else:
            self.forget(kid)

    def plan(self, kid: Kid, draw: float) -> None:
        backoff = kid.spec.backoff
        if backoff.max_consecutive is not None and kid.row == backoff.max_consecutive:
            self.end("GaveUp", False, math.inf)
            return
        kid.row += 1
        delay = 0.0
        if kid.row > 1:
            delay = backoff.base_s
            for _ in range(kid.row - 2):
                delay = min(backoff.max_s, delay * 2)
            delay = max(0.0, min(backoff.max_s, delay * (1 + backoff.jitter * draw)))
        kid.state, kid.timer, kid.counted = "waiting", self.now + delay, True
        self.drag_along(kid)

    def recycle(self, kid: Kid, token: int) -> None:
        if kid.temporary():
            self.answer([token], "SpecError")
            return
        idle = kid.state == "down" and not kid.wanted
        if kid.state == "stuck" or (not kid.wanted and not idle):
            self.answer([token], "AlreadyPresent")
            return
        kid.starters.append(token)
        kid.wanted, kid.row = True, 0
        if idle:
            kid.asked = "revive"
        if kid.state in HERE:
            kid.redo = True
        if kid.state in HERE or idle:
            self.drag_along(kid)
        if kid.state == "waiting":
            kid.state, kid.timer, kid.counted = "down", None, False

    def drag_along(self, kid: Kid) -> None:
        order = list(self.kids.values())
        if self.spec.strategy is Strategy.ONE_FOR_ONE:
            order = []
        elif self.spec.strategy is Strategy.REST_FOR_ONE:
            order = order[order.index(kid) :]
        for other in order:
            if other is not kid and other.state in HERE:
                other.redo = True
            elif other is not kid and other.state == "waiting":
                other.state, other.timer, other.counted = "down", None, False

    def end(self, why: str, leaving: bool, deadline: float) -> None:
        if self.mode == "over":
            return
        shorter, first = deadline < self.deadline, self.mode != "ending"
        final = leaving and not self.leaving
        if shorter:
            self.deadline = deadline
            left = max(0.0, deadline - self.now)
            self.cutoff = max(self.now, deadline - min(2.0, left / 5))
        self.leaving = self.leaving or leaving
        if first:
            self.mode, self.why = "ending", why
        for kid in list(self.kids.values()):
            if first:
                self.answer(kid.starters, "StartFailed")
                kid.wanted = kid.redo = kid.counted = False
                if kid.state == "waiting":
                    kid.state, kid.timer = "down", None
            if kid.state == "down" and self.for_good(kid):
                self.rest(kid)
            elif kid.state == "stuck" and final:
                self.told.append(("gone", kid.spec.id))
            elif kid.state in GOING and (shorter or final):
                due = min(math.inf if kid.timer is None else kid.timer, self.cutoff)
                if kid.state == "stopping" and due < math.inf:
                    kid.timer = due
                self.told.append(("stop", kid.spec.id, due, self.for_good(kid)))

    def command(
        self,
        event: s.StartChild | s.TerminateChild | s.RestartChild | s.RecycleChild | s.DeleteChild,
    ) -> None:
        id = event.spec.id if isinstance(event, s.StartChild) else event.id
        tokens = [] if event.token is None else [event.token]
        kid = self.kids.get(id)
        if self.mode in ("ending", "over"):
            self.answer(tokens, "ActorStopped")
        elif isinstance(event, s.StartChild):
            limit = self.spec.max_children
            if kid is not None:
                self.answer(tokens, "AlreadyPresent")
            elif limit is not None and len(self.kids) >= limit:
                self.answer(tokens, "MaxChildren")
            else:
                self.kids[id] = kid = Kid(event.spec, "add")
                kid.starters += tokens
        elif kid is None:
            self.answer(tokens, "NoActor")
        elif isinstance(event, s.TerminateChild):
            self.answer(kid.starters, "StartFailed")
            kid.wanted = kid.redo = kid.counted = False
            if kid.state in (*HERE, *GOING):
                kid.stoppers += tokens
            else:
                self.answer(tokens, kid.last or "Stopped")
                if kid.state != "stuck":
                    self.rest(kid)
        elif isinstance(event, s.RecycleChild):
            self.recycle(kid, event.token)
        elif kid.wanted or kid.state != "down":
            self.answer(tokens, "AlreadyPresent")
        elif isinstance(event, s.RestartChild):
            kid.wanted, kid.asked, kid.row = True, "revive", 0
            kid.starters += tokens
        else:
            self.forget(kid)
            self.answer(tokens, None)

    def for_good(self, kid: Kid) -> bool:
        if self.mode == "ending":
            return self.leaving or self.spec.dynamic
        return not kid.wanted or kid.temporary()

    def rest(self, kid: Kid) -> None:
        kid.state, kid.timer = "down", None
        if self.mode == "ending" and not self.leaving and not self.spec.dynamic:
            return
        if kid.temporary() or self.spec.dynamic:
            self.forget(kid)
        else:
            kid.wanted = False
            self.told.append(("gone", kid.spec.id))

    def forget(self, kid: Kid) -> None:
        del self.kids[kid.spec.id]
        self.told.append(("gone", kid.spec.id))

    def answer(self, tokens: list[int], result: str | None) -> None:
        self.told += [("answer", token, result) for token in tokens]
        tokens.clear()

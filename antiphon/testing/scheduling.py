"""Schedules and tickets for tests, and a pool in virtual time that serves what is granted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from antiphon.actors.scheduling.schedule import (
    Capacity,
    Lease,
    Policy,
    QueueBounds,
    Refused,
    Schedule,
    Ticket,
)
from antiphon.ids import EngineRequest, RequestId
from antiphon.scheduling_settings import SchedulingSettings
from antiphon.workload import Workload, WorkloadClass

ROOMY = QueueBounds(max_requests=10**6, max_tokens=10**9, deadline_s=10**6)
BLOCK = 32


def a_ticket(
    number: int,
    lane: WorkloadClass = WorkloadClass.INTERACTIVE,
    *,
    tenant: str = "",
    priority: int = 0,
    weight: float = 1.0,
    prompt: int = 10,
    answer: int = 22,
    at: float = 0.0,
    resumable: bool | None = None,
    deadline_s: float | None = None,
    upkeep: bool = False,
) -> Ticket:
    """Of one block, unless it is told otherwise; background work can be paused."""
    return Ticket(
        request=EngineRequest(number),
        turn=RequestId(f"req_{number}"),
        prompt_tokens=prompt,
        max_tokens=answer,
        queued_at=at,
        workload=Workload(
            lane=lane, tenant=tenant, priority=priority, weight=weight, upkeep=upkeep
        ),
        resumable=lane is WorkloadClass.BACKGROUND if resumable is None else resumable,
        deadline_s=deadline_s,
    )


def a_policy(bounds: QueueBounds = ROOMY, **settings: Any) -> Policy:
    """Without a reserve, and with an age that no test reaches by chance."""
    fields = {"interactive_reserve": 0.0, "aging_s": 10**6, "background_deadline_s": 10**6}
    return Policy(bounds=bounds, scheduling=SchedulingSettings(**(fields | settings)))


def a_schedule(*, slots: int = 2, blocks: int = 10**4, policy: Policy | None = None) -> Schedule:
    capacity = Capacity(slots=slots, kv_blocks=blocks, block_size=BLOCK)
    return Schedule(capacity, policy or a_policy())


def granted(book: Schedule, now: float = 0.0) -> list[int]:
    """The numbers of what is granted now."""
    return [lease.ticket.request for lease in book.grant(now)]


def preempted(book: Schedule, now: float = 0.0) -> list[int]:
    return [lease.ticket.request for lease in book.preempt(now)]


@dataclass(slots=True, eq=False)
class Run:
    """What a lease has come to."""

    lease: Lease
    read: int = 0
    tokens: int = 0
    pausing: bool = False


@dataclass(slots=True, kw_only=True)
class Pump:
    """An engine of `step_s` a step: each step reads `read_tokens` of every prompt, or gives every
    answer a token; a pause takes effect with the next one."""

    schedule: Schedule
    step_s: float = 0.05
    read_tokens: int = 64
    now: float = 0.0
    running: dict[EngineRequest, Run] = field(default_factory=dict)
    granted_at: dict[EngineRequest, list[float]] = field(default_factory=dict)
    ended_at: dict[EngineRequest, float] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    service: dict[str, float] = field(default_factory=dict)
    """Weighted tokens by tenant."""
    _tokens: dict[EngineRequest, int] = field(default_factory=dict)

    def submit(self, *tickets: Ticket) -> None:
        self.refused += self.schedule.submit(*tickets)

    def step(self, arrivals: Iterable[Ticket] = ()) -> None:
        """One step of the engine, then what has come, then what has become possible."""
        self.now += self.step_s
        for request, run in list(self.running.items()):
            self._advance(request, run)
        for ticket in arrivals:
            self.submit(ticket)
        self.admit()

    def admit(self) -> None:
        for lease in self.schedule.grant(self.now):
            request = lease.ticket.request
            assert lease.tokens == self._tokens.get(request, 0)
            self.granted_at.setdefault(request, []).append(self.now)
            self.running[request] = Run(lease, tokens=lease.tokens)
            if not lease.resumed:
                self._serve(lease.ticket, lease.ticket.prompt_tokens)
        for lease in self.schedule.preempt(self.now):
            self.running[lease.ticket.request].pausing = True

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def run_out(self, most: int = 100_000) -> None:
        """Until nothing is left."""
        for _ in range(most):
            if not self.running and not self.schedule.load().waiting:
                return
            self.step()
        raise AssertionError(f"{self.schedule.load()} is left")

    def waits(self, tickets: Sequence[Ticket]) -> list[float]:
        """How long each waited for its first slot."""
        return [self.granted_at[each.request][0] - each.queued_at for each in tickets]

    def _advance(self, request: EngineRequest, run: Run) -> None:
        ticket = run.lease.ticket
        if run.pausing:
            del self.running[request]
            self._tokens[request] = run.tokens
            self.schedule.gained(request, run.tokens)
            assert self.schedule.paused(request, self.now) is ticket
            return
        prompt = ticket.prompt_tokens + run.lease.tokens
        if run.read < prompt:
            run.read += self.read_tokens
            if run.read < prompt:
                return
            self.schedule.first_token(request, self.now)
        run.tokens += 1
        self._serve(ticket, 2)
        self.schedule.gained(request, run.tokens)
        if run.tokens >= ticket.max_tokens:
            del self.running[request]
            self.schedule.release(request, self.now)
            assert request not in self.ended_at
            self.ended_at[request] = self.now

    def _serve(self, ticket: Ticket, tokens: float) -> None:
        tenant = ticket.workload.tenant
        self.service[tenant] = self.service.get(tenant, 0.0) + tokens

"""One simulated replica: the server's own schedule before a virtual engine, and what that engine
still has of former conversations."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from antiphon.actors.scheduling.outlook import Outlook
from antiphon.actors.scheduling.policy import Policy
from antiphon.actors.scheduling.prediction import Prediction, Predictor
from antiphon.actors.scheduling.schedule import Schedule
from antiphon.actors.scheduling.tickets import Capacity, Lease, Ticket
from antiphon.ids import EngineRequest, RequestId
from antiphon.simulating.engine_model import EngineModel
from antiphon.simulating.prefix_cache import PrefixCache
from antiphon.simulating.records import LANES, LaneRecord
from antiphon.simulating.trace import Arrival
from antiphon.simulating.virtual_engine import Happened, Run, VirtualEngine
from antiphon.workload import Workload

_TOLD_S = 2.0
"""A schedule is told at each step what everybody gained. Here, where somebody waits, this often."""
_LEARNING = 1000
_LEARN_EVERY = 5
_SWEEP_S = 1.0
"""As often as a scheduler looks for what has waited too long."""


@dataclass(slots=True, eq=False)
class Request:
    """One arrival on its way."""

    number: EngineRequest
    arrival: Arrival
    lane: int
    workload: Workload
    record: LaneRecord
    submitted_at: float
    counted: bool
    """Whether it is in the report: the first ones only warm things up."""
    ticket: Ticket | None = None
    replica: "Replica | None" = None
    prediction: Prediction | None = None
    run: Run | None = None
    generated: int = 0
    """Before the last pause."""
    first_at: float | None = None
    leaving: bool = False
    over: bool = False


class Replica:
    """Everything that is told at a time must be told in the order of time."""

    def __init__(self, index: int, model: EngineModel, policy: Policy, *, learns: bool) -> None:
        self.index = index
        self.model = model
        self.engine = VirtualEngine(model, len(LANES))
        self.schedule = Schedule(
            Capacity(slots=model.slots, kv_blocks=model.kv_blocks, block_size=model.block_size),
            policy,
        )
        self.predictor = Predictor(step_tokens=model.step_tokens)
        self.cache = PrefixCache(model.kv_tokens + model.spare_cache_tokens, model.block_size)
        self.requests: dict[EngineRequest, Request] = {}
        self.waiting = 0
        self.wakes_at = math.inf
        """What its engine's next change was last noted as."""
        self._learns = learns
        self._is_fair = policy.fair
        self._stretches = 0
        self._told_at = 0.0
        self._swept_at = 0.0

    @property
    def in_flight(self) -> int:
        return len(self.requests)

    def submit(
        self, request: Request, max_tokens: int, deadline_s: float | None = None
    ) -> list[Request]:
        """Those whose places in the queue it took. Raises QueueFull, ContextLengthExceeded."""
        number = request.number
        ticket = Ticket(
            request=number,
            turn=RequestId(str(number)),
            prompt_tokens=request.arrival.prompt_tokens,
            max_tokens=max_tokens,
            queued_at=request.submitted_at,
            workload=request.workload,
            resumable=True,
            deadline_s=deadline_s,
        )
        refused = self.schedule.submit(ticket)
        request.ticket = ticket
        request.replica = self
        self.requests[number] = request
        self.waiting += 1 - len(refused)
        return [self.requests.pop(each.ticket.request) for each in refused]

    def grant(self, now: float) -> None:
        """What has become possible begins, and what must give way is paused."""
        if self.waiting > 1:  # else there is nobody to choose from
            self._tell(now)
        for lease in self.schedule.grant(now):
            self._begin(lease, now)
        if self.waiting:
            for lease in self.schedule.preempt(now):
                request = self.requests[lease.ticket.request]
                assert request.run is not None
                self.engine.remove(request.run, now + self.model.turnaround_s)

    def predict(self, request: Request, max_tokens: int, now: float) -> Prediction:
        """When its first token would come, as the server would tell."""
        arrival = request.arrival
        assert self._learns
        known = min(self.cache.knows(arrival.conversation), arrival.shared_tokens)
        request.prediction = self.predictor.predict(
            self._outlook(request.workload, now),
            arrival.prompt_tokens,
            max_tokens,
            cached_tokens=max(known, arrival.common_tokens) if self.model.prefix_cache else 0,
        )
        return request.prediction

    def _outlook(self, workload: Workload, now: float) -> Outlook:
        """The schedule's, with what is inside the engine: a server has a mirror of that."""
        engine = self.engine
        prompts, tokens, attended = engine.backlog()
        work = engine.work()
        outlook = self.schedule.outlook(workload, now)
        return outlook.with_inside(
            shared=outlook.shared,
            ahead_prompt_tokens=outlook.ahead_prompt_tokens,
            decoding=engine.decoding,
            context_tokens=engine.context,
            prefilling=prompts,
            prefill_tokens=max(tokens - work.prefill, 0),
            attended_tokens=max(attended - work.attended, 0),
            step_left_s=engine.step_left_s(now),
            releases=outlook.releases,
        )

    def advance(self) -> Happened:
        """Let the engine come to the next change, and learn from how long that took."""
        engine = self.engine
        if self._learns and engine.steps:
            self._stretches += 1
            # Virtual steps never take longer than they should: a few tell all there is to know.
            if self._stretches < _LEARNING or self._stretches % _LEARN_EVERY == 0:
                work = engine.work()
                self.predictor.observe_step(
                    engine.step_s, work.decoding, work.prefill, work.context, work.attended
                )
        before = engine.used.prefilled
        happened = engine.advance()
        if engine.used.prefilled > before:
            self.schedule.prefilled(engine.used.prefilled - before)
        return happened

    def first_token(self, request: Request, now: float) -> None:
        assert request.ticket is not None
        self.schedule.first_token(request.ticket.request, now)
        if request.prediction is not None:
            self.predictor.observe_first_token(request.prediction, now - request.submitted_at)
            request.prediction = None

    def cancel(self, request: Request, now: float) -> bool:
        """The client has hung up. True when that is all: it had no slot."""
        assert request.ticket is not None
        number = request.ticket.request
        match self.schedule.cancel(number):
            case Lease():
                assert request.run is not None
                self.engine.remove(request.run, now + self.model.turnaround_s)
                return False
            case None:
                return False
            case _:
                self.waiting -= 1
                del self.requests[number]
                return True

    def expired(self, now: float) -> Iterator[Request]:
        """Who has waited to the deadline, as often as a scheduler looks."""
        if now - self._swept_at < _SWEEP_S:
            return
        self._swept_at = now
        for ticket, _ in self.schedule.expire(now):
            self.waiting -= 1
            yield self.requests.pop(ticket.request)

    def paused(self, request: Request, now: float) -> None:
        """The engine gave the slot of a pre-empted one back."""
        assert request.ticket is not None
        assert request.run is not None
        request.generated = self.engine.tokens(request.run)
        self.schedule.gained(request.number, request.generated)
        self.schedule.paused(request.number, now)
        tokens = request.arrival.prompt_tokens + request.generated
        self.cache.keep(_pause_key(request), tokens, self.engine.context)
        request.run = None
        request.record.paused += request.counted
        self.waiting += 1

    def ended(self, request: Request, now: float, *, tokens: int) -> None:
        """The engine gave the slot of one that is over back."""
        assert request.ticket is not None
        number = request.ticket.request
        self.schedule.gained(number, tokens)
        self.schedule.release(number, now)
        del self.requests[number]
        arrival = request.arrival
        if self._learns and not request.leaving:
            self.predictor.observe_length(request.workload.lane, tokens, request.ticket.max_tokens)
        self.cache.keep(arrival.conversation, arrival.prompt_tokens + tokens, self.engine.context)

    def _begin(self, lease: Lease, now: float) -> None:
        number = lease.ticket.request
        request = self.requests[number]
        arrival = request.arrival
        self.waiting -= 1
        resumed = request.generated > 0
        prompt = arrival.prompt_tokens + request.generated
        if not self.model.prefix_cache:
            cached = 0
        elif resumed:
            cached = self.cache.hit(_pause_key(request), prompt, prompt, arrival.common_tokens)
        else:
            cached = self.cache.hit(
                arrival.conversation, prompt, arrival.shared_tokens, arrival.common_tokens
            )
        if request.counted and not resumed:
            request.record.prompt_tokens += prompt
            request.record.cached_tokens += cached
            request.record.waited_s.append(now - request.submitted_at)
        request.run = Run(
            number=number,
            lane=request.lane,
            prompt=prompt,
            todo=prompt - cached,
            left=arrival.output_tokens - request.generated,
            generated=request.generated,
        )
        self.engine.begin(request.run, now + self.model.turnaround_s)

    def _tell(self, now: float) -> None:
        """What everybody gained since: fairness is by tokens served."""
        if not self._is_fair or now - self._told_at < _TOLD_S:
            return
        self._told_at = now
        for number, request in self.requests.items():
            run = request.run
            if run is not None and run.decoding and not run.gone:
                self.schedule.gained(number, self.engine.tokens(run))


def _pause_key(request: Request) -> str:
    assert request.ticket is not None
    return f"paused {request.ticket.request}"

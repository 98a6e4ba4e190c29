"""Requests through simulated replicas, from one event to the next, in virtual time. The decisions
are the server's own: its schedule, its predictions, its admission, its routing."""

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from antiphon.actors.routing.rules import Rules
from antiphon.actors.scheduling.policy import Policy, QueueBounds
from antiphon.errors import ContextLengthExceeded, QueueFull
from antiphon.ids import EngineRequest, ModelName
from antiphon.plan_settings import PlanSettings
from antiphon.scheduling_settings import SchedulingSettings
from antiphon.settings import GenerationSettings, QueueSettings
from antiphon.simulating.engine_model import EngineModel
from antiphon.simulating.placement import MAIN, SMALLER, Fleet, Placed, Placement
from antiphon.simulating.records import LANES, Ending, Records
from antiphon.simulating.replica import Replica, Request
from antiphon.simulating.trace import Arrival
from antiphon.workload import Workload, WorkloadClass, lane_of

_INDEX = {lane: index for index, lane in enumerate(LANES)}


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated. The settings are the server's; `between_s` is the objective of the mean
    time between two tokens, 0 for none; what arrives before `warmup_s` is in no figure."""

    engine: EngineModel
    replicas: int = 1
    smaller: EngineModel | None = None
    smaller_replicas: int = 1
    free_on_smaller: bool = False
    """Who doesn't pay is given the smaller model from the start."""
    highest_priority: int = 0
    """Of any plan: who has a lower one is shed first."""
    scheduling: SchedulingSettings = SchedulingSettings()
    queue: QueueSettings = QueueSettings()
    generation: GenerationSettings = GenerationSettings()
    admission: bool = True
    between_s: float = 0.0
    warmup_s: float = 0.0


@dataclass(slots=True)
class Outcome:
    """What came of it. `ends_at` is when the last request ended."""

    setup: Setup
    records: Records
    fleets: dict[ModelName, Fleet]
    begins_at: float = 0.0
    last_arrival_at: float = 0.0
    ends_at: float = 0.0

    @property
    def replicas(self) -> list[Replica]:
        return [replica for fleet in self.fleets.values() for replica in fleet.replicas]


Watch = Callable[[Arrival, float, float], None]


def simulate(setup: Setup, arrivals: Iterable[Arrival], *, watch: Watch | None = None) -> Outcome:
    """Run them all to their ends; `watch` is told when each whole answer began and ended."""
    return _Simulation(setup, watch).run(arrivals)


class _Simulation:
    def __init__(self, setup: Setup, watch: Watch | None) -> None:
        self._setup = setup
        self._watch = watch
        self._objective_s = objectives(setup.scheduling)
        fleets = {MAIN: self._fleet(MAIN, setup.engine, setup.replicas, 0)}
        if setup.smaller is not None:
            first = setup.replicas
            fleets[SMALLER] = self._fleet(SMALLER, setup.smaller, setup.smaller_replicas, first)
        self._outcome = Outcome(setup=setup, records=Records(), fleets=fleets)
        self._replicas = self._outcome.replicas
        self._placement = Placement(fleets, _rules(setup), admission=setup.admission)
        self._wakes: list[tuple[float, int]] = []
        self._hang_ups: list[tuple[float, int, Request]] = []
        self._numbers = 0

    def _fleet(self, name: ModelName, model: EngineModel, count: int, first: int) -> Fleet:
        queue = self._setup.queue
        policy = Policy(
            bounds=QueueBounds(
                max_requests=queue.max_requests,
                max_tokens=queue.max_tokens,
                deadline_s=queue.deadline_s,
            ),
            scheduling=self._setup.scheduling,
        )
        return Fleet(
            name,
            [
                Replica(first + index, model, policy, learns=self._setup.admission)
                for index in range(count)
            ],
        )

    def run(self, arrivals: Iterable[Arrival]) -> Outcome:
        outcome = self._outcome
        outcome.begins_at = self._setup.warmup_s
        coming = iter(arrivals)
        arrival = next(coming, None)
        while True:
            wake_at = self._next_wake()
            hang_up_at = self._hang_ups[0][0] if self._hang_ups else math.inf
            comes_at = math.inf if arrival is None else arrival.at + self._overhead_s
            if wake_at <= hang_up_at and wake_at <= comes_at:
                if wake_at == math.inf:
                    break
                replica = self._replicas[heapq.heappop(self._wakes)[1]]
                replica.wakes_at = math.inf
                self._step(replica, wake_at)
            elif hang_up_at <= comes_at:
                self._hang_up(heapq.heappop(self._hang_ups)[2], hang_up_at)
            else:
                assert arrival is not None
                outcome.last_arrival_at = arrival.at
                self._arrive(arrival, comes_at)
                arrival = next(coming, None)
        return outcome

    @property
    def _overhead_s(self) -> float:
        return self._setup.engine.overhead_s

    def _next_wake(self) -> float:
        """Entries whose engine has another appointment by now are stale."""
        wakes = self._wakes
        while wakes and self._replicas[wakes[0][1]].engine.next_at != wakes[0][0]:
            heapq.heappop(wakes)
        return wakes[0][0] if wakes else math.inf

    def _arrive(self, arrival: Arrival, now: float) -> None:
        setup = self._setup
        self._numbers += 1
        request = self._request(arrival, now)
        record = request.record
        record.arrived += request.counted
        max_tokens = max(
            arrival.max_tokens or setup.generation.default_max_tokens, arrival.output_tokens
        )
        is_free = setup.free_on_smaller and arrival.priority == 0 and setup.smaller is not None
        asked = SMALLER if is_free else MAIN
        placed = self._placement.place(request, asked, max_tokens, now)
        if not isinstance(placed, Placed):
            self._end(request, placed, now)
            return
        replica = placed.replica
        record.moved += request.counted and placed.moved
        try:
            for evicted in replica.submit(request, max_tokens, placed.deadline_s):
                self._end(evicted, Ending.SHED, now)
        except QueueFull:
            self._end(request, Ending.SHED, now)
            return
        except ContextLengthExceeded:
            self._end(request, Ending.TOO_LONG, now)
            return
        if arrival.leaves_after_s is not None:
            leaves_at = arrival.at + arrival.leaves_after_s
            heapq.heappush(self._hang_ups, (max(leaves_at, now), request.number, request))
        self._settle(replica, now)

    def _request(self, arrival: Arrival, now: float) -> Request:
        setup = self._setup
        lane = lane_of(
            prompt_tokens=arrival.prompt_tokens,
            long_prompt_tokens=setup.scheduling.long_prompt_tokens,
            background=arrival.background,
            continues_tool=arrival.continues_tool,
        )
        index = _INDEX[lane]
        return Request(
            number=EngineRequest(self._numbers),
            arrival=arrival,
            lane=index,
            workload=Workload(lane=lane, tenant=arrival.tenant, priority=arrival.priority),
            record=self._outcome.records.of(index, arrival.priority),
            submitted_at=now,
            counted=arrival.at >= setup.warmup_s,
        )

    def _step(self, replica: Replica, now: float) -> None:
        """A boundary of an engine, and what comes of it."""
        happened = replica.advance()
        for run in happened.first:
            self._first(replica.requests[EngineRequest(run.number)], replica, now)
        for run in happened.ended:
            request = replica.requests[EngineRequest(run.number)]
            replica.ended(request, now, tokens=request.arrival.output_tokens)
            self._end(request, Ending.LEFT if request.leaving else Ending.FINISHED, now)
        for run in happened.left:
            request = replica.requests[EngineRequest(run.number)]
            if request.leaving:
                replica.ended(request, now, tokens=replica.engine.tokens(run))
                self._end(request, Ending.LEFT, now)
            else:
                replica.paused(request, now)
        self._settle(replica, now)

    def _settle(self, replica: Replica, now: float) -> None:
        if replica.waiting:
            for request in replica.expired(now):
                self._end(request, Ending.EXPIRED, now)
            replica.grant(now)
        next_at = replica.engine.next_at
        if next_at < math.inf and next_at != replica.wakes_at:
            replica.wakes_at = next_at
            heapq.heappush(self._wakes, (next_at, replica.index))

    def _first(self, request: Request, replica: Replica, now: float) -> None:
        replica.first_token(request, now)
        if request.first_at is None:
            request.first_at = now
            if request.counted and not request.leaving:
                request.record.first_s.append(now - request.arrival.at)

    def _hang_up(self, request: Request, now: float) -> None:
        if request.over:
            return
        request.leaving = True
        assert request.replica is not None
        replica = request.replica
        if replica.cancel(request, now):
            self._end(request, Ending.LEFT, now)
        self._settle(replica, now)

    def _end(self, request: Request, ending: Ending, now: float) -> None:
        assert not request.over
        request.over = True
        self._outcome.ends_at = max(self._outcome.ends_at, now)
        if not request.counted:
            return
        record = request.record
        record.endings[ending] += 1
        if ending is not Ending.FINISHED:
            return
        tokens = request.arrival.output_tokens
        record.tokens += tokens
        assert request.first_at is not None
        if self._watch is not None:
            self._watch(request.arrival, request.first_at, now)
        first_s = request.first_at - request.arrival.at
        between_s = (now - request.first_at) / (tokens - 1) if tokens > 1 else 0.0
        if tokens > 1:
            record.between_s.append(between_s)
        objective_s = self._objective_s[LANES[request.lane]]
        is_soon = not objective_s or first_s <= objective_s
        is_smooth = not self._setup.between_s or between_s <= self._setup.between_s
        record.good += is_soon and is_smooth


def objectives(scheduling: SchedulingSettings) -> dict[WorkloadClass, float]:
    """The time to first token that each class is promised; 0 is none."""
    return {
        WorkloadClass.INTERACTIVE: scheduling.interactive_objective_s,
        WorkloadClass.TOOL: scheduling.tool_objective_s,
        WorkloadClass.LONG: scheduling.long_objective_s,
        WorkloadClass.BACKGROUND: scheduling.background_objective_s,
    }


def _rules(setup: Setup) -> Rules:
    return Rules(
        aliases={},
        plans={"highest": PlanSettings(priority=setup.highest_priority)},
        default_plan=None,
        scheduling=setup.scheduling,
        deadline_s=setup.queue.deadline_s,
    )

"""A pool's forecast, fed with what its scheduler and its engine report, and asked by the router. It
outlives schedulers and hosts. Knows no messages."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import trio

from antiphon.actors.engines.status import EngineStatus
from antiphon.actors.scheduling.forecast import Forecast
from antiphon.actors.scheduling.outlook import Outlook
from antiphon.actors.scheduling.policy import is_urgent
from antiphon.actors.scheduling.prediction import Prediction, Rates
from antiphon.actors.scheduling.promised import Promise, Promised
from antiphon.actors.scheduling.schedule import Capacity, Lease, Schedule
from antiphon.events import Step
from antiphon.ids import EngineRequest
from antiphon.telemetry import Telemetry
from antiphon.workload import Workload, WorkloadClass

_URGENT = frozenset(lane for lane in WorkloadClass if is_urgent(lane))


class PoolForecast:
    """One forecast, over whatever schedule there is."""

    def __init__(
        self,
        status: EngineStatus,
        schedule: Callable[[], Schedule | None],
        telemetry: Telemetry,
        *,
        step_tokens: int,
    ) -> None:
        self._status = status
        self._schedule = schedule
        self._telemetry = telemetry
        self._forecast = Forecast(step_tokens=step_tokens)
        self._promised = Promised()
        self._predicted: dict[EngineRequest, tuple[Prediction, float]] = {}

    def predict(
        self, workload: Workload, prompt: Sequence[int], max_tokens: int, salt: str | None = None
    ) -> Prediction | None:
        """When the first token of such a request would come, were it submitted now; None while
        there is no schedule."""
        schedule = self._schedule()
        if schedule is None:
            return None
        now = trio.current_time()
        self.account(schedule)
        outlook = self._outlook(schedule, workload, now)
        prediction = self._forecast.predict(outlook, prompt, max_tokens, now, salt=salt)
        blocks = -(-(len(prompt) + max_tokens) // outlook.block_size)
        self._promised.told(Promise(prediction, len(prompt), blocks, now))
        return prediction

    def rates(self) -> Rates:
        """With as many answers at once as there are now."""
        return self._forecast.predictor.rates(decoding=max(len(self._status.tokens), 1))

    def first_token_s(self, lane: WorkloadClass) -> float:
        """When the first token of what is usual in that lane would come; NaN while there is no
        schedule."""
        schedule = self._schedule()
        if schedule is None:
            return math.nan
        now = trio.current_time()
        outlook = self._outlook(schedule, Workload(lane=lane), now)
        return self._forecast.typical(outlook, now).ttft_s

    def _outlook(self, schedule: Schedule, workload: Workload, now: float) -> Outlook:
        """With those who have been told and are not in the queue yet."""
        outlook = schedule.outlook(workload, now)
        lanes = _URGENT if is_urgent(workload.lane) else WorkloadClass
        count, tokens, blocks = self._promised.ahead(lanes, now)
        if not count:
            return outlook
        shared = outlook.shared
        if shared is not None:
            others, _, _ = self._promised.ahead(shared.lanes, now)
            shared = replace(shared, ahead=shared.ahead + others)
        return replace(
            outlook,
            shared=shared,
            ahead=outlook.ahead + count,
            ahead_prompt_tokens=outlook.ahead_prompt_tokens + tokens,
            ahead_blocks=outlook.ahead_blocks + blocks,
        )

    def account(self, schedule: Schedule) -> None:
        """Tell the schedule what each generation has gained by now."""
        for request, tokens in self._status.tokens.items():
            schedule.gained(request, tokens)

    def started(self, capacity: Capacity) -> None:
        """There is a new schedule, of an engine with nothing in it."""
        self._predicted.clear()
        self._promised.clear()
        self._status.observe_step = self._stepped
        self._forecast.restarted(
            kv_blocks=capacity.kv_blocks,
            block_size=capacity.block_size,
            lets_pass=capacity.lets_pass,
        )

    def submitted(self, request: EngineRequest, prediction: Prediction) -> None:
        """What its first token was predicted to take, from now."""
        self._promised.came(prediction)
        self._predicted[request] = prediction, trio.current_time()

    def begun(
        self, lease: Lease, prompt: Sequence[int], salt: str | None, *, patient: bool = False
    ) -> None:
        """The engine is told to begin with it, or to go on."""
        ticket = lease.ticket
        self._forecast.begun(
            ticket.request,
            ticket.workload.lane,
            prompt,
            ticket.max_tokens,
            trio.current_time(),
            salt=salt,
            tokens=lease.tokens,
            patient=patient,
        )

    def first_token(self, request: EngineRequest, at: float) -> None:
        predicted = self._predicted.pop(request, None)
        if predicted is not None:
            prediction, since = predicted
            seconds = at - since
            self._forecast.observe_first_token(prediction, seconds)
            model = self._status.model
            self._telemetry.first_token_predicted(model, prediction.ttft_s, seconds)

    def ended(self, request: EngineRequest, tokens: int, *, whole: bool) -> None:
        """The engine gave its slot back; `whole` when the answer ended by itself."""
        self._forecast.ended(request, tokens, whole=whole)

    def forget(self, request: EngineRequest) -> None:
        """Whether what was predicted of it was right nobody can tell any more."""
        self._predicted.pop(request, None)

    def _stepped(self, step: Step, decoding: int, at: float) -> None:
        schedule = self._schedule()
        if schedule is not None and step.prefilled:
            schedule.prefilled(step.prefilled)
        gained = [text.request for text in step.texts if text.tokens]
        self._forecast.stepped(step.duration_s, gained, at)

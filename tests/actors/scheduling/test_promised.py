"""Requests on their way to the queue are before those that ask next."""

import math

import trio

from antiphon.actors.engines.status import EngineStatus
from antiphon.actors.scheduling.policy import Policy, QueueBounds
from antiphon.actors.scheduling.pool_forecast import PoolForecast
from antiphon.actors.scheduling.prediction import Prediction
from antiphon.actors.scheduling.promised import Promise, Promised
from antiphon.actors.scheduling.schedule import Schedule
from antiphon.actors.scheduling.tickets import Capacity
from antiphon.ids import EngineRequest, ModelName
from antiphon.testing.telemetry import NullTelemetry
from antiphon.workload import Workload, WorkloadClass

CHAT = WorkloadClass.INTERACTIVE
ALL = tuple(WorkloadClass)


def promise(at: float = 0.0, lane: WorkloadClass = CHAT) -> Promise:
    return Promise(Prediction(wait_s=0.0, prefill_s=1.0, lane=lane), 100, 4, at)


def test_who_has_been_told_is_ahead_until_it_is_in_the_queue():
    promised = Promised()
    one, two = promise(), promise()  # equal, and not the same
    promised.told(one)
    promised.told(two)
    before = promised.ahead(ALL, 0.1)

    promised.came(one.prediction)
    promised.came(one.prediction)

    assert before == (2, 200, 8)
    assert promised.ahead(ALL, 0.1) == (1, 100, 4)


def test_who_never_comes_is_not_waited_for():
    promised = Promised()
    promised.told(promise(0.0))
    promised.told(promise(0.2))

    assert promised.ahead(ALL, 0.3) == (1, 100, 4)
    assert promised.ahead(ALL, 9.0) == (0, 0, 0)


def test_lanes_are_counted_apart():
    promised = Promised()
    promised.told(promise(lane=WorkloadClass.BACKGROUND))

    assert promised.ahead((CHAT,), 0.0) == (0, 0, 0)
    assert promised.ahead(ALL, 0.0) == (1, 100, 4)


async def test_many_that_come_in_one_moment_are_not_all_told_of_an_empty_pool(autojump_clock):
    capacity = Capacity(slots=4, kv_blocks=1000, block_size=32)
    policy = Policy(bounds=QueueBounds(max_requests=99, max_tokens=10**6, deadline_s=60.0))
    schedule = Schedule(capacity, policy)
    status = EngineStatus(model=ModelName("model"), silence_s=10.0)
    forecast = PoolForecast(status, lambda: schedule, NullTelemetry(), step_tokens=128)
    forecast.started(capacity)
    prompt = [1] * 100

    told = [forecast.predict(Workload(), prompt, 50) for _ in range(10)]
    await trio.sleep(1.0)
    later = forecast.predict(Workload(), prompt, 50)

    first, *_, last = [each for each in told if each is not None]
    assert last.ttft_s > 5 * first.ttft_s
    assert first.wait_s == 0 < last.wait_s
    assert later is not None
    assert later.ttft_s == first.ttft_s


async def test_nobody_is_told_anything_of_a_pool_that_has_no_schedule(autojump_clock):
    status = EngineStatus(model=ModelName("model"), silence_s=10.0)
    forecast = PoolForecast(status, lambda: None, NullTelemetry(), step_tokens=128)

    assert forecast.predict(Workload(), [1], 1) is None
    assert math.isnan(forecast.first_token_s(CHAT))
    forecast.ended(EngineRequest(1), 5, whole=True)

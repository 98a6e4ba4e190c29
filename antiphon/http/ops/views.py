"""What the operations pages show of pools and their slots: values made from snapshots."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from antiphon.actors.routing.router import RoutedPool
from antiphon.actors.scheduling.engine_pool import EnginePool
from antiphon.actors.scheduling.tickets import LaneLoad, Load
from antiphon.ids import ModelName, RequestId, SlotIndex
from antiphon.workload import WorkloadClass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotView:
    """One decode slot as operators see it; `age_s` is the time since it was granted, 0 if free."""

    model: ModelName
    slot: SlotIndex
    state: Literal["free", "prefill", "decode", "releasing"]
    request_id: RequestId | None
    tokens: int
    age_s: float
    lane: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStatus:
    """One lane of a pool. `predicted_s` is when the first token of a usual request would come, were
    it submitted now; None while nobody can tell."""

    lane: str
    running: int
    waiting: int
    waiting_tokens: int
    paused: int
    predicted_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """One pool as operators see it; `problem` is why it should get no work now."""

    model: ModelName
    problem: str | None
    slots: int
    running: int
    waiting: int
    waiting_tokens: int
    window: int
    cost: float
    smaller: ModelName | None
    free_slots: int = 0
    kv_usage: float = 0.0
    """Of its KV cache, 0 to 1: in use, and promised to what holds a slot."""
    kv_reserved: float = 0.0
    engine: str | None = None
    """And its version; None while none has been ready."""
    pid: int | None = None
    hosts: int = 0
    """How many engine hosts have been ready since the start."""
    circuit: str = "closed"
    prefill_tokens_s: float | None = None
    decode_tokens_s: float | None = None
    lanes: tuple[LaneStatus, ...] = ()


def slot_views(engine: EnginePool, now: float) -> Iterator[SlotView]:
    """Every slot; none while no engine has been ready."""
    schedule, model = engine.view.schedule, engine.pool.card.name
    if schedule is None:
        return
    leases = {lease.slot: lease for lease in schedule.leases()}
    for index in range(schedule.slots):
        slot = SlotIndex(index)
        lease = leases.get(slot)
        if lease is None:
            yield SlotView(
                model=model, slot=slot, state="free", request_id=None, tokens=0, age_s=0.0
            )
            continue
        tokens = engine.status.tokens.get(lease.ticket.request, 0)
        yield SlotView(
            model=model,
            slot=slot,
            state="releasing" if lease.releasing else "decode" if tokens else "prefill",
            request_id=lease.ticket.turn,
            tokens=tokens,
            age_s=round(now - lease.granted_at, 3),
            lane=lease.ticket.workload.lane.value,
        )


def pool_status(routed: RoutedPool, problem: str | None, engine: EnginePool) -> PoolStatus:
    schedule, status = routed.view.schedule, engine.status
    load = None if schedule is None else schedule.load()
    room, capabilities, rates = engine.room(), status.capabilities, engine.forecast.rates()
    return PoolStatus(
        model=routed.pool.card.name,
        problem=problem,
        slots=0 if schedule is None else schedule.slots,
        running=0 if load is None else load.running,
        waiting=0 if load is None else load.waiting,
        waiting_tokens=0 if load is None else load.waiting_tokens,
        window=routed.window,
        cost=routed.cost,
        smaller=routed.smaller,
        free_slots=room.free_slots,
        kv_usage=round(status.kv_usage, 4),
        kv_reserved=round(room.reserved, 4),
        engine=None
        if capabilities is None
        else f"{capabilities.engine} {capabilities.engine_version}",
        pid=status.pid,
        hosts=status.hosts,
        circuit=engine.pool.breaker.statistics().circuit,
        prefill_tokens_s=_known(rates.prefill_tokens_s, digits=1),
        decode_tokens_s=_known(rates.decode_tokens_s, digits=1),
        lanes=() if load is None else tuple(_lanes(engine, load)),
    )


def _lanes(engine: EnginePool, load: Load) -> Iterator[LaneStatus]:
    for lane in WorkloadClass:
        figures = load.lanes.get(lane, LaneLoad())
        yield LaneStatus(
            lane=lane.value,
            running=figures.running,
            waiting=figures.waiting,
            waiting_tokens=figures.waiting_tokens,
            paused=figures.paused,
            predicted_s=_known(engine.forecast.first_token_s(lane), digits=4),
        )


def _known(figure: float, *, digits: int) -> float | None:
    """NaN stands for what nobody knows, and JSON has none."""
    return round(figure, digits) if math.isfinite(figure) else None

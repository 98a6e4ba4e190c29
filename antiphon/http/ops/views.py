"""What the operations pages show of pools and their slots: values made from snapshots."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from antiphon.actors.routing.router import RoutedPool
from antiphon.actors.scheduling.engine_pool import EnginePool
from antiphon.ids import ModelName, RequestId, SlotIndex


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


def pool_status(routed: RoutedPool, problem: str | None) -> PoolStatus:
    schedule = routed.view.schedule
    load = None if schedule is None else schedule.load()
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
    )

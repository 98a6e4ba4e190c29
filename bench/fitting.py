"""An engine model that explains runs of the real server: costs are changed, one at a time, for as
long as the simulated times of the run come closer to those that were measured. So the model has in
it what the server and its clients cost the engine on the same cores."""

import math
from collections.abc import Callable, Sequence

import msgspec

from antiphon.simulating.engine_model import EngineModel, StepCosts
from antiphon.simulating.simulation import Setup, simulate
from bench.openloop import Run, Served

_STEPS = (1.6, 1.25, 1.1, 1.04, 1.015)
_ROUNDS = 4
"""Of each step, at most."""


def fitted(setup: Setup, runs: Sequence[Run]) -> EngineModel:
    """The model of `setup`, with the costs changed for the best."""
    best = setup.engine
    loss = _loss(setup, best, runs)
    for step in _STEPS:
        for _ in range(_ROUNDS):
            before = loss
            for change in _CHANGES:
                for factor in (step, 1 / step):
                    tried = change(best, factor)
                    if (now := _loss(setup, tried, runs)) < loss:
                        best, loss = tried, now
            if loss > before * 0.999:
                break
    return best


def simulated(setup: Setup, run: Run) -> Run:
    """The same requests, as the simulator tells they go."""
    told: list[Served] = []
    simulate(
        setup,
        [each.arrival for each in run],
        watch=lambda arrival, first_at, ended_at: told.append(
            Served(arrival=arrival, first_at=first_at, ended_at=ended_at)
        ),
    )
    return sorted(told, key=lambda each: each.arrival.at)


def _loss(setup: Setup, engine: EngineModel, runs: Sequence[Run]) -> float:
    """The mean distance, in logarithms, of all first tokens and all ends."""
    setup = msgspec.structs.replace(setup, engine=engine)
    distances = [
        abs(math.log((at - each.arrival.at) / (measured - each.arrival.at)))
        for run in runs
        for each, told in zip(run, simulated(setup, run), strict=True)
        for at, measured in ((told.first_at, each.first_at), (told.ended_at, each.ended_at))
    ]
    return sum(distances) / len(distances)


def _costs(field: str) -> Callable[[EngineModel, float], EngineModel]:
    def change(engine: EngineModel, factor: float) -> EngineModel:
        value = getattr(engine.costs, field) * factor
        costs = msgspec.structs.replace(engine.costs, **{field: value})
        return msgspec.structs.replace(engine, costs=costs)

    return change


def _all_costs(engine: EngineModel, factor: float) -> EngineModel:
    values = {field: getattr(engine.costs, field) * factor for field in StepCosts.__struct_fields__}
    return msgspec.structs.replace(engine, costs=StepCosts(**values))


def _overhead(engine: EngineModel, factor: float) -> EngineModel:
    return msgspec.structs.replace(engine, overhead_s=engine.overhead_s * factor)


_CHANGES = (
    _all_costs,
    _costs("step_s"),
    _costs("decode_s"),
    _costs("prefill_s"),
    _costs("context_s"),
    _overhead,
)

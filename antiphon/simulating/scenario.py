"""A simulation as it is asked for: whose requests, on what, by which policy. From here on it is
pure: the same scenario gives the same report."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from antiphon.scheduling_settings import SchedulingSettings
from antiphon.simulating.capacity import Found, fewest
from antiphon.simulating.load_models import LoadModel, Surge, arrivals
from antiphon.simulating.report import Report, report_of
from antiphon.simulating.simulation import Outcome, Setup, simulate
from antiphon.simulating.trace import Arrival

_TOKENS_S_GUESS = 0.6
"""Of what the engine would decode with every slot in use and no prompt to prefill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A scaled sample of a load: so many replicas with their part of all requests, for so long.
    What arrives in the first part, `warmup`, only fills caches and queues."""

    replicas: int = 16
    seconds: float = 600.0
    warmup: float = 0.4
    seed: int = 1
    surge: Surge | None = None


def replayed(
    setup: Setup, trace: Sequence[Arrival], *, source: str, speed: float = 1.0
) -> tuple[Outcome, Report]:
    """A trace, at `speed` times its own rate."""
    highest = max((arrival.priority for arrival in trace), default=0)
    setup = msgspec.structs.replace(setup, highest_priority=highest)
    outcome = simulate(setup, hastened(trace, speed))
    assumptions = () if speed == 1.0 else (f"requests come at {speed:g} times the trace's rate",)
    return outcome, report_of(outcome, source, assumptions)


def hastened(trace: Iterable[Arrival], speed: float) -> Iterator[Arrival]:
    for arrival in trace:
        yield arrival if speed == 1 else msgspec.structs.replace(arrival, at=arrival.at / speed)


def promised(load: LoadModel, scheduling: SchedulingSettings) -> SchedulingSettings:
    """The settings with the objectives of a load."""
    return msgspec.structs.replace(
        scheduling,
        interactive_objective_s=load.first_token_s,
        tool_objective_s=load.first_token_s,
        long_prompt_tokens=load.long_prompt_tokens,
    )


def sampled(
    setup: Setup, load: LoadModel, cell: Cell, *, rate: float, all_replicas: int
) -> tuple[Outcome, Report]:
    """A cell of what `all_replicas` replicas would serve together, `rate` prompts a second."""
    replicas = min(cell.replicas, all_replicas)
    part = replicas / all_replicas
    setup = msgspec.structs.replace(
        setup,
        replicas=replicas,
        scheduling=promised(load, setup.scheduling),
        between_s=load.between_tokens_s,
        highest_priority=1,
        warmup_s=cell.warmup * cell.seconds,
    )
    coming = arrivals(
        load, rate=rate * part, seconds=cell.seconds, seed=cell.seed, surge=cell.surge
    )
    outcome = simulate(setup, coming)
    scale = (
        f"a cell of {replicas} replicas with {rate * part:,.1f} prompts a second stands for "
        f"{all_replicas:,} replicas with {rate:,.0f}: replicas share nothing but the front"
    )
    return outcome, report_of(outcome, load.name, (*load.assumptions(), scale))


def needed(
    setup: Setup, load: LoadModel, cell: Cell, *, rate: float, watch: Callable[[int], None]
) -> Found:
    """The fewest replicas for this many prompts a second; `watch` hears of each number tried."""

    def run(replicas: int) -> Report:
        watch(replicas)
        return sampled(setup, load, cell, rate=rate, all_replicas=replicas)[1]

    return fewest(run, load.first_token_share, guess=_guess(setup, load, rate))


def _guess(setup: Setup, load: LoadModel, rate: float) -> int:
    """What a replica might decode within the objective, with every prompt's prefill on top."""
    engine = setup.engine
    context = load.system_tokens + load.history_tokens // 3 + load.answer_tokens // 2
    batch = engine.slots
    while batch > 1:
        step_s = engine.costs.of(decoding=batch, context=batch * context)
        if step_s < _TOKENS_S_GUESS * load.between_tokens_s:
            break
        batch = max(1, batch * 7 // 8)
    step_s = engine.costs.of(decoding=batch, context=batch * context)
    seconds = load.answer_tokens * step_s / batch + engine.costs.prefill_s * context
    return max(1, math.ceil(rate * seconds))

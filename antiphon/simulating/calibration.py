"""From watched steps to their costs: a fit by least squares, in which no cost is negative. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.actors.scheduling.equations import solve_positive
from antiphon.errors import SettingsError
from antiphon.events import Capabilities
from antiphon.settings import EngineSettings
from antiphon.simulating.engine_model import EngineModel, StepCosts

_FEWEST = 50
_ROUNDS = 4
_OUTLIER = 1.5
"""A step that took so many times what was expected had something else in it: it is left out."""
_SCALES = (1.0, 0.1, 0.01, 0.0002, 0.00002)
"""Brings each part to about 1 in a busy step, so that the equations are well conditioned."""


_OVERHEAD_S = 0.01
"""What a lone request's first token takes beside the engine, as `make bench` finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One step: its seconds, and what was in it, as in `StepCosts.of`."""

    seconds: float
    decoding: int
    context: int
    prefill: int = 0
    prefill_context: int = 0

    def parts(self) -> tuple[float, ...]:
        raw = (1.0, self.decoding, self.prefill, self.context, self.prefill_context)
        return tuple(value * scale for value, scale in zip(raw, _SCALES, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """`error` is the median of what single steps are off by, relative to their length; `used` of
    them are in the fit."""

    costs: StepCosts
    error: float
    used: int


def fit(observations: Sequence[Observation]) -> Fitted:
    """The costs that explain the steps best, each by its relative error. Raises SettingsError when
    there are too few."""
    steps = [each for each in observations if each.seconds > 0]
    if len(steps) < _FEWEST:
        raise SettingsError(
            "--rounds", f"{len(steps)} steps are too few to learn from: {_FEWEST} are needed"
        )
    used = steps
    weights = _solve(steps, [each.seconds for each in steps])
    for _ in range(_ROUNDS):
        expected = [_seconds(weights, each) for each in steps]
        middle = statistics.median(
            each.seconds / guess for each, guess in zip(steps, expected, strict=True)
        )
        used = [
            each
            for each, guess in zip(steps, expected, strict=True)
            if each.seconds <= _OUTLIER * middle * guess
        ]
        weights = _solve(used, [_seconds(weights, each) for each in used])
    costs = StepCosts(
        step_s=weights[0] * _SCALES[0],
        decode_s=weights[1] * _SCALES[1],
        prefill_s=weights[2] * _SCALES[2],
        context_s=weights[3] * _SCALES[3],
        prefill_context_s=weights[4] * _SCALES[4],
    )
    errors = [abs(_seconds(weights, each) / each.seconds - 1) for each in used]
    return Fitted(costs=costs, error=statistics.median(errors), used=len(used))


def calibrated(
    steps: Sequence[Observation],
    capabilities: Capabilities,
    *,
    name: str,
    model: str,
    machine: str,
    engine: EngineSettings,
) -> tuple[EngineModel, Fitted]:
    """An engine model of what was watched, and how good it is. Raises SettingsError."""
    fitted = fit(steps)
    watched = EngineModel(
        name=name,
        model=model,
        machine=machine,
        source=f"fitted to {fitted.used} steps of {capabilities.engine} "
        f"{capabilities.engine_version}, each within {fitted.error:.1%} on the median",
        costs=fitted.costs,
        slots=capabilities.slots,
        kv_blocks=capabilities.kv_blocks,
        block_size=capabilities.block_size,
        step_tokens=engine.step_tokens,
        prefix_cache=engine.prefix_cache != "off",
        overhead_s=_OVERHEAD_S,
    )
    return watched, fitted


def _seconds(weights: Sequence[float], step: Observation) -> float:
    return sum(weight * part for weight, part in zip(weights, step.parts(), strict=True))


def _solve(steps: Sequence[Observation], expected: Sequence[float]) -> tuple[float, ...]:
    """Each step's equation is divided by what is expected of it: short steps count as much as long
    ones."""
    size = len(_SCALES)
    matrix = [[0.0] * size for _ in range(size)]
    right = [0.0] * size
    for step, guess in zip(steps, expected, strict=True):
        parts = step.parts()
        weight = 1.0 / (guess * guess)
        for row in range(size):
            right[row] += weight * parts[row] * step.seconds
            for column in range(size):
                matrix[row][column] += weight * parts[row] * parts[column]
    return tuple(solve_positive(matrix, right))

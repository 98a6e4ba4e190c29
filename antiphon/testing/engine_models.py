"""Simulated engines whose outcomes can be computed by hand."""

from typing import Any

from antiphon.simulating.engine_model import EngineModel, StepCosts


def clockwork(*, step_s: float = 1.0, **fields: Any) -> EngineModel:
    """Every step takes as long, whatever is in it; nothing else takes any time."""
    whole: dict[str, Any] = {
        "name": "clockwork",
        "model": "none",
        "machine": "none",
        "source": "made up",
        "costs": StepCosts(step_s=step_s, decode_s=0.0, prefill_s=0.0),
        "slots": 1,
        "kv_blocks": 10_000,
        "block_size": 16,
        "step_tokens": 100,
        "turnaround_s": 0.0,
    }
    return EngineModel(**(whole | fields))

"""What a simulated engine is: the costs of its steps, and how much it holds. Read from JSON files
that `antiphon simulate calibrate` writes or that quote published figures; knows no time."""

import math
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from antiphon.errors import SettingsError


class StepCosts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds of one engine step: the sum of these, each times what the step holds."""

    step_s: float
    """Whatever it holds: weights are read once."""
    decode_s: float
    """For each stream that gains a token."""
    prefill_s: float
    """For each token of a prompt."""
    context_s: float = 0.0
    """For each token that the decoding streams have behind them: their keys and values are read."""
    prefill_context_s: float = 0.0
    """For each token of a prompt, and each token of the same prompt before its chunk."""

    def of(
        self, *, decoding: int, context: int, prefill: int = 0, prefill_context: int = 0
    ) -> float:
        """Seconds of a step with so many decoding streams and so many tokens of prompts."""
        return (
            self.step_s
            + self.decode_s * decoding
            + self.context_s * context
            + self.prefill_s * prefill
            + self.prefill_context_s * prefill_context
        )


class EngineModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One replica of one model on one kind of machine."""

    name: str
    model: str
    machine: str
    source: str
    """Where the figures are from, for whoever reads a report."""
    costs: StepCosts
    slots: int
    kv_blocks: int
    block_size: int
    step_tokens: int
    """Tokens a step processes at most: decoding streams first, the rest is for prompts."""
    prefix_cache: bool = True
    spare_cache_tokens: int = 0
    """What is kept of idle conversations beside the KV cache, such as in the host's memory; that it
    takes a moment to bring back is left out."""
    accelerators: int = 0
    """Of one replica, so that a report can count them."""
    turnaround_s: float = 0.001
    """From the engine's word that a slot is free to its next request's arrival there."""
    overhead_s: float = 0.0
    """Of a request to its first token, beside queue and engine: HTTP, tokeniser, the way back."""

    @property
    def kv_tokens(self) -> int:
        return self.kv_blocks * self.block_size


def catalogue() -> tuple[str, ...]:
    """The names of the engine models that come with the program."""
    files = (file.name for file in _folder().iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in files if name.endswith(".json")))


def load_engine(reference: str, **changes: Any) -> EngineModel:
    """An engine model of the catalogue, or of a JSON file; `changes` overlay its fields. Raises
    SettingsError."""
    try:
        if reference in catalogue():
            data = (_folder() / f"{reference}.json").read_bytes()
        else:
            data = Path(reference).read_bytes()
        model = msgspec.json.decode(data, type=EngineModel)
    except OSError as error:
        known = ", ".join(catalogue())
        raise SettingsError(
            "--engine", f"{reference} is none of {known}, and no file: {error.strerror}"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SettingsError("--engine", f"{reference} is no engine model: {error}") from error
    model = msgspec.structs.replace(model, **changes)
    _check(reference, model)
    return model


def encode_engine(model: EngineModel) -> bytes:
    return msgspec.json.format(msgspec.json.encode(model), indent=2) + b"\n"


def _check(reference: str, model: EngineModel) -> None:
    for field in ("slots", "kv_blocks", "block_size", "step_tokens"):
        if getattr(model, field) < 1:
            raise SettingsError("--engine", f"{reference}: {field} must be at least 1")
    seconds: Sequence[float] = (
        *msgspec.structs.astuple(model.costs),
        model.turnaround_s,
        model.overhead_s,
    )
    if not all(math.isfinite(value) and value >= 0 for value in seconds):
        raise SettingsError("--engine", f"{reference}: costs must be finite and not negative")
    if model.costs.of(decoding=1, context=0) <= 0:
        raise SettingsError("--engine", f"{reference}: a step must take time")
    if model.step_tokens <= model.slots:
        # With every slot decoding, no prompt would ever be prefilled.
        raise SettingsError("--engine", f"{reference}: step_tokens must be more than slots")


def _folder() -> Traversable:
    return resources.files("antiphon.simulating") / "engines"

"""`python -m bench.sweep`: what each setting of the OpenVINO engine does to its speed, on the bare
pipeline. Prints Markdown tables.

Variants take turns in processes of their own, forwards and backwards, and each ratio is taken
within a round, so that a machine whose speed drifts slows all alike.

    python -m bench.sweep                                       # all groups
    python -m bench.sweep --group kv --rounds 9
    python -m bench.sweep --group weights --weights int8=/tmp/ir/int8   # see bench/weights.py
"""

import argparse
import contextlib
import os
import random
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from antiphon.engine.config import HostConfig
from antiphon.engine.models import ModelStore, progress_on
from antiphon.hosts import host_config
from antiphon.openvino_settings import OpenVinoSettings
from antiphon.settings import load_settings
from bench.engine import BareEngine, bare_engine

_STREAMS = 32
_TOKENS = 64
_PROMPT, _SHORT, _LONG = 20, 100, 1000
"""Tokens of a prompt among many, and of two kinds of prompts alone."""
_BLOCKS = 500
"""Twice what all streams need at once; the processes of a group share this machine."""
_FIRST_ID = 100
_LAST_ID = 40_000
_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of one variant."""

    tokens_s: float
    short_ms: float
    long_ms: float


@dataclass(frozen=True, slots=True)
class Variant:
    config: HostConfig
    rounds: list[Round] = field(default_factory=list)


def variants(config: HostConfig, group: str, weights: list[str]) -> dict[str, HostConfig]:
    """What a group compares, besides the default: one setting changed in each."""

    def own(**changed: object) -> HostConfig:
        return engine(openvino=msgspec.structs.replace(OpenVinoSettings(), **changed))

    def engine(**changed: object) -> HostConfig:
        return msgspec.structs.replace(config, **changed)

    match group:
        case "weights":
            named = (pair.partition("=") for pair in weights)
            return {name: engine(model_dir=Path(folder)) for name, _, folder in named}
        case "compute":
            precisions = {
                f"openvino.compute_precision = {name}": own(compute_precision=name)
                for name in ("f32", "bf16", "f16")
            }
            groups = {
                f"openvino.activation_group = {size}": own(activation_group=size)
                for size in (0, 64, 128)
            }
            return precisions | groups
        case "kv":
            return {
                "engine.kv_precision = f16": engine(kv_precision="f16"),
                "openvino.kv_group = 32": own(kv_group=32),
                "openvino.kv_group = 16": own(kv_group=16),
            }
        case "step":
            steps = (64, 256, 512, 1024)
            return {f"engine.step_tokens = {size}": engine(step_tokens=size) for size in steps}
        case _:
            return {
                "engine.threads = 1": engine(threads=1),
                "engine.threads = 2": engine(threads=2),
                "openvino.pin_threads = false": own(pin_threads=False),
            }


GROUPS = ("weights", "compute", "kv", "step", "threads")


def measure(configs: dict[str, HostConfig], rounds: int) -> dict[str, Variant]:
    """Load all, let them take turns. A variant that doesn't start is left out, and said so."""
    found: dict[str, Variant] = {}
    engines: dict[str, BareEngine] = {}
    dice = random.Random(1)
    with contextlib.ExitStack() as stack:
        for name, config in configs.items():
            try:
                engines[name] = stack.enter_context(bare_engine(config, _BLOCKS))
            except RuntimeError:
                _say(f"{name}: refused")
                continue
            found[name] = Variant(config)
            one_round(engines[name], dice)
        for index in range(rounds):
            names = list(engines)
            for name in names if index % 2 else reversed(names):
                found[name].rounds.append(one_round(engines[name], dice))
            _say(f"round {index + 1} of {rounds}")
    return found


def one_round(engine: BareEngine, dice: random.Random) -> Round:
    def prompt(length: int) -> list[int]:
        # Different every time, so that no prefix cache answers.
        return [dice.randrange(_FIRST_ID, _LAST_ID) for _ in range(length)]

    many = engine.run_tokens([prompt(_PROMPT) for _ in range(_STREAMS)], _TOKENS)
    short = engine.run_tokens([prompt(_SHORT)], 2)
    long = engine.run_tokens([prompt(_LONG)], 2)
    return Round(many.tokens_s, short.first_s * 1000, long.first_s * 1000)


def markdown(found: dict[str, Variant]) -> str:
    lines = [
        f"| | tokens/s of {_STREAMS} | × | first token of {_SHORT}, ms | × | of {_LONG}, ms | × |",
        "|---|---|---|---|---|---|---|",
    ]
    base = found[_DEFAULT].rounds
    for name, variant in found.items():
        cells = [name]
        for column in ("tokens_s", "short_ms", "long_ms"):
            mine = [getattr(each, column) for each in variant.rounds]
            theirs = [getattr(each, column) for each in base]
            ratio = statistics.median(a / b for a, b in zip(mine, theirs, strict=True))
            cells += [f"{statistics.median(mine):,.0f}", f"{ratio:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--group", choices=GROUPS, action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--weights", metavar="NAME=FOLDER", action="append", default=[], help="of an OpenVINO IR"
    )
    options = parser.parse_args()
    settings = load_settings(None, os.environ)
    model = ModelStore(settings.data_dir).ensure(settings.model, progress_on(sys.stderr))
    config = host_config(settings, model)
    for group in options.group or GROUPS:
        others = variants(config, group, options.weights)
        if others:
            _say(f"{group}: {len(others)} beside the default")
            found = measure({_DEFAULT: config} | others, options.rounds)
            sys.stdout.write(f"\n{group}\n\n{markdown(found)}\n")
            sys.stdout.flush()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()

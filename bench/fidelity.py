"""`python -m bench.fidelity`: does the simulator tell what the real pool does?

The real server is given open loops of requests, of two kinds in turn, so that a machine whose speed
drifts slows both alike. An engine model is fitted to the runs of the first kind; those of the
second, other requests with a burst among them, are then simulated by it, and must come out as
measured.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from antiphon.settings import load_settings
from antiphon.simulating.engine_model import EngineModel, encode_engine, load_engine
from antiphon.simulating.simulation import Setup
from antiphon.simulating.trace import encode_arrivals
from antiphon.testing.process import ServerProcess, running_server
from bench.figure import Figure, at_most, explains, quantile, table
from bench.fitting import fitted, simulated
from bench.neighbours import Neighbours
from bench.openloop import Run, mean_answer, plan, run_plan

_WITHIN = 0.15
_ENVIRONMENT = {
    # Nobody is refused, so that both runs are of the same requests.
    "ANTIPHON_SCHEDULING_INTERACTIVE_OBJECTIVE_S": "0",
    "ANTIPHON_SCHEDULING_LONG_OBJECTIVE_S": "0",
    "ANTIPHON_QUEUE_MAX_REQUESTS": "2000",
    "ANTIPHON_QUEUE_MAX_TOKENS": "2000000",
}
_DISTURBED = 0.08
"""Others may have used this part of the machine in a round that counts."""
_LOOK_S = 2.0
_LOAD = 0.6
"""Of what the pool can do, outside the burst."""
_BURST = 1.6
_STEADY = 0.72
"""The same work, without a burst."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.fidelity", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of arrivals, in each run")
    parser.add_argument("--rounds", type=int, default=4, help="of a run of each kind")
    parser.add_argument("--patience", type=float, default=900.0, help="until others are quiet")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    parser.add_argument("--engine", type=Path, help="write the fitted engine model there")
    options = parser.parse_args()
    with running_server(**_ENVIRONMENT) as server:
        [ready] = server.log.events("engine_ready")
        learn: list[Run] = []
        test: list[Run] = []
        capacity, turn = 0.0, 0
        deadline = time.monotonic() + options.patience
        while len(learn) < options.rounds and time.monotonic() < deadline:
            if not _is_idle():
                continue
            turn += 1
            neighbours = Neighbours()
            capacity = max(capacity, _capacity(server, turn))
            rate = capacity / mean_answer(plan(rate=100, seconds=100, seed=0))
            seed = options.seed + 2 * len(learn)
            plans = (
                plan(rate=_STEADY * rate, seconds=options.seconds, seed=seed),
                plan(rate=_LOAD * rate, seconds=options.seconds, seed=seed + 1, burst=_BURST),
            )
            pair = [run_plan(server, each, name=f"{turn}-{len(each)}") for each in plans]
            disturbed = neighbours.share()
            print(
                f"{len(pair[0])} and {len(pair[1])} requests at {capacity:,.0f} tokens/s, "
                f"{disturbed:.0%} of the machine used by others",
                file=sys.stderr,
                flush=True,
            )
            if disturbed <= _DISTURBED:
                learn.append(pair[0])
                test.append(pair[1])
    if not learn:
        print("the machine was never idle enough", file=sys.stderr)
        return 2
    settings = load_settings(None, os.environ | _ENVIRONMENT)
    engine = msgspec.structs.replace(
        load_engine("cpu-openvino"),
        slots=ready["slots"],
        kv_blocks=ready["kv_blocks"],
        step_tokens=settings.engine.step_tokens,
    )
    setup = Setup(
        engine=engine,
        scheduling=settings.scheduling,
        queue=settings.queue,
        generation=settings.generation,
        admission=False,
    )
    engine = fitted(setup, learn)
    engine = msgspec.structs.replace(
        engine,
        model=ready["model"],
        machine=f"{platform.machine()}, {os.cpu_count()} cores",
        source=f"fitted by bench.fidelity to {sum(map(len, learn))} requests of the real server "
        f"with {ready['engine']} {ready['engine_version']}, {datetime.now(UTC):%Y-%m-%d}",
    )
    if options.engine is not None:
        options.engine.write_bytes(encode_engine(engine))
    figures = [
        *_compared("learned", setup, engine, learn, None),
        *_compared("foretold", setup, engine, test, _WITHIN),
    ]
    held = all(figure.holds is not False for figure in figures)
    print(table(figures))
    print(f"saved as {_save(figures, held, options.out, learn=learn, test=test)}")
    return 0 if held else 1


def _save(figures: Sequence[Figure], held: bool, folder: Path, **kinds: Sequence[Run]) -> Path:
    """The figures, and beside them each run as a trace for `antiphon simulate trace`."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    folder.mkdir(parents=True, exist_ok=True)
    results = {"at": at, "holds": held, "figures": [figure.as_json() for figure in figures]}
    file = folder / f"fidelity-{at.replace(':', '')}.json"
    file.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, runs in kinds.items():
        for number, run in enumerate(runs):
            lines = encode_arrivals(each.arrival for each in run)
            file.with_name(f"{file.stem}-{name}-{number}.jsonl").write_bytes(b"".join(lines))
    return file


def _is_idle() -> bool:
    neighbours = Neighbours()
    time.sleep(_LOOK_S)
    return neighbours.share() <= _DISTURBED


def _capacity(server: ServerProcess, turn: int) -> float:
    """Tokens/s with every slot in use, the first run only to warm up."""
    for seconds in (0.5, 1.0):
        crowd = plan(rate=64, seconds=seconds, seed=0)
        served = run_plan(server, crowd, name=f"capacity-{turn}-{seconds}")
    return _tokens_s([served])


def _compared(
    name: str, setup: Setup, engine: EngineModel, runs: Sequence[Run], bound: float | None
) -> list[Figure]:
    told = [simulated(msgspec.structs.replace(setup, engine=engine), run) for run in runs]
    figures = []
    for what, unit, of in (
        ("tokens/s", "tokens/s", _tokens_s),
        ("first token p50", "s", lambda runs: quantile(_first_s(runs), 0.5)),
        ("first token p99", "s", lambda runs: quantile(_first_s(runs), 0.99)),
    ):
        figures += [
            explains(f"{name}: {what}, measured", of(runs), unit),
            explains(f"{name}: {what}, simulated", of(told), unit),
        ]
        error = abs(of(told) / of(runs) - 1)
        title = f"{name}: {what}, off by"
        figures.append(explains(title, error) if bound is None else at_most(title, error, bound))
    return figures


def _first_s(runs: Sequence[Run]) -> list[float]:
    return [each.first_s for run in runs for each in run]


def _tokens_s(runs: Sequence[Run]) -> float:
    """Each run from its first arrival to its last end."""
    tokens = sum(each.arrival.output_tokens for run in runs for each in run)
    lasted = (
        max(each.ended_at for each in run) - min(each.arrival.at for each in run) for run in runs
    )
    return tokens / sum(lasted)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench.million`: how long the simulator takes for a million requests, with everything
on: fair lanes, prefix caches, predicted times to first token, routing over replicas."""

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from antiphon.settings import QueueSettings
from antiphon.simulating.engine_model import load_engine
from antiphon.simulating.load_models import HUNDRED_MILLION, arrivals
from antiphon.simulating.report import report_of
from antiphon.simulating.report_text import table
from antiphon.simulating.scenario import promised
from antiphon.simulating.simulation import Setup, simulate
from bench.figure import at_most, explains
from bench.figure import table as figures_table

_WITHIN_S = 120.0
_REPLICAS = 16
_RATE = 26.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.million", description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    options = parser.parse_args()
    setup = Setup(
        engine=load_engine("llama-3.3-70b-2xh100"),
        replicas=_REPLICAS,
        scheduling=promised(HUNDRED_MILLION, Setup(engine=load_engine("cpu-openvino")).scheduling),
        queue=QueueSettings(max_requests=1000),
        between_s=HUNDRED_MILLION.between_tokens_s,
        highest_priority=1,
    )
    coming = arrivals(HUNDRED_MILLION, rate=_RATE, seconds=options.requests, seed=1)
    wall, cpu = time.perf_counter(), time.process_time()
    outcome = simulate(setup, islice(coming, options.requests))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(table(report_of(outcome, HUNDRED_MILLION.name)))
    scale = 1_000_000 / options.requests
    figures = [
        at_most("a million requests", wall * scale, _WITHIN_S, "s"),
        explains("of processor time", cpu * scale, "s"),
        explains("a request", wall / options.requests * 1e6, "µs"),
    ]
    print(figures_table(figures))
    at = datetime.now(UTC).isoformat(timespec="seconds")
    options.out.mkdir(parents=True, exist_ok=True)
    results = {"at": at, "figures": [figure.as_json() for figure in figures]}
    file = options.out / f"million-{at.replace(':', '')}.json"
    file.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if all(figure.holds is not False for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())

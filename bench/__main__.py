"""`make bench`: memory, throughput, times to first token and hang-ups, alone and beside others,
each with what is required of it.

The server and the bare engine are both loaded and take turns, so that a machine whose speed drifts
slows both alike. Prints a table, saves it as JSON, and exits with 1 when a figure does not hold.
"""

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from antiphon import __version__
from antiphon.engine.models import ModelStore, progress_on
from antiphon.hosts import host_config
from antiphon.settings import load_settings
from antiphon.testing.databases import private_postgres
from antiphon.testing.process import ServerProcess, running_server
from bench.engine import bare_engine, lone_request, throughput
from bench.figure import Figure, table
from bench.growth import growth
from bench.hangup import hang_ups
from bench.llama import llama
from bench.memory import memory
from bench.stored import stored
from bench.turns import turns

_PARTS = ("memory", "throughput", "lone", "turns", "llama", "hangup", "stored", "growth")
"""In this order: memory at rest is that of a server which did nothing yet."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", choices=_PARTS, action="append", help="leave out the others")
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    options = parser.parse_args()
    parts = options.only or _PARTS
    figures = []
    if set(parts) - {"growth"}:
        with running_server() as server:
            figures += _measure(server, parts)
    if "stored" in parts:
        with (
            private_postgres(hasty=False) as postgres,
            running_server(ANTIPHON_DATABASE_URL=postgres.fresh()) as server,
        ):
            figures += _told("storage, PostgreSQL", stored(server, "PostgreSQL"))
    if "growth" in parts:
        figures += _told("growth", growth())
    held = all(figure.holds is not False for figure in figures)
    print(table(figures))
    print(f"saved as {_save(figures, held, options.out)}")
    return 0 if held else 1


def _measure(server: ServerProcess, parts: tuple[str, ...] | list[str]) -> list[Figure]:
    figures: list[Figure] = []
    if "memory" in parts:
        figures += _told("memory", memory(server))
    if "throughput" in parts or "lone" in parts:
        settings = load_settings(None, os.environ)  # what the server was started with
        model = ModelStore(settings.data_dir).ensure(settings.model, progress_on(sys.stderr))
        [ready] = server.log.events("engine_ready")
        # The host's own configuration, so that only what is around the pipeline differs.
        with bare_engine(host_config(settings, model), ready["kv_blocks"]) as bare:
            if "throughput" in parts:
                figures += _told("throughput", throughput(server, bare))
            if "lone" in parts:
                figures += _told("lone request", lone_request(server, bare))
    if "turns" in parts:
        figures += _told("second turns", turns(server))
    if "llama" in parts:
        figures += _told("llama-server", llama(server))
    if "hangup" in parts:
        figures += _told("hang-ups", hang_ups(server))
    if "stored" in parts:
        figures += _told("storage, SQLite", stored(server, "SQLite"))
    return figures


def _told(part: str, figures: list[Figure]) -> list[Figure]:
    print(f"{part}: measured", file=sys.stderr, flush=True)
    return figures


def _save(figures: list[Figure], held: bool, folder: Path) -> Path:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    results = {
        "at": at,
        "version": __version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}",
        "holds": held,
        "figures": [figure.as_json() for figure in figures],
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{at.replace(':', '')}.json"
    file.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


if __name__ == "__main__":
    sys.exit(main())

"""`make chaos-live`: a real server with the real model under Locust's load, while its engine host
is killed and hung and its children are restarted by command.

    python -m chaos.live --seconds 180

Reports availability and recovery times, and ends with status 1 when a request hung, a slot leaked,
a request is unaccounted for, or the tree did not settle.
"""

import argparse
import csv
import os
import random
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from antiphon.testing.process import ServerProcess, running_server

_FAULT_EVERY_S = 15.0
_SILENCE_S = 3.0
_RECOVERY_S = 30.0
_USERS = 12
_LOCUSTFILE = Path(__file__).parent.parent / "load" / "locustfile.py"


@dataclass(slots=True, kw_only=True)
class Report:
    """What the run came to; `problems` is empty when every rule held."""

    faults: Counter[str] = field(default_factory=Counter)
    recoveries_s: list[float] = field(default_factory=list)
    sent: int = 0
    failed: int = 0
    problems: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    token = secrets.token_urlsafe(24)
    settings = {
        "ANTIPHON_OPS_TOKEN": token,
        "ANTIPHON_ENGINE_SILENCE_S": str(_SILENCE_S),
        "ANTIPHON_LOG_LEVEL": "info",
    }
    with tempfile.TemporaryDirectory() as folder, running_server(**settings) as server:
        report = _run(server, token, options.seconds, random.Random(options.seed), Path(folder))
    _print(report, options.seconds)
    return 1 if report.problems else 0


def _run(
    server: ServerProcess, token: str, seconds: int, dice: random.Random, folder: Path
) -> Report:
    report = Report()
    load = _start_load(server, seconds, folder / "load")
    began = time.monotonic()
    try:
        while time.monotonic() - began < seconds - _FAULT_EVERY_S - _RECOVERY_S:
            time.sleep(_FAULT_EVERY_S)
            _attack(server, token, dice, report)
        load.wait(seconds + 120)
    except subprocess.TimeoutExpired:
        report.problems.append("the load did not end: a request hangs")
    finally:
        load.kill()
    _account(server, folder / "load", report)
    return report


def _start_load(server: ServerProcess, seconds: int, csv_prefix: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "locust", "-f", str(_LOCUSTFILE), "--headless"),
            *("-u", str(_USERS), "-r", "4", "-t", f"{seconds}s", "--stop-timeout", "60"),
            *("--host", f"http://{server.api[0]}:{server.api[1]}", "--csv", str(csv_prefix)),
            *("--only-summary", "--exit-code-on-error", "0"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _attack(server: ServerProcess, token: str, dice: random.Random, report: Report) -> None:
    fault = dice.choice(
        ("kill host", "hang host", "restart driver", "restart scheduler", "restart api")
    )
    report.faults[fault] += 1
    hosts = [line["pid"] for line in server.log.events("engine_ready")]
    pid = hosts[-1]
    began = time.monotonic()
    match fault:
        case "kill host":
            os.kill(pid, signal.SIGKILL)
        case "hang host":
            os.kill(pid, signal.SIGSTOP)
        case _:
            path = {
                "restart driver": "root/pools/pool:smollm2-135m-instruct/driver",
                "restart scheduler": "root/pools/pool:smollm2-135m-instruct/scheduler",
                "restart api": "root/http:api",
            }[fault]
            status, body = server.command("restart", path, token)
            if status != 200:
                report.problems.append(f"{fault}: {status} {body}")
    if fault in {"kill host", "hang host"}:
        server.log.wait_for(
            "engine_ready", within_s=_RECOVERY_S, matching=lambda line: line["pid"] not in hosts
        )
        report.recoveries_s.append(time.monotonic() - began)


def _account(server: ServerProcess, csv_prefix: Path, report: Report) -> None:
    """Every request that was sent has one answer, and the server is at rest again."""
    with Path(f"{csv_prefix}_stats.csv").open() as file:
        rows = {row["Name"]: row for row in csv.DictReader(file) if row["Type"] == "POST"}
    report.sent = sum(int(row["Request Count"]) for row in rows.values())
    report.failed = sum(int(row["Failure Count"]) for row in rows.values())
    busy = [slot for slot in server.slots() if slot["state"] != "free"]
    if busy:
        report.problems.append(f"{len(busy)} slots leaked: {busy}")
    if server.get("/health/ready")[0] != 200:
        report.problems.append("not ready after the run")
    settled = {path: node["state"] for path, node in server.tree().items() if node["state"] != "up"}
    if settled:
        report.problems.append(f"children that are not up: {settled}")
    answered = [
        line
        for line in server.log.events("request_finished")
        if line["route"] == "/v1/chat/completions"
    ]
    unnamed = [line for line in answered if line["status"] is None]
    if unnamed:
        report.problems.append(f"{len(unnamed)} requests without a status")
    # A connection refused while the API child restarts is the client's to count, not the server's.
    if len(answered) < report.sent - report.failed:
        report.problems.append(
            f"{report.sent} sent, {report.failed} failed, {len(answered)} logged"
        )


def _print(report: Report, seconds: int) -> None:
    available = 1 - report.failed / max(report.sent, 1)
    print(f"{seconds} s of load: {report.sent} requests, {report.failed} failed")
    print(f"availability {available:.1%}")
    print("faults:", ", ".join(f"{name} {count}" for name, count in report.faults.items()))
    if report.recoveries_s:
        print(
            f"engine back after {statistics.median(report.recoveries_s):.1f} s in the median, "
            f"{max(report.recoveries_s):.1f} s at the most"
        )
    for problem in report.problems:
        print("PROBLEM", problem)


if __name__ == "__main__":
    sys.exit(main())

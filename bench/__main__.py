"""`make bench`: throughput, time to first token, hang-ups and memory, as ratios within one run.

The bare engine and the server are both loaded and take turns, so that a machine whose speed drifts
slows both alike. Prints a table and saves it as JSON under bench-results/.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import psutil

from antiphon.engine.chat import load_chat_tokenizer
from antiphon.engine.models import ModelStore, PreparedModel, progress_on
from antiphon.events import Message
from antiphon.settings import load_settings
from antiphon.testing.process import ServerProcess, running_server
from bench.client import Call, chat_body, run
from bench.hangup import hang_ups

_STREAMS = 32
_TOKENS = 64
_ROUNDS = 5
_LONE_ROUNDS = 15


class Bare:
    """The bare engine's process and its line protocol."""

    def __init__(self, model: PreparedModel, kv_blocks: int) -> None:
        settings = load_settings(None, {}).engine
        self._tokenizer = load_chat_tokenizer(model.folder)
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bench.bare",
                str(model.folder),
                str(kv_blocks),
                msgspec.json.encode(settings).decode(),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError("the bare engine did not start")

    def run(self, contents: list[str], max_tokens: int) -> dict[str, Any]:
        prompts = [
            self._tokenizer.encode_chat([Message(role="user", content=content)])
            for content in contents
        ]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"prompts": prompts, "max_tokens": max_tokens}) + "\n")
        self._process.stdin.flush()
        result: dict[str, Any] = json.loads(self._process.stdout.readline())
        return result

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


def through_http(
    server: ServerProcess, contents: list[str], max_tokens: int, name: str
) -> dict[str, Any]:
    calls = [
        Call(
            chat_body(content, max_tokens=max_tokens, ignore_eos=True, seed=index),
            f"{name}-{index}",
        )
        for index, content in enumerate(contents)
    ]
    started = time.monotonic()
    run(server.api, calls, within_s=120)
    wall_s = time.monotonic() - started
    first = min(call.first_text_at or float("inf") for call in calls) - started
    return {
        "tokens": sum(call.completion_tokens() for call in calls),
        "wall_s": wall_s,
        "first_s": first,
        "events": sum(call.texts for call in calls),
    }


def contents(label: str, count: int) -> list[str]:
    return [
        f"{label} {index}: tell me a story about the number {7 * index}." for index in range(count)
    ]


def throughput(server: ServerProcess, bare: Bare) -> dict[str, Any]:
    """Tokens/s of both, in turn; the ratio is taken pair by pair."""
    rows = []
    through_http(server, contents("warm", _STREAMS), 8, "warm")
    bare.run(contents("warm", _STREAMS), 8)
    for index in range(_ROUNDS):
        alone = bare.run(contents(f"round {index}", _STREAMS), _TOKENS)
        served = through_http(server, contents(f"round {index}", _STREAMS), _TOKENS, f"t{index}")
        assert alone["tokens"] == served["tokens"] == _STREAMS * _TOKENS, (alone, served)
        rows.append((alone["tokens"] / alone["wall_s"], served["tokens"] / served["wall_s"]))
    return {
        "bare_tokens_s": statistics.median(row[0] for row in rows),
        "http_tokens_s": statistics.median(row[1] for row in rows),
        "ratios": [round(row[1] / row[0], 3) for row in rows],
        "ratio_median": statistics.median(row[1] / row[0] for row in rows),
    }


def lone_request(server: ServerProcess, bare: Bare) -> dict[str, Any]:
    """Time to first token of one request alone, in turn with the bare engine."""
    pairs = []
    for index in range(_LONE_ROUNDS):
        [content] = contents(f"alone {index}", 1)
        alone = bare.run([content], 8)
        served = through_http(server, [content], 8, f"l{index}")
        pairs.append((alone["first_s"], served["first_s"]))
    return {
        "bare_first_token_s": statistics.median(pair[0] for pair in pairs),
        "http_first_token_s": statistics.median(pair[1] for pair in pairs),
        "extra_s_median": statistics.median(pair[1] - pair[0] for pair in pairs),
    }


def memory(server: ServerProcess, *, requests: int, at_once: int) -> dict[str, Any]:
    """Resident memory of the server process, its host not counted, at rest and after requests."""
    process = psutil.Process(server.process.pid)
    at_rest = process.memory_info().rss
    _short_requests(server, requests // 4, at_once, "warm")
    before = process.memory_info().rss
    _short_requests(server, requests, at_once, "mem")
    after = process.memory_info().rss
    mib = 1024 * 1024
    return {
        "at_rest_mb": at_rest / 1e6,
        "after_warm_up_mb": before / 1e6,
        "after_mb": after / 1e6,
        "growth_mb": (after - before) / 1e6,
        "requests": requests,
        "host_mb": sum(child.memory_info().rss for child in process.children()) / mib,
    }


def _short_requests(server: ServerProcess, count: int, at_once: int, name: str) -> None:
    for begin in range(0, count, at_once):
        calls = [
            Call(chat_body(f"{name} {begin + index}", max_tokens=2), f"{name}-{begin + index}")
            for index in range(min(at_once, count - begin))
        ]
        run(server.api, calls, within_s=60)
        if failed := [call for call in calls if call.status != 200]:
            raise RuntimeError(bytes(failed[0].raw[:500]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", choices=["throughput", "lone", "hangup", "memory"], action="append"
    )
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    options = parser.parse_args()
    wanted = options.only or ["memory", "throughput", "lone", "hangup"]
    settings = load_settings(None, {})
    model = ModelStore(settings.data_dir).ensure(settings.model, progress_on(sys.stderr))
    results: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    with running_server() as server:
        if "memory" in wanted:
            results["memory"] = memory(server, requests=2000, at_once=16)
        if "throughput" in wanted or "lone" in wanted:
            [ready] = server.log.events("engine_ready")
            bare = Bare(model, ready["kv_blocks"])
            if "throughput" in wanted:
                results["throughput"] = throughput(server, bare)
            if "lone" in wanted:
                results["lone_request"] = lone_request(server, bare)
            bare.close()
        if "hangup" in wanted:
            results["hang_ups"] = hang_ups(server, count=200, at_once=16, seed=1)
    print(json.dumps(results, indent=2))
    options.out.mkdir(exist_ok=True)
    file = options.out / f"{results['at'].replace(':', '')}.json"
    file.write_text(json.dumps(results, indent=2) + "\n")
    print(f"saved as {file}")


if __name__ == "__main__":
    main()

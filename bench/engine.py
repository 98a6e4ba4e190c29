"""The server against the bare engine: throughput of many streams, first token of one."""

import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import msgspec

from antiphon.engine.chat import load_chat_tokenizer
from antiphon.engine.config import HostConfig, encode_config
from antiphon.events import Message
from antiphon.ports import ChatTokenizer
from antiphon.testing.process import ServerProcess
from bench.client import Call, chat_body, run
from bench.figure import Figure, at_least, at_most, explains

_STREAMS = 32
_TOKENS = 64
_ROUNDS = 5
_LONE_ROUNDS = 15
_LONE_TOKENS = 8
_WITHIN_S = 120.0


class Sample(msgspec.Struct, frozen=True):
    """One job's outcome, from either side: tokens, seconds to the last and to the first."""

    tokens: int
    wall_s: float
    first_s: float

    @property
    def tokens_s(self) -> float:
        return self.tokens / self.wall_s


@dataclass(frozen=True, slots=True)
class BareEngine:
    """The bare engine's process, which speaks lines of JSON."""

    tokenizer: ChatTokenizer
    jobs: IO[str]
    results: IO[str]

    def run(self, contents: list[str], max_tokens: int) -> Sample:
        """All at once. Their token ids are made before the clock starts."""
        prompts = [
            self.tokenizer.encode_chat([Message(role="user", content=content)])
            for content in contents
        ]
        return self.run_tokens(prompts, max_tokens)

    def run_tokens(self, prompts: list[list[int]], max_tokens: int) -> Sample:
        """The same of prompts that are token ids."""
        self.jobs.write(json.dumps({"prompts": prompts, "max_tokens": max_tokens}) + "\n")
        self.jobs.flush()
        return msgspec.json.decode(self.results.readline(), type=Sample)


@contextmanager
def bare_engine(config: HostConfig, kv_blocks: int) -> Iterator[BareEngine]:
    """Load a model in a process of its own; idle, it costs memory only. Raises RuntimeError."""
    arguments = [encode_config(config), str(kv_blocks)]
    with subprocess.Popen(
        [sys.executable, "-m", "bench.bare", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the bare engine did not start")
        yield BareEngine(load_chat_tokenizer(config.model_dir), process.stdin, process.stdout)
        process.stdin.close()  # its end; leaving the block waits for it


def throughput(server: ServerProcess, bare: BareEngine) -> list[Figure]:
    """Tokens/s of both, in turn; the ratio is taken pair by pair, so that drift cancels out."""
    _through_http(server, _contents("warm", _STREAMS), 8, "warm")
    bare.run(_contents("warm", _STREAMS), 8)
    pairs = []
    for index in range(_ROUNDS):
        contents = _contents(f"round {index}", _STREAMS)
        alone = bare.run(contents, _TOKENS)
        served = _through_http(server, contents, _TOKENS, f"throughput-{index}")
        if not alone.tokens == served.tokens == _STREAMS * _TOKENS:
            raise RuntimeError(f"unequal work: {alone} {served}")
        pairs.append((alone.tokens_s, served.tokens_s))
    ratios = [served / alone for alone, served in pairs]
    return [
        at_least(f"throughput ratio, median of {_ROUNDS}", statistics.median(ratios), 0.90),
        explains("throughput ratio, lowest", min(ratios)),
        explains("throughput ratio, highest", max(ratios)),
        explains("bare engine", statistics.median(alone for alone, _ in pairs), "tokens/s"),
        explains("through HTTP", statistics.median(served for _, served in pairs), "tokens/s"),
    ]


def lone_request(server: ServerProcess, bare: BareEngine) -> list[Figure]:
    """Time to first token of one request alone, in turn with the bare engine."""
    pairs = []
    for index in range(_LONE_ROUNDS):
        contents = _contents(f"alone {index}", 1)
        alone = bare.run(contents, _LONE_TOKENS)
        served = _through_http(server, contents, _LONE_TOKENS, f"lone-{index}")
        pairs.append((alone.first_s * 1000, served.first_s * 1000))
    extra = statistics.median(served - alone for alone, served in pairs)
    return [
        at_most("lone request, extra to first token", extra, 15, "ms"),
        explains("lone request, bare", statistics.median(alone for alone, _ in pairs), "ms"),
        explains("lone request, HTTP", statistics.median(served for _, served in pairs), "ms"),
    ]


def _through_http(server: ServerProcess, contents: list[str], max_tokens: int, name: str) -> Sample:
    calls = [
        Call(
            chat_body(content, max_tokens=max_tokens, ignore_eos=True, seed=index),
            f"{name}-{index}",
        )
        for index, content in enumerate(contents)
    ]
    started = time.monotonic()
    run(server.api, calls, within_s=_WITHIN_S)
    wall_s = time.monotonic() - started
    first_at = min((call.first_text_at for call in calls if call.first_text_at), default=math.nan)
    tokens = sum(call.completion_tokens() for call in calls)
    return Sample(tokens=tokens, wall_s=wall_s, first_s=first_at - started)


def _contents(label: str, count: int) -> list[str]:
    """Different in every round, so that no prefix cache answers for the engine."""
    return [
        f"{label} {index}: tell me a story about the number {7 * index}." for index in range(count)
    ]

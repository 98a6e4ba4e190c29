"""The same GGUF file behind this server and behind llama-server (package `xllamacpp`), the same
client, in turn: 32 simultaneous answers."""

import contextlib
import math
import statistics
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from antiphon.testing.llama import running_llama
from antiphon.testing.process import ServerProcess
from bench.client import Call, chat_body, run
from bench.figure import Figure, at_least, explains

_STREAMS = 32
_TOKENS = 64
_ROUNDS = 5
_WITHIN_S = 300.0
_SAMPLING = {"temperature": 0.2, "top_p": 0.9, "ignore_eos": True}
_KINDS = {
    "a slot for each": (_STREAMS, 512),
    # What it starts with when it is told nothing.
    "its own four slots": (4, 4096),
}
"""Slots, and tokens of context for each of them. All threads in both, continuous batching."""


def llama(server: ServerProcess) -> list[Figure]:
    """Tokens/s of each in every round; a ratio is taken within its round."""
    with _llama_servers() as addresses:
        addresses = {"here": server.api} | addresses
        for name, address in addresses.items():
            _tokens_s(address, f"warm {name}")
        found: dict[str, list[float]] = {name: [] for name in addresses}
        for index in range(_ROUNDS):
            for name, address in addresses.items():
                found[name].append(_tokens_s(address, f"round {index} {name}"))
    here = found.pop("here")
    figures = [explains("llama: this server", statistics.median(here), "tokens/s")]
    for name, theirs in found.items():
        ratios = [mine / other for mine, other in zip(here, theirs, strict=True)]
        figures += [
            at_least(f"times llama-server, {name}", statistics.median(ratios), 3.0),
            explains(f"times llama-server, {name}, lowest", min(ratios)),
            explains(f"llama-server, {name}", statistics.median(theirs), "tokens/s"),
        ]
    return figures


@contextlib.contextmanager
def _llama_servers() -> Iterator[dict[str, tuple[str, int]]]:
    """All loaded at once; idle, they cost memory only."""
    with contextlib.ExitStack() as stack:
        addresses = {}
        for name, (slots, window) in _KINDS.items():
            other = stack.enter_context(running_llama(slots=slots, window=window))
            url = urlsplit(other.base_url)
            assert url.hostname is not None
            assert url.port is not None
            addresses[name] = (url.hostname, url.port)
        yield addresses


def _tokens_s(address: tuple[str, int], label: str) -> float:
    calls = [
        Call(
            chat_body(
                f"{label} {index}: tell me a story about the number {7 * index}.",
                max_tokens=_TOKENS,
                seed=index,
                **_SAMPLING,
            ),
            f"llama-{label.replace(' ', '-')}-{index}",
        )
        for index in range(_STREAMS)
    ]
    started = time.monotonic()
    run(address, calls, within_s=_WITHIN_S)
    wall_s = time.monotonic() - started
    tokens = sum(call.completion_tokens() for call in calls)
    if tokens != _STREAMS * _TOKENS:
        raise RuntimeError(f"{label}: {tokens} tokens; {bytes(calls[0].raw[-300:])!r}")
    return tokens / wall_s if wall_s else math.nan

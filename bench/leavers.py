"""Clients that hang up: streams of which each may be closed at a moment of its own."""

import selectors
import time
from collections.abc import Iterable
from dataclasses import dataclass

from bench.client import Call, start, take

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Client:
    """`stays_s` None reads its answer to the end."""

    call: Call
    stays_s: float | None = None


@dataclass(slots=True)
class _Stream:
    client: Client
    leaves_at: float


def run_clients(address: Address, clients: Iterable[Client], *, at_once: int) -> dict[str, float]:
    """Keep so many streams open until there are no more clients. When each of those that left did
    so, by request id (CLOCK_MONOTONIC). Raises RuntimeError when a stream ends before its client
    leaves."""
    left: dict[str, float] = {}
    waiting = iter(clients)
    with selectors.DefaultSelector() as selector:
        more = True
        while more or selector.get_map():
            while more and len(selector.get_map()) < at_once:
                client = next(waiting, None)
                if client is None:
                    more = False
                else:
                    _begin(address, client, selector)
            if selector.get_map():
                _take_some(selector)
                _leave(selector, left)
    return left


def _begin(address: Address, client: Client, selector: selectors.BaseSelector) -> None:
    start(address, client.call)
    assert client.call.sock is not None
    stays_s = float("inf") if client.stays_s is None else client.stays_s
    stream = _Stream(client, time.monotonic() + stays_s)
    selector.register(client.call.sock, selectors.EVENT_READ, stream)


def _take_some(selector: selectors.BaseSelector) -> None:
    leaves_at = min(key.data.leaves_at for key in selector.get_map().values())
    wait_s = min(1.0, max(0.0, leaves_at - time.monotonic()))
    for key, _ in selector.select(timeout=wait_s):
        client = key.data.client
        if not take(client.call):
            if client.stays_s is not None:
                raise RuntimeError(f"a stream ended early: {bytes(client.call.raw[-300:])!r}")
            selector.unregister(key.fileobj)


def _leave(selector: selectors.BaseSelector, left: dict[str, float]) -> None:
    now = time.monotonic()
    for key in list(selector.get_map().values()):
        call = key.data.client.call
        if key.data.leaves_at <= now and call.sock is not None:
            selector.unregister(call.sock)
            left[call.request_id] = time.monotonic()
            call.sock.close()

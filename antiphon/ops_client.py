"""A running server as its operations listener shows it, and commands to it.

It talks to a server from outside, in JSON, and shares no state with it. Unknown fields are ignored,
so that a server may be newer than the one who looks at it.
"""

import http.client
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from antiphon.errors import OpsRefused, OpsUnreachable
from antiphon.plain import plain

_LOOK_S = 3.0
_COMMAND_S = 30.0
"""The server may have its settings on a slow disk."""
_BODY_BYTES = 64 * 1024 * 1024
"""More than the largest tree; a wrong address may send without end."""

Address = tuple[str, int]
T = TypeVar("T")


class Box(msgspec.Struct, frozen=True):
    """What is drawn of a mailbox."""

    depth: int
    system_depth: int
    capacity: int
    peak: int
    dropped: int
    current: str | None
    current_age_s: float | None


class Exit(msgspec.Struct, frozen=True):
    """How the previous incarnation ended."""

    kind: str
    text: str
    age_s: float


class Child(msgspec.Struct, frozen=True):
    """A node of the tree."""

    path: str
    state: str
    incarnation: int
    restarts: int
    last_exit: Exit | None
    uptime_s: float | None
    mailbox: Box | None = None
    strategy: str | None = None
    restarts_in_window: int | None = None
    intensity: int | None = None
    period_s: float | None = None
    children: tuple["Child", ...] = ()


class Slot(msgspec.Struct, frozen=True):
    """A decode slot; the age is the time since it was granted."""

    slot: int
    state: str
    request_id: str | None
    tokens: int
    age_s: float
    model: str = ""


class Loop(msgspec.Struct, frozen=True):
    """Trio's event loop."""

    tasks: int
    runnable: int
    threads: int
    worker_threads: int
    loop_lag_s: float
    loop_lag_max_s: float


class Circuit(msgspec.Struct, frozen=True):
    """A circuit breaker; calls pass while there is no time to wait for."""

    name: str
    circuit: str
    failures_in_row: int
    retry_after_s: float | None


class Readiness(msgspec.Struct, frozen=True):
    """Whether the server should get traffic, and why not."""

    status: str
    reasons: tuple[str, ...]


class Change(msgspec.Struct, frozen=True):
    """A setting that is not what it was when the server read it last."""

    key: str
    needs: str | None


class _Changes(msgspec.Struct, frozen=True):
    changes: tuple[Change, ...]


class _Problem(msgspec.Struct, frozen=True):
    message: str


class _Refusal(msgspec.Struct, frozen=True):
    error: _Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at a server."""

    address: str
    readiness: Readiness
    tree: Child
    slots: tuple[Slot, ...]
    loop: Loop
    breakers: tuple[Circuit, ...] = ()


def fetch(address: Address) -> Sample:
    """One look. Raises OpsUnreachable."""
    with _connected(address, _LOOK_S) as connection:
        return Sample(
            address=_name(address),
            readiness=_get(connection, "/health/ready", Readiness, also=503),
            tree=_get(connection, "/ops/tree", Child),
            slots=_get(connection, "/ops/slots", tuple[Slot, ...]),
            loop=_get(connection, "/ops/runtime", Loop),
            breakers=_get(connection, "/ops/breakers", tuple[Circuit, ...]),
        )


def ask_to_reload(address: Address, token: str | None) -> tuple[Change, ...]:
    """Have the server read its settings again. Raises OpsUnreachable, and OpsRefused with what the
    server says."""
    return command(address, token, "/ops/reload", _Changes).changes


def look(address: Address, path: str, kind: type[T]) -> T:
    """What a page shows. Raises OpsUnreachable, OpsRefused."""
    with _connected(address, _LOOK_S) as connection:
        connection.request("GET", path)
        return _answer(address, connection, kind)


def command(
    address: Address, token: str | None, path: str, kind: type[T], body: object = None
) -> T:
    """Have the server do something. Raises OpsUnreachable, OpsRefused."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    with _connected(address, _COMMAND_S) as connection:
        content = None if body is None else msgspec.json.encode(body)
        connection.request("POST", path, body=content, headers=headers)
        return _answer(address, connection, kind)


def _answer(address: Address, connection: http.client.HTTPConnection, kind: type[T]) -> T:
    reply = connection.getresponse()
    body = reply.read(_BODY_BYTES)
    if reply.status != 200:
        problem = msgspec.json.decode(body, type=_Refusal).error.message
        raise OpsRefused(_name(address), plain(problem))
    return msgspec.json.decode(body, type=kind)


def _name(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextmanager
def _connected(address: Address, timeout_s: float) -> Iterator[http.client.HTTPConnection]:
    try:
        with closing(http.client.HTTPConnection(*address, timeout=timeout_s)) as connection:
            yield connection
    except (OSError, UnicodeError, http.client.HTTPException, msgspec.MsgspecError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise OpsUnreachable(_name(address), plain(reason)) from error


def _get(connection: http.client.HTTPConnection, path: str, kind: type[T], also: int = 200) -> T:
    connection.request("GET", path)
    reply = connection.getresponse()
    body = reply.read(_BODY_BYTES)
    if reply.status not in (200, also):
        raise http.client.HTTPException(f"GET {path} is answered with status {reply.status}")
    return msgspec.json.decode(body, type=kind)

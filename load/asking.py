"""One answer of the server, asked for as an SDK does: read as it streams, left half way, or asked
for again after a refusal. What came of it goes to Locust's rows."""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gevent
from locust import HttpUser, events
from requests import RequestException

from load.keys import Caller
from load.patience import Refusal

_TIMEOUT_S = 120
SHED_CODES = frozenset({"overloaded", "queue_timeout", "rate_limit_exceeded"})
"""Of what can't be refused by its status: a stream whose headers had to leave before it had a
place, or a job in the background."""


@dataclass(slots=True)
class Answer:
    """What came of one stream so far. `kind` is who asked, as rows name it."""

    kind: str
    asked_at: float
    started_at: float = field(default_factory=time.monotonic)
    last_at: float = 0.0
    pieces: list[str] = field(default_factory=list)
    finish: str | None = None
    tokens: int = 0

    def take(self, event: dict[str, Any]) -> None:
        """Note one event, and report when its text came."""
        if usage := event.get("usage"):
            self.tokens = usage["completion_tokens"]
        for choice in event["choices"]:
            self.finish = choice["finish_reason"] or self.finish
            if text := choice["delta"].get("content"):
                now = time.monotonic()
                if self.pieces:
                    report(f"between tokens: {self.kind}", seconds=now - self.last_at)
                else:
                    report(f"first token: {self.kind}", seconds=now - self.started_at)
                self.pieces.append(text)
                self.last_at = now


class Asking:
    """One user's way to the server."""

    def __init__(
        self, user: HttpUser, lane: str, caller: Caller, model: str, *, retries: bool
    ) -> None:
        self._client = user.client
        self._caller = caller
        self._model = model
        self._retries = retries
        self._lane = lane
        self._kind = f"{lane}, {caller.plan}" if caller.plan else lane
        self._dice = random.Random()

    def stream(self, body: dict[str, Any], leave_after: int | None = None) -> str | None:
        """The answer of a chat; None when the user hung up, after that many pieces, when the server
        was too busy, or when the stream failed."""
        body = body | {"stream": True, "stream_options": {"include_usage": True}}
        asked_at, retries = time.monotonic(), 0
        while True:
            answer = Answer(self._kind, asked_at)
            with self._post("/v1/chat/completions", body, "stream", stream=True) as reply:
                try:
                    if reply.status_code == 200:
                        return self._read(reply, answer, leave_after)
                    pause_s = self._refused(reply, "stream", retries)
                except RequestException as error:
                    reply.failure(f"the stream broke off: {type(error).__name__}")
                    return None
                finally:
                    reply.close()  # with an unread rest, this closes the socket: the server sees it
            if not self._waits(pause_s, asked_at):
                return None
            retries += 1

    def whole(self, path: str, body: dict[str, Any], name: str) -> dict[str, Any] | None:
        """One reply of JSON; None when the server was too busy, or when it failed."""
        asked_at, retries = time.monotonic(), 0
        while True:
            with self._post(path, body, name) as reply:
                if reply.status_code == 200:
                    found: dict[str, Any] = reply.json()
                    return found
                pause_s = self._refused(reply, name, retries)
            if not self._waits(pause_s, asked_at):
                return None
            retries += 1

    def get(self, path: str, name: str) -> dict[str, Any] | None:
        """What is there; None if that isn't to be had."""
        headers = self._caller.headers
        with self._client.get(path, name=name, headers=headers, catch_response=True) as reply:
            if reply.status_code == 200:
                found: dict[str, Any] = reply.json()
                return found
            self._refused(reply, name, 0)
            return None

    def _post(self, path: str, body: dict[str, Any], name: str, **more: Any) -> Any:
        return self._client.post(
            path,
            json={"model": self._model} | body,
            name=f"{self._lane} ({name})",
            headers=self._caller.headers,
            timeout=_TIMEOUT_S,
            catch_response=True,
            **more,
        )

    def _read(self, reply: Any, answer: Answer, leave_after: int | None) -> str | None:
        if moved := reply.headers.get("x-antiphon-model-moved"):
            report(f"moved: {moved}", seconds=time.monotonic() - answer.started_at)
        for event in _events(reply):
            if error := event.get("error"):
                if error.get("code") not in SHED_CODES:
                    reply.failure(error["message"])
                    return None
                reply.request_meta["name"] += ": shed in the stream"
                reply.success()
                return None
            answer.take(event)
            if leave_after is not None and len(answer.pieces) >= leave_after:
                report(f"hung up: {self._kind}", seconds=time.monotonic() - answer.started_at)
                return None
        if answer.finish is None:
            reply.failure("the stream ended without a finish_reason")
            return None
        seconds = answer.last_at - answer.started_at
        if answer.tokens and seconds > 0:
            report("tokens/s", seconds=answer.tokens / seconds / 1000, length=answer.tokens)
        return "".join(answer.pieces)

    def _refused(self, reply: Any, name: str, retries: int) -> float | None:
        """Note it, and say how long to wait before the next try, if there is to be one."""
        lowered = {key.lower(): value for key, value in reply.headers.items()}
        refusal = Refusal(reply.status_code, lowered)
        if refusal.is_shed:
            plan = f", {self._caller.plan}" if self._caller.plan else ""
            reply.request_meta["name"] = f"shed {reply.status_code}: {self._lane}{plan}"
            reply.success()
        else:
            reply.failure(f"status {reply.status_code}")
        return refusal.pause_s(retries, self._dice) if self._retries else None

    def _waits(self, pause_s: float | None, asked_at: float) -> bool:
        """False if it gives up."""
        if pause_s is None:
            report(f"gave up: {self._kind}", seconds=time.monotonic() - asked_at)
            return False
        report(f"waited to retry: {self._kind}", seconds=pause_s)
        gevent.sleep(pause_s)
        return True


def _events(reply: Any) -> Iterator[dict[str, Any]]:
    """The JSON events of a server-sent stream, up to [DONE]; comment lines are heartbeats."""
    for line in reply.iter_lines():
        if line == b"data: [DONE]":
            return
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def report(name: str, *, seconds: float, length: int = 0, problem: Exception | None = None) -> None:
    """One more value in Locust's row of that name."""
    events.request.fire(
        request_type="SSE",
        name=name,
        response_time=seconds * 1000,
        response_length=length,
        exception=problem,
        context={},
    )

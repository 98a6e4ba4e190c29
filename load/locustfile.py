"""People chatting, some of whom hang up half way: a Locust file for a running Antiphon.

    locust -f load/locustfile.py --headless -u 16 -r 4 -t 60s --host http://127.0.0.1:8000

Beside Locust's row for each request it reports rows of type SSE: milliseconds to the first token
and between two, hang-ups (milliseconds until the user left), and tokens/s, whose number stands
where Locust prints milliseconds. A stream that ends without saying how is a failure.
"""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from locust import HttpUser, between, events, task
from locust.exception import StopUser

PROMPTS = (
    "What is the capital of France?",
    "Write a short poem about the sea.",
    "Explain how rain forms to a ten-year-old.",
    "Give me three names for a bakery, and say why.",
    "Translate to French: the train leaves at noon.",
    "What should I cook with rice, eggs and spinach?",
    "Summarise in one sentence why the sky is blue.",
    "Tell me a story about a lighthouse keeper and a whale.",
)


@dataclass(slots=True)
class Answer:
    """What came of one stream so far."""

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
                    report("time between tokens", milliseconds=(now - self.last_at) * 1000)
                else:
                    report("time to first token", milliseconds=(now - self.started_at) * 1000)
                self.pieces.append(text)
                self.last_at = now


class ChatUser(HttpUser):
    """Somebody who asks, reads the answer as it streams, thinks, and asks again."""

    wait_time = between(0.5, 3.0)
    max_tokens = 96
    hang_up_share = 0.2

    def on_start(self) -> None:
        self.dice = random.Random()
        self.messages: list[dict[str, str]] = []
        with self.client.get("/v1/models", name="models", catch_response=True) as reply:
            if reply.status_code != 200:
                reply.failure(f"status {reply.status_code}")
                raise StopUser
            self.model = reply.json()["data"][0]["id"]

    @task(8)
    def ask(self) -> None:
        """One turn; every few turns a new conversation, as people do."""
        if len(self.messages) > 6:
            self.messages = []
        self.messages.append({"role": "user", "content": self.dice.choice(PROMPTS)})
        leave_after = self.dice.randint(0, 12) if self.dice.random() < self.hang_up_share else None
        answer = self._stream(leave_after)
        if answer is None:
            self.messages.pop()
        else:
            self.messages.append({"role": "assistant", "content": answer})

    @task(1)
    def ask_without_streaming(self) -> None:
        """One short answer at once."""
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": self.dice.choice(PROMPTS)}],
            "max_tokens": 24,
        }
        self.client.post("/v1/chat/completions", json=body, name="chat (whole)", timeout=120)

    def _stream(self, leave_after: int | None) -> str | None:
        """The answer; None when the user hung up, after that many pieces, or the stream failed."""
        body = {
            "model": self.model,
            "messages": self.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": self.max_tokens,
        }
        answer = Answer()
        with self.client.post(
            "/v1/chat/completions",
            json=body,
            name="chat (stream)",
            stream=True,
            timeout=120,
            catch_response=True,
        ) as reply:
            if reply.status_code != 200:
                reply.failure(f"status {reply.status_code}")
                return None
            try:
                for event in _events(reply):
                    if "error" in event:
                        reply.failure(event["error"]["message"])
                        return None
                    answer.take(event)
                    if leave_after is not None and len(answer.pieces) >= leave_after:
                        report(
                            "hang-ups", milliseconds=(time.monotonic() - answer.started_at) * 1e3
                        )
                        return None
            finally:
                reply.close()  # with an unread rest, this closes the socket: the server sees it
            if answer.finish is None:
                reply.failure("the stream ended without a finish_reason")
                return None
        seconds = answer.last_at - answer.started_at
        if answer.tokens and seconds > 0:
            report("tokens/s", milliseconds=answer.tokens / seconds, length=answer.tokens)
        return "".join(answer.pieces)


def _events(reply: Any) -> Iterator[dict[str, Any]]:
    """The JSON events of a server-sent stream, up to [DONE]; comment lines are heartbeats."""
    for line in reply.iter_lines():
        if line == b"data: [DONE]":
            return
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def report(name: str, *, milliseconds: float, length: int = 0) -> None:
    """One more value in Locust's row of that name."""
    events.request.fire(
        request_type="SSE",
        name=name,
        response_time=milliseconds,
        response_length=length,
        exception=None,
        context={},
    )

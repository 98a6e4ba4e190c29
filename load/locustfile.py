"""People chatting, some of whom hang up half way: a Locust file for a running Antiphon.

    locust -f load/locustfile.py --headless -u 16 -r 4 -t 60s --host http://127.0.0.1:8000

Beside Locust's own row for each request it reports, as rows of type SSE, the time to the first
token
and between tokens in milliseconds, tokens/s (the number, in the milliseconds column), hang-ups, and
streams that ended without saying how.
"""

import json
import random
import time
from collections.abc import Iterator
from typing import Any

from locust import HttpUser, between, events, task

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


class ChatUser(HttpUser):
    """Somebody who asks, reads the answer as it streams, thinks, and asks again."""

    wait_time = between(0.5, 3.0)
    max_tokens = 96
    hang_up_share = 0.2

    def on_start(self) -> None:
        self.dice = random.Random()
        self.messages: list[dict[str, str]] = []
        with self.client.get("/v1/models", name="models", catch_response=True) as reply:
            self.model = reply.json()["data"][0]["id"]
            reply.success()

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
        body = self._body(stream=False) | {"max_tokens": 24}
        body["messages"] = [{"role": "user", "content": self.dice.choice(PROMPTS)}]
        self.client.post("/v1/chat/completions", json=body, name="chat (whole)")

    def _body(self, *, stream: bool) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": self.messages,
            "stream": stream,
            "max_tokens": self.max_tokens,
        }

    def _stream(self, leave_after: int | None) -> str | None:
        """The answer, or None when the user hung up or the stream failed."""
        started = time.monotonic()
        with self.client.post(
            "/v1/chat/completions",
            json=self._body(stream=True),
            name="chat (stream)",
            stream=True,
            timeout=120,
            catch_response=True,
        ) as reply:
            if reply.status_code != 200:
                reply.failure(f"status {reply.status_code}")
                return None
            pieces: list[str] = []
            finish = None
            last = started
            for event in _events(reply):
                if "error" in event:
                    reply.failure(event["error"]["message"])
                    return None
                for choice in event["choices"]:
                    finish = choice["finish_reason"] or finish
                    if choice["delta"].get("content"):
                        now = time.monotonic()
                        name = "time between tokens" if pieces else "time to first token"
                        _report(name, now - last)
                        pieces.append(choice["delta"]["content"])
                        last = now
                if leave_after is not None and len(pieces) >= leave_after:
                    reply.success()
                    reply.close()
                    _report("hang-ups", time.monotonic() - started)
                    return None
            if finish is None:
                reply.failure("the stream ended without a finish_reason")
                return None
            reply.success()
            if len(pieces) > 1:
                _report("tokens per second (number)", len(pieces) / (last - started) / 1000)
            return "".join(pieces)


def _events(reply: Any) -> Iterator[dict[str, Any]]:
    """The JSON events of a server-sent stream, up to [DONE]; comment lines are heartbeats."""
    for line in reply.iter_lines():
        text = line.decode() if isinstance(line, bytes) else line
        if text.startswith("data: {"):
            yield json.loads(text[6:])
        elif text == "data: [DONE]":
            return


def _report(name: str, seconds: float) -> None:
    events.request.fire(
        request_type="SSE",
        name=name,
        response_time=seconds * 1000,
        response_length=0,
        exception=None,
        context={},
    )

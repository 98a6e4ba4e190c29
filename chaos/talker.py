"""A client that holds conversations with a server that may die at any moment."""

import contextlib
import json
import random
import threading
import time
from typing import Any

import httpx2

from chaos.notes import Note

_TURNS = 5
"""Of one conversation; then a new one begins."""
_TRY_FOR_S = 60.0
_WAIT_S = 0.2


class Talker:
    """Talks until told to finish; `notes` is its memory. One thread's own, but for `base_url`."""

    def __init__(self, name: str, seed: int) -> None:
        self.base_url: str | None = None
        self.notes: list[Note] = []
        self._name = name
        self._dice = random.Random(seed)
        self._finished = threading.Event()

    def talk(self) -> None:
        """A thread's work."""
        while not self._finished.is_set():
            conversation = self._begin()
            for number in range(_TURNS if conversation else 0):
                if not self._finished.is_set():
                    self._turn(str(conversation), number)

    def finish(self) -> None:
        """After the turn at hand."""
        self._finished.set()

    def _begin(self) -> str | None:
        while not self._finished.is_set():
            with contextlib.suppress(httpx2.HTTPError, TypeError, KeyError, ValueError):
                id: str = self._post("/conversations", {})["id"]
                return id
            time.sleep(_WAIT_S)
        return None

    def _turn(self, conversation: str, number: int) -> None:
        said = f"{self._name} {conversation[-8:]} {number}: tell me about {self._dice.random()}."
        note = Note(conversation=conversation, said=said)
        self.notes.append(note)
        body = {
            "input": said,
            "conversation": conversation,
            "max_output_tokens": self._dice.randint(16, 48),
            "stream": self._dice.random() < 0.6,
            "background": self._dice.random() < 0.2,
        }
        key = f"{self._name}-{len(self.notes)}"
        leaves = self._dice.random() < 0.1
        deadline = time.monotonic() + _TRY_FOR_S
        while note.status is None and not note.given_up:
            if time.monotonic() > deadline:
                note.given_up = True
                return
            note.attempts += 1
            with contextlib.suppress(httpx2.HTTPError, TypeError):
                self._try(note, body, key, leaves=leaves)
            if note.status is None:
                time.sleep(_WAIT_S)

    def _try(self, note: Note, body: dict[str, Any], key: str, *, leaves: bool) -> None:
        with httpx2.stream(
            "POST",
            f"{self.base_url}/responses",
            json={"model": "smollm2-135m-instruct", **body},
            headers={"Idempotency-Key": key},
            timeout=60,
        ) as reply:
            if reply.status_code in {400, 503}:  # locked by a turn that died, or not ready
                return
            if reply.status_code != 200:
                reply.read()
                raise RuntimeError(f"{reply.status_code} {reply.text}")
            if not body["stream"]:
                self._hear(note, json.loads(reply.read()))
                return
            heard = ""
            for line in reply.iter_lines():
                if not line.startswith("data: {"):
                    continue
                event = json.loads(line[6:])
                if "response" in event:
                    note.response = event["response"]["id"]
                    if event["response"]["status"] in {
                        "completed",
                        "incomplete",
                        "failed",
                        "cancelled",
                    }:
                        note.status = event["response"]["status"]
                if event["type"] == "response.output_text.delta":
                    heard += event["delta"]
                    note.heard = max(note.heard, heard, key=len)
                    if leaves and len(heard) > 20 and not body["background"]:
                        note.given_up = True
                        return

    def _hear(self, note: Note, response: dict[str, Any]) -> None:
        note.response = response["id"]
        while response["status"] in {"queued", "in_progress"}:
            time.sleep(_WAIT_S)
            reply = httpx2.get(f"{self.base_url}/responses/{note.response}", timeout=30)
            if reply.status_code != 200:
                return
            response = reply.json()
        note.heard = "".join(
            part["text"] for item in response["output"] for part in item["content"]
        )
        note.status = response["status"]

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return httpx2.post(f"{self.base_url}{path}", json=body, timeout=30).json()

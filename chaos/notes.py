"""What a client noted of its turns, and whether the server's books say the same."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import httpx2

_FINAL = {"completed", "incomplete", "cancelled", "failed"}


@dataclass(slots=True, kw_only=True)
class Note:
    """One turn. `said` is in no other turn's text."""

    conversation: str
    said: str
    attempts: int = 0
    response: str | None = None
    """The id, from the first sign of it."""
    heard: str = ""
    """The text of the longest stream, or of the whole answer."""
    status: str | None = None
    """What the client was told about the end."""
    given_up: bool = False

    @property
    def outcome(self) -> str:
        return "given up" if self.given_up else self.status or "unknown"


def judge(client: httpx2.Client, notes: list[Note]) -> list[str]:
    """What is not true of the notes. Reads every conversation and every response."""
    problems = []
    users: dict[str, Counter[str]] = {}
    for conversation in {note.conversation for note in notes}:
        users[conversation] = Counter(
            _text(item)
            for item in _all(client, f"/conversations/{conversation}/items")
            if item["role"] == "user"
        )
    stored = {response["id"]: response for response in _all(client, "/responses")}
    for id, response in stored.items():
        if response["status"] not in _FINAL:
            problems.append(f"{id} is {response['status']} with nobody at work")
    for note in notes:
        problems += _judged(note, users[note.conversation][note.said], stored)
    doubled = [said for texts in users.values() for said, count in texts.items() if count > 1]
    problems += [f"stored more than once: {said}" for said in doubled]
    return problems


def _judged(note: Note, times: int, stored: dict[str, dict[str, Any]]) -> list[str]:
    if note.response is None:
        return []
    response = stored.get(note.response)
    if response is None:
        return [f"{note.response} was shown and is not stored"]
    problems = []
    if times != 1:
        problems.append(f"{note.response}: its message is stored {times} times")
    text = "".join(_text(item) for item in response["output"])
    if note.status is not None and note.status != response["status"]:
        problems.append(f"{note.response}: told {note.status}, stored {response['status']}")
    marked = response["status"] == "failed"
    if not text.startswith(note.heard) and not (marked and note.heard.startswith(text)):
        problems.append(f"{note.response}: heard {note.heard!r}, stored {text!r}")
    return problems


def _text(item: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in item["content"])


def _all(client: httpx2.Client, path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        page = client.get(path, params={"limit": 100, "order": "asc", **after}).json()
        rows += page["data"]
        if not page["has_more"]:
            return rows
        after = {"after": page["last_id"]}

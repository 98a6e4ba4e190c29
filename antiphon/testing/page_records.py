"""What a server has of that which its page shows: conversations, items and answers, asked for over
the API, and the slots that answers hold."""

import re
import time
from collections.abc import Iterable
from typing import Any

import httpx2

from antiphon.testing.process import ServerProcess

_GONE_WITHIN_S = 60.0
_FREED_WITHIN_S = 60.0
_SUMMARISED_WITHIN_S = 180.0
_SUMMARISED = re.compile(rb'^antiphon_work_total{kind="summary",outcome="(extract|model)"', re.M)

Json = dict[str, Any]


def made(server: ServerProcess, *titles: str) -> list[str]:
    """Conversations that are called so, the last one the newest: their ids."""
    with httpx2.Client(base_url=server.base_url) as client:
        return [client.post("conversations", json={"title": each}).json()["id"] for each in titles]


def said(server: ServerProcess, title: str, *messages: tuple[str, str]) -> str:
    """A conversation with these messages, each of a role, whoever has written them; its id."""
    items = [{"type": "message", "role": role, "content": text} for role, text in messages]
    body = {"title": title, "items": items}
    answer = httpx2.post(f"{server.base_url}/conversations", json=body)
    answer.raise_for_status()
    return str(answer.json()["id"])


def items(server: ServerProcess, conversation: str, key: str = "") -> list[Json]:
    """The newest first."""
    return _listed(server, f"conversations/{conversation}/items", key)


def responses(server: ServerProcess, conversation: str, key: str = "") -> list[Json]:
    """The newest first."""
    return _listed(server, f"responses?conversation={conversation}", key)


def text_of(response: Json) -> str:
    """What it says."""
    messages = [item for item in response["output"] if item["type"] == "message"]
    return "".join(part.get("text", "") for each in messages for part in each["content"])


def statuses(server: ServerProcess, conversations: Iterable[str]) -> list[int]:
    """Of asking for each of them: 404 for one that is gone."""
    with httpx2.Client(base_url=server.base_url) as client:
        return [client.get(f"conversations/{id}").status_code for id in conversations]


def until_gone(server: ServerProcess, conversation: str) -> None:
    """Until it has been deleted, by a page that may have been closed meanwhile, so that nobody but
    the server can be asked. Raises TimeoutError."""
    last = time.monotonic() + _GONE_WITHIN_S
    while statuses(server, [conversation]) != [404]:
        if time.monotonic() > last:
            raise TimeoutError(f"{conversation} is still there")


def held(server: ServerProcess, request: str) -> list[str]:
    """The states of the slots that it has, as operators see them."""
    return [slot["state"] for slot in server.slots() if slot["request_id"] == request]


def until_freed(server: ServerProcess, request: str) -> None:
    """Until a request that was stopped has none. An engine may take a step to it after the answer
    has ended for its readers."""
    server.log.wait_for(
        "lease_cancelled",
        within_s=_FREED_WITHIN_S,
        matching=lambda line: line["request_id"] == request,
    )


def until_summarised(server: ServerProcess) -> None:
    """Until the first summary of all has been made, in the background. Raises TimeoutError."""
    last = time.monotonic() + _SUMMARISED_WITHIN_S
    while not _SUMMARISED.search(server.get("/metrics")[1]):
        if time.monotonic() > last:
            raise TimeoutError("there is no summary")


def _listed(server: ServerProcess, path: str, key: str = "") -> list[Json]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    answer = httpx2.get(f"{server.base_url}/{path}", headers=headers)
    answer.raise_for_status()
    found: list[Json] = answer.json()["data"]
    return found

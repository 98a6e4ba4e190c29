"""One key's requests, all at once, over one server or several: what each of them was told."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import httpx2
import trio

from antiphon.records import TokenUsage

Kind = Literal["chat", "streamed chat", "kept chat", "response", "streamed response", "fleeting"]
KINDS: tuple[Kind, ...] = (
    "chat",
    "streamed chat",
    "kept chat",
    "response",
    "streamed response",
    "fleeting",
)
LONG_KINDS: tuple[Kind, ...] = ("streamed chat", "streamed response")
_PATIENCE_S = 120.0
_CHAT = "/chat/completions"
_RESPONSES = "/responses"
_FIRSTS = 3


@dataclass(slots=True, kw_only=True, eq=False)
class Told:
    """One request; status 0 is that nobody answered to the end."""

    kind: Kind
    server: str
    status: int = 0
    id: str | None = None
    usage: TokenUsage | None = None
    began: bool = False
    """Text has come, of a stream."""
    remaining: str | None = None
    ended: bool = False
    is_good_refusal: bool = False
    code: str | None = None
    """Of an error."""


class Asker:
    """Requests go round the servers and the kinds."""

    def __init__(
        self, servers: Sequence[str], key: str, kinds: Sequence[Kind], *, max_tokens: int
    ) -> None:
        self._servers = servers
        self._key = key
        self._kinds = kinds
        self._max_tokens = max_tokens
        self._asked: list[Told] = []
        self._changed = trio.Event()

    async def all_at_once(self, count: int, *, after: str | None = None) -> list[Told]:
        """Returns when every one has ended, in whatever way. `after`: not before some of them have
        text from that server, one after another, so that the last still runs when the first is
        whole."""
        places = itertools.cycle(
            [(kind, server) for kind in self._kinds for server in self._servers]
        )
        self._asked = [
            Told(kind=kind, server=server) for kind, server in itertools.islice(places, count)
        ]
        limits = httpx2.Limits(max_connections=None)
        headers = {"authorization": f"Bearer {self._key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=_PATIENCE_S, limits=limits) as client,
            trio.open_nursery() as nursery,
        ):
            firsts = [each for each in self._asked if each.server == after][:_FIRSTS]
            for first in firsts:
                nursery.start_soon(self._ask, client, first)
                while not (first.began or first.ended):
                    await self._changed.wait()
            for told in self._asked:
                if told not in firsts:
                    nursery.start_soon(self._ask, client, told)
        return self._asked

    async def until_striking(self, server: str) -> None:
        """Return when an answer is whole, and text of another one has come from there."""
        while not (self.struck(server) and any(each.status == 200 for each in self._asked)):
            await self._changed.wait()

    def struck(self, server: str) -> bool:
        """Whether anything that had begun there has no end."""
        return any(each.began and not each.status for each in self._of(server))

    def _of(self, server: str) -> list[Told]:
        return [each for each in self._asked if each.server == server]

    async def _ask(self, client: httpx2.AsyncClient, told: Told) -> None:
        path, body = self._request(told.kind)
        try:
            async with client.stream("POST", told.server + path, json=body) as answer:
                if answer.status_code == 200 and body.get("stream"):
                    await self._read_stream(answer, told)
                    return
                whole = json.loads(await answer.aread())
                self._note(told, answer, whole)
                told.status = answer.status_code
        except httpx2.HTTPError:
            pass  # the server is gone
        finally:
            told.ended = True
            self._change()

    def _request(self, kind: Kind) -> tuple[str, dict[str, Any]]:
        text = "Tell me a long story about the sea."
        chat: dict[str, Any] = {
            "model": "smollm2-135m-instruct",
            "messages": [{"role": "user", "content": text}],
            "max_tokens": self._max_tokens,
            "ignore_eos": True,
        }
        response: dict[str, Any] = {
            "model": "smollm2-135m-instruct",
            "input": text,
            "max_output_tokens": self._max_tokens,
        }
        match kind:
            case "chat":
                return _CHAT, chat
            case "kept chat":
                return _CHAT, chat | {"store": True}
            case "streamed chat":
                return _CHAT, chat | {"stream": True, "stream_options": {"include_usage": True}}
            case "response":
                return _RESPONSES, response
            case "fleeting":
                return _RESPONSES, response | {"store": False}
            case "streamed response":
                return _RESPONSES, response | {"stream": True}

    async def _read_stream(self, answer: httpx2.Response, told: Told) -> None:
        async for line in answer.aiter_lines():
            name, _, data = line.partition(": ")
            if name != "data":
                continue
            if data == "[DONE]":
                told.status = answer.status_code
                continue
            event = json.loads(data)
            whole = event.get("response", event)
            self._note(told, answer, whole)
            told.began = told.began or bool(event.get("delta") or _chat_text(event))
            if str(event.get("type", "")) in {"response.completed", "response.incomplete"}:
                told.status = answer.status_code
            self._change()

    def _change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def _note(self, told: Told, answer: httpx2.Response, whole: dict[str, Any]) -> None:
        told.id = whole.get("id", told.id)
        told.remaining = answer.headers.get("x-ratelimit-remaining-requests")
        if usage := whole.get("usage"):
            read = usage.get("prompt_tokens_details", usage.get("input_tokens_details")) or {}
            told.usage = TokenUsage(
                input=usage.get("prompt_tokens", usage.get("input_tokens")),
                cached=read.get("cached_tokens", 0),
                output=usage.get("completion_tokens", usage.get("output_tokens")),
            )
        if error := whole.get("error"):
            told.code = error.get("code")
        if answer.status_code == 429:
            told.is_good_refusal = (
                whole["error"]["code"] == "rate_limit_exceeded"
                and int(answer.headers["retry-after-ms"]) > 0
                and answer.headers["x-ratelimit-remaining-requests"] == "0"
                and answer.headers["x-ratelimit-reset-requests"].endswith("s")
            )


def _chat_text(event: dict[str, Any]) -> bool:
    return any(choice.get("delta", {}).get("content") for choice in event.get("choices", ()))

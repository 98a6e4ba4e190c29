"""How many tokens something is: by the model's own tokenizer where there is one, else by what the
replica says, else by a guess.

A guess is for the queue and for the default length of an answer. It is never a reason to refuse
what might fit: the replica has the last word on its window.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from antiphon.engine.upstream.dialect import Flavour
from antiphon.engine.upstream.exchange import Connect, Exchange
from antiphon.engine.upstream.fleet import Replica
from antiphon.engine.upstream.trouble import Kind, Trouble
from antiphon.engine.upstream.urls import root_of
from antiphon.events import Message
from antiphon.ids import ModelName
from antiphon.tools import Tool, ToolFormat

_BYTES_A_TOKEN = 4
"""Of English and of code about; other scripts take more bytes and more tokens a character."""
_FRAME_TOKENS = 4
"""What a chat template writes around a message."""
_LONGEST_TOKEN = 128
"""Characters; runs of spaces get this long in some vocabularies."""
_PATIENCE_S = 5.0
_LONGEST_REPLY = 16 * 1024 * 1024


class TextTokenizer(Protocol):
    """The model's own vocabulary."""

    def count_text(self, text: str) -> int: ...


class EstimatingTokenizer:
    """A `ports.ChatTokenizer` without a vocabulary: as many ids as there may be tokens, all 0."""

    longest_token = _LONGEST_TOKEN
    tool_format: ToolFormat | None = None

    def count_text(self, text: str) -> int:
        return math.ceil(len(text.encode("utf-8", "replace")) / _BYTES_A_TOKEN)

    def encode_chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[int]:
        size = sum(len(message.content.encode("utf-8", "replace")) for message in messages)
        return [0] * (math.ceil(size / _BYTES_A_TOKEN) + _FRAME_TOKENS * (len(messages) + 1))


class Counter:
    """Asks whoever knows best. A replica that has no page for it is not asked again."""

    def __init__(
        self,
        connect: Connect,
        headers: Mapping[str, str],
        model: str,
        *,
        connect_s: float,
        tokenizer: TextTokenizer | None = None,
    ) -> None:
        self._connect = connect
        self._headers = headers
        self._model = ModelName(model)
        self._connect_s = connect_s
        self._tokenizer = tokenizer
        self._mute: set[str] = set()

    @property
    def is_exact(self) -> bool:
        """Whether prompts are counted before they are sent."""
        return self._tokenizer is not None

    async def count_text(self, replica: Replica, text: str) -> int | None:
        """Tokens of an answer, or None where nobody knows."""
        if self._tokenizer is not None:
            return self._tokenizer.count_text(text)
        return await self._ask(
            replica,
            {
                "model": self._model,
                "prompt": text,  # vLLM's and SGLang's word
                "content": text,  # llama-server's
                "add_special_tokens": False,
                "add_special": False,
            },
        )

    async def count_prompt(self, replica: Replica, messages: Sequence[Message]) -> int | None:
        """Tokens of a rendered chat, or None where nobody knows."""
        said = [{"role": message.role, "content": message.content} for message in messages]
        if replica.facts is None or replica.facts.flavour is not Flavour.LLAMA_CPP:
            return await self._ask(replica, {"model": self._model, "messages": said})
        reply = await self._post(replica, "/apply-template", {"messages": said})
        prompt = None if reply is None else reply.get("prompt")
        if not isinstance(prompt, str):
            return None
        asked = {"content": prompt, "add_special": True, "parse_special": True}
        return await self._ask(replica, asked)

    async def _ask(self, replica: Replica, body: Mapping[str, Any]) -> int | None:
        reply = await self._post(replica, "/tokenize", body)
        match reply:
            case {"count": int(count)}:
                return count
            case {"tokens": list(tokens)}:
                return len(tokens)
            case _:
                return None

    async def _post(
        self, replica: Replica, path: str, body: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        if replica.name in self._mute:
            return None
        url = root_of(replica.url) + path
        try:
            async with Exchange(
                self._connect, url, self._headers, connect_s=self._connect_s, body=body
            ) as exchange:
                await exchange.open(_PATIENCE_S)
                value = json.loads(await exchange.read(_LONGEST_REPLY, _PATIENCE_S))
        except Trouble as trouble:
            if trouble.kind in (Kind.UNUSABLE, Kind.INVALID):  # it has no such page
                self._mute.add(replica.name)
            return None
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

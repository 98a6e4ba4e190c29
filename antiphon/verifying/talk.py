"""How a check talks with an engine: questions, and what it says when something is wrong."""

import random
from dataclasses import dataclass
from typing import Any

from antiphon.events import Capabilities, EndReason, Message, Sampling
from antiphon.ids import EngineRequest
from antiphon.ports import ChatTokenizer
from antiphon.verifying.client import Answer, Client

QUESTION = "Tell me about the sea."
_WORD = "sea "


class Broken(Exception):
    """What is wrong, in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of what takes long: admits of a storm, conversations with a secret word."""

    storm: int = 200
    conversations: int = 16


SIZES = Sizes()


@dataclass(frozen=True, slots=True)
class Talk:
    """A client, and how prompts are made for it."""

    client: Client
    tokenizer: ChatTokenizer
    dice: random.Random
    sizes: Sizes = SIZES

    @property
    def capabilities(self) -> Capabilities:
        return self.client.capabilities

    def endless(self) -> Sampling:
        """For an answer that goes on to its bound, where an engine can be told to."""
        return greedy(ignore_eos=self.capabilities.extras)

    async def begin(self, text: str, *, max_tokens: int = 32, **fields: Any) -> EngineRequest:
        messages = (Message(role="user", content=text),)
        prompt = self.tokenizer.encode_chat(messages)
        return await self.client.admit(prompt, max_tokens=max_tokens, messages=messages, **fields)

    async def ask(self, text: str, **fields: Any) -> Answer:
        return await self.client.over(await self.begin(text, **fields))

    async def answered(self, text: str, **fields: Any) -> Answer:
        """An answer that is whole. Raises Broken."""
        answer = await self.ask(text, **fields)
        whole(answer)
        return answer

    async def length(self, text: str) -> int:
        """Tokens of the prompt, as the engine counts them. Raises Broken."""
        if not self.capabilities.counts_prompts:
            return len(self.tokenizer.encode_chat([Message(role="user", content=text)]))
        answer = await self.answered(text, max_tokens=1)
        if answer.prompt_tokens is None:
            raise Broken("it counts prompts and never says how long one was")
        return answer.prompt_tokens

    async def of_length(self, tokens: int, beginning: str = "") -> tuple[str, int]:
        """A text whose prompt has nearly that many tokens and no more, and how many. Raises
        Broken."""
        short = await self.length(beginning + _WORD * 8)
        long = await self.length(beginning + _WORD * 24)
        words = 8 + int((tokens - short) * 16 / (long - short))
        text = beginning + _WORD * words
        return text, await self.length(text)


def whole(answer: Answer) -> None:
    """Raises Broken unless it came to an end of its own."""
    if answer.fault is not None:
        raise Broken(f"{answer.fault.code}: {answer.fault.detail}")
    if answer.end not in (EndReason.STOP, EndReason.LENGTH):
        raise Broken(f"ended by {answer.end}")


def greedy(**fields: Any) -> Sampling:
    return Sampling(**{"temperature": 0.0, "seed": 1, **fields})

"""The checks: each one talk with the engine, and a sentence for what is wrong with it.

They hold for any model, so none knows what an answer should say."""

import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import trio

from antiphon.events import Capabilities, EndReason, Message, Sampling
from antiphon.ids import EngineRequest
from antiphon.ports import ChatTokenizer
from antiphon.verifying.client import Answer, Client

_QUESTION = "Tell me about the sea."
_STORM = 200
_CONVERSATIONS = 16
_SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    }
)


class Broken(Exception):
    """What is wrong, in one sentence."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A client, and how prompts are made for it."""

    client: Client
    tokenizer: ChatTokenizer
    dice: random.Random

    async def begin(self, text: str, *, max_tokens: int = 32, **fields: Any) -> EngineRequest:
        prompt = self.tokenizer.encode_chat([Message(role="user", content=text)])
        return await self.client.admit(prompt, max_tokens=max_tokens, **fields)

    async def ask(self, text: str, **fields: Any) -> Answer:
        return await self.client.over(await self.begin(text, **fields))


Check = Callable[[Talk], Awaitable[None]]


async def an_answer_ends_once_and_gives_its_slot_back(talk: Talk) -> None:
    answer = await talk.ask(_QUESTION)
    _whole(answer)
    if not 0 < answer.tokens <= 32:
        raise Broken(f"{answer.tokens} tokens of at most 32")


async def the_longest_answer_is_a_bound(talk: Talk) -> None:
    answer = await talk.ask(_QUESTION, max_tokens=3, sampling=_greedy(ignore_eos=True))
    _whole(answer)
    if (answer.end, answer.tokens) != (EndReason.LENGTH, 3):
        raise Broken(f"ended by {answer.end} after {answer.tokens} tokens")


async def a_stop_string_never_leaves(talk: Talk) -> None:
    whole = await talk.ask(_QUESTION)
    middle = len(whole.text) // 2
    stop = whole.text[middle : middle + 4]
    if not stop:
        raise Broken("the answer is empty")
    cut = await talk.ask(_QUESTION, stop=[stop])
    _whole(cut)
    if stop in cut.text:
        raise Broken(f"{stop!r} is in the text")


async def an_impossible_request_is_refused_and_costs_nothing(talk: Talk) -> None:
    window = talk.client.capabilities.window
    answer = await talk.client.over(await talk.client.admit([1] * window, max_tokens=window))
    if answer.fault is None:
        raise Broken("twice the window was accepted")
    _whole(await talk.ask(_QUESTION))


async def an_abort_frees_the_slot(talk: Talk) -> None:
    for wait_for_text in (False, True):
        request = await talk.begin(_QUESTION, max_tokens=128, sampling=_greedy(ignore_eos=True))
        if wait_for_text:
            await talk.client.heard(request)
        await talk.client.abort(request)
        await talk.client.abort(request)
        answer = await talk.client.over(request)
        if answer.released is None or answer.released.reason is not EndReason.CANCELLED:
            raise Broken(f"released as {answer.released}")


async def a_storm_of_aborts_leaks_no_slot(talk: Talk) -> None:
    client = talk.client

    async def one(moment: str, after_s: float) -> None:
        request = await talk.begin(_QUESTION, max_tokens=8)
        if moment == "later":
            await trio.sleep(after_s)
        elif moment == "with text":
            await client.heard(request)
        elif moment == "afterwards":
            await client.over(request)
        if moment != "never":
            await client.abort(request)
        await client.over(request)

    moments = ("at once", "later", "with text", "afterwards", "never")
    async with trio.open_nursery() as nursery:
        for _ in range(_STORM):
            nursery.start_soon(one, talk.dice.choice(moments), talk.dice.random() / 10)
    if len(client.free) != client.capabilities.slots:
        raise Broken(f"{len(client.free)} of {client.capabilities.slots} slots are free")
    _whole(await talk.ask(_QUESTION))


async def no_conversation_hears_anothers_word(talk: Talk) -> None:
    words = [f"zq{talk.dice.getrandbits(40):010x}" for _ in range(_CONVERSATIONS)]
    answers: dict[str, Answer] = {}

    async def one(word: str) -> None:
        answers[word] = await talk.ask(f"Repeat this word: {word}", salt=word)

    async with trio.open_nursery() as nursery:
        for word in words:
            nursery.start_soon(one, word)
    for word, answer in answers.items():
        _whole(answer)
        if any(other in answer.text for other in words if other != word):
            raise Broken("an answer holds a word of another conversation")


async def log_probabilities_come_with_the_tokens(talk: Talk) -> None:
    answer = await talk.ask(_QUESTION, sampling=_greedy(logprobs=True))
    _whole(answer)
    if not answer.logprobs or not all(value <= 0 for value in answer.logprobs):
        raise Broken(f"{len(answer.logprobs)} of them, not all are logarithms")


async def a_schema_holds(talk: Talk) -> None:
    answer = await talk.ask(
        "Name a city, as JSON.", max_tokens=64, sampling=_greedy(json_schema=_SCHEMA)
    )
    _whole(answer)
    try:
        city = msgspec.json.decode(answer.text)["city"]
    except (msgspec.DecodeError, LookupError, TypeError) as error:
        raise Broken(f"the answer is not of the schema: {error}") from error
    if city not in ("Paris", "Rome"):
        raise Broken("the answer is not of the schema")


CHECKS: dict[Check, Callable[[Capabilities], bool]] = {
    an_answer_ends_once_and_gives_its_slot_back: lambda _: True,
    the_longest_answer_is_a_bound: lambda _: True,
    a_stop_string_never_leaves: lambda _: True,
    an_impossible_request_is_refused_and_costs_nothing: lambda _: True,
    an_abort_frees_the_slot: lambda _: True,
    a_storm_of_aborts_leaks_no_slot: lambda _: True,
    no_conversation_hears_anothers_word: lambda _: True,
    log_probabilities_come_with_the_tokens: lambda engine: engine.logprobs,
    a_schema_holds: lambda engine: engine.json_schema,
}
"""Each check, and which engines it is for."""


def _whole(answer: Answer) -> None:
    if answer.fault is not None:
        raise Broken(f"{answer.fault.code}: {answer.fault.detail}")
    if answer.end not in (EndReason.STOP, EndReason.LENGTH):
        raise Broken(f"ended by {answer.end}")


def _greedy(**fields: Any) -> Sampling:
    return Sampling(**{"temperature": 0.0, "seed": 1, **fields})

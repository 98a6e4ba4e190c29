"""Conversations of six turns through openai-python, on both databases, with the real model."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import openai
import pytest

from antiphon.testing.dialogue import QUESTIONS, SHORT, numbers_of, text_of
from antiphon.testing.process import ServerProcess

pytestmark = pytest.mark.engine


def answer(client: openai.OpenAI, *, stream: bool, **fields: Any) -> Any:
    """One finished response, whichever way it was asked for."""
    if not stream:
        return client.responses.create(**SHORT, **fields)
    events = list(client.responses.create(**SHORT, **fields, stream=True))
    ended = events[-1].response
    assert events[0].type == "response.created"
    assert numbers_of(events) == list(range(len(events)))
    assert text_of(events) == ended.output_text
    return ended


def in_a_conversation(client: openai.OpenAI, stream: bool) -> list[Any]:
    conversation = client.conversations.create(metadata={"topic": "six turns"})
    return [
        answer(client, stream=stream, input=question, conversation=conversation.id)
        for question in QUESTIONS
    ]


def in_a_chain(client: openai.OpenAI, stream: bool) -> list[Any]:
    turns: list[Any] = []
    for question in QUESTIONS:
        previous = {"previous_response_id": turns[-1].id} if turns else {}
        turns.append(answer(client, stream=stream, input=question, **previous))
    return turns


@pytest.fixture(scope="module")
def dialogues(kept: ServerProcess) -> dict[tuple[str, bool], list[Any]]:
    """All four at once, since the engine answers them in one batch."""
    ways = {"conversation": in_a_conversation, "chain": in_a_chain}
    with (
        openai.OpenAI(base_url=kept.base_url, api_key="unused", max_retries=0) as client,
        ThreadPoolExecutor(4) as threads,
    ):
        running = {
            (name, stream): threads.submit(way, client, stream)
            for name, way in ways.items()
            for stream in (False, True)
        }
        return {key: future.result() for key, future in running.items()}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("way", ["conversation", "chain"])
def test_every_turn_reads_all_that_came_before(
    keeper: openai.OpenAI, dialogues: dict[tuple[str, bool], list[Any]], way: str, stream: bool
):
    turns = dialogues[way, stream]
    said: list[dict[str, str]] = []
    counted = []
    for question, turn in zip(QUESTIONS, turns, strict=True):
        said.append({"role": "user", "content": question})
        counted.append(keeper.responses.input_tokens.count(input=said).input_tokens)
        said.append({"role": "assistant", "content": turn.output_text})

    assert [turn.usage.input_tokens for turn in turns] == counted
    assert all(earlier < later for earlier, later in pairwise(counted))
    assert "Paris" in turns[0].output_text
    assert {turn.status for turn in turns} <= {"completed", "incomplete"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_conversation_holds_both_sides_in_order(
    keeper: openai.OpenAI, dialogues: dict[tuple[str, bool], list[Any]], stream: bool
):
    turns = dialogues["conversation", stream]
    (id,) = {turn.conversation.id for turn in turns}

    # Five a page: the SDK turns the pages.
    items = list(keeper.conversations.items.list(id, order="asc", limit=5))

    assert [(item.role, item.content[0].text) for item in items] == [
        side
        for question, turn in zip(QUESTIONS, turns, strict=True)
        for side in (("user", question), ("assistant", turn.output_text))
    ]
    assert [item.id for item in items[1::2]] == [turn.output[0].id for turn in turns]
    assert keeper.conversations.retrieve(id).metadata == {"topic": "six turns"}


@pytest.mark.parametrize("way", ["conversation", "chain"])
def test_every_turn_is_shown_again_as_it_ended(
    keeper: openai.OpenAI, dialogues: dict[tuple[str, bool], list[Any]], way: str
):
    for stream in (False, True):
        for question, turn in zip(QUESTIONS, dialogues[way, stream], strict=True):
            (asked,) = keeper.responses.input_items.list(turn.id).data

            assert keeper.responses.retrieve(turn.id) == turn
            assert asked.content[0].text == question


def test_an_earlier_turn_is_regenerated_by_branching_from_before_it(
    keeper: openai.OpenAI, dialogues: dict[tuple[str, bool], list[Any]]
):
    turns = dialogues["chain", False]

    again = answer(
        keeper,
        stream=False,
        input="What is the capital of Italy?",
        previous_response_id=turns[0].id,
    )

    assert again.previous_response_id == turns[0].id
    assert keeper.responses.retrieve(turns[1].id).output_text == turns[1].output_text
    assert keeper.responses.retrieve(turns[-1].id).previous_response_id == turns[-2].id


def test_a_turn_names_items_of_earlier_ones_by_their_ids(
    keeper: openai.OpenAI, dialogues: dict[tuple[str, bool], list[Any]]
):
    """As AI SDKs do with stored answers, instead of sending them again."""
    first = dialogues["conversation", False][0]
    question = {"role": "user", "content": "And in Italy?"}
    spelled = [{"role": "assistant", "content": first.output_text}, question]

    named = answer(
        keeper,
        stream=False,
        input=[{"type": "item_reference", "id": first.output[0].id}, question],
    )

    whole = keeper.responses.input_tokens.count(input=spelled).input_tokens
    assert named.usage.input_tokens == whole


def test_the_async_client_holds_several_conversations_at_once(kept: ServerProcess):
    async def talk(client: openai.AsyncOpenAI, number: int) -> list[str]:
        conversation = await client.conversations.create()
        for question in (f"Say the number {number}.", "Say it again."):
            stream = await client.responses.create(
                **SHORT, input=question, conversation=conversation.id, stream=True
            )
            events = [event async for event in stream]
            assert events[-1].response.conversation.id == conversation.id
        return [
            item.content[0].text
            async for item in client.conversations.items.list(conversation.id, order="asc")
            if item.role == "user"
        ]

    async def talk_all() -> list[list[str]]:
        async with openai.AsyncOpenAI(
            base_url=kept.base_url, api_key="unused", max_retries=0
        ) as client:
            return await asyncio.gather(*(talk(client, number) for number in range(4)))

    assert asyncio.run(talk_all()) == [
        [f"Say the number {number}.", "Say it again."] for number in range(4)
    ]

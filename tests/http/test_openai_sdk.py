"""OpenAI's own Python SDK against a scripted server: answers, streams, and its error classes."""

import asyncio

import openai
import pytest
import trio

from antiphon.errors import ContextLengthExceeded, HostLost, QueueFull
from antiphon.testing.chat import MODEL

MESSAGES = [{"role": "user", "content": "hi"}]


async def test_openai_python_streams_and_answers(server, chat):
    chat.text = ["Hel", "lo"]

    def talk():
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client:
            whole = client.chat.completions.create(model=MODEL, messages=MESSAGES)
            chunks = list(
                client.chat.completions.create(
                    model=MODEL,
                    messages=MESSAGES,
                    stream=True,
                    n=2,
                    stream_options={"include_usage": True},
                )
            )
            with client.chat.completions.stream(model=MODEL, messages=MESSAGES) as stream:
                final = stream.get_final_completion()
            return whole, chunks, final, client.models.retrieve(MODEL).id

    whole, chunks, final, model = await trio.to_thread.run_sync(talk)

    assert whole.choices[0].message.content == "Hello"
    assert chunks[-1].usage.total_tokens == 7
    assert chunks[-1].choices == []
    assert final.choices[0].message.content == "Hello"
    assert final.choices[0].message.role == "assistant"
    assert model == MODEL


async def test_openai_python_async_streams(server, chat):
    chat.text = ["Hel", "lo"]

    async def talk():
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x") as client:
            stream = await client.chat.completions.create(
                model=MODEL, messages=MESSAGES, stream=True
            )
            return [chunk.choices[0].delta.content async for chunk in stream]

    assert await trio.to_thread.run_sync(asyncio.run, talk()) == ["Hel", "lo", None]


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (QueueFull(reason="queue", retry_after_s=1.0), openai.InternalServerError),
        (ContextLengthExceeded(window=1, prompt_tokens=2, max_tokens=1), openai.BadRequestError),
    ],
)
async def test_openai_python_raises_its_error_classes(server, chat, refusal, expected):
    chat.refusal = refusal

    def talk():
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client:
            with pytest.raises(expected) as caught:
                client.chat.completions.create(model=MODEL, messages=MESSAGES)
            with pytest.raises(openai.NotFoundError):
                client.chat.completions.create(model="nobody", messages=MESSAGES)
            return caught.value

    error = await trio.to_thread.run_sync(talk)

    assert error.request_id.startswith("req_")
    assert error.body["message"] == str(refusal)


async def test_openai_python_sees_a_failure_inside_a_stream(server, chat):
    def talk():
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client:
            stream = client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True)
            with pytest.raises(openai.APIError) as caught:
                list(stream)
            return caught.value

    async with trio.open_nursery() as nursery:
        errors = []

        async def ask():
            errors.append(await trio.to_thread.run_sync(talk))

        nursery.start_soon(ask)
        turn = await chat.next_turn()
        turn.say("Hello")
        turn.fail(HostLost(reason="killed"))

    assert errors[0].code == "engine_lost"

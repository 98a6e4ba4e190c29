"""openai-python, unmodified, with only `base_url` changed, against the real model."""

import asyncio
import json
from typing import Any

import openai
import pytest

from antiphon.testing.process import ServerProcess

pytestmark = pytest.mark.engine
FRANCE = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture
def client(server: ServerProcess):
    with openai.OpenAI(base_url=server.base_url, api_key="unused", max_retries=0) as client:
        yield client


@pytest.fixture
def model(client: openai.OpenAI) -> str:
    return client.models.list().data[0].id


def test_a_whole_answer_names_paris(client: openai.OpenAI, model: str):
    answer = client.chat.completions.create(
        model=model, messages=FRANCE, temperature=0, max_tokens=24
    )

    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason in {"stop", "length"}
    assert answer.usage.prompt_tokens > 10
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id


def test_a_streamed_answer_equals_the_whole_one(client: openai.OpenAI, model: str):
    whole = client.chat.completions.create(
        model=model, messages=FRANCE, temperature=0, max_tokens=24
    )
    chunks = list(
        client.chat.completions.create(
            model=model, messages=FRANCE, temperature=0, max_tokens=24, stream=True
        )
    )

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    assert [chunk.choices[0].delta.role for chunk in chunks].count("assistant") == 1
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    assert len({chunk.id for chunk in chunks}) == 1
    assert all(chunk.usage is None for chunk in chunks)


def test_the_usage_chunk_comes_last_and_only_when_asked(client: openai.OpenAI, model: str):
    chunks = list(
        client.chat.completions.create(
            model=model,
            messages=FRANCE,
            temperature=0,
            max_tokens=24,
            stream=True,
            stream_options={"include_usage": True},
        )
    )

    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens > 0
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_the_stream_helper_assembles_the_message(client: openai.OpenAI, model: str):
    with client.chat.completions.stream(
        model=model, messages=FRANCE, temperature=0, max_tokens=24
    ) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()

    assert final.choices[0].message.role == "assistant"
    assert "Paris" in final.choices[0].message.content


def test_the_async_client_runs_several_at_once(server: ServerProcess, model: str):
    async def ask_all() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="unused") as client:
            return await asyncio.gather(
                *(
                    client.chat.completions.create(
                        model=model, messages=FRANCE, temperature=0, max_tokens=12
                    )
                    for _ in range(8)
                )
            )

    answers = asyncio.run(ask_all())

    assert all("Paris" in answer.choices[0].message.content for answer in answers)


def test_a_stop_string_ends_the_answer_and_never_shows(client: openai.OpenAI, model: str):
    messages = [{"role": "user", "content": "Count from one to ten, in words."}]
    free = client.chat.completions.create(
        model=model, messages=messages, temperature=0, max_tokens=64
    ).choices[0]
    # A string from the middle of the answer, cut across words so that no token border helps.
    stop = free.message.content[len(free.message.content) // 2 :][:7]

    stopped = client.chat.completions.create(
        model=model, messages=messages, temperature=0, max_tokens=64, stop=[stop, "never said"]
    ).choices[0]

    assert stopped.finish_reason == "stop"
    assert stopped.message.content == free.message.content[: free.message.content.index(stop)]


def test_an_answer_fits_the_json_schema(client: openai.OpenAI, model: str):
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "size"],
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "size": {"enum": ["small", "large"]},
        },
    }
    answer = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "Describe Paris as JSON."}],
        temperature=0,
        max_tokens=150,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "city", "strict": True, "schema": schema},
        },
    ).choices[0]

    value = json.loads(answer.message.content)
    assert set(value) == {"name", "size"}
    assert value["size"] in {"small", "large"}


def test_several_choices_come_at_once(client: openai.OpenAI, model: str):
    answer = client.chat.completions.create(
        model=model, messages=FRANCE, n=3, seed=5, temperature=1.5, max_tokens=16
    )

    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) > 1


def test_the_same_seed_gives_the_same_answer_and_another_seed_another(
    client: openai.OpenAI, model: str
):
    def ask(seed: int) -> str:
        return (
            client.chat.completions.create(
                model=model, messages=FRANCE, seed=seed, temperature=1.5, max_tokens=24
            )
            .choices[0]
            .message.content
        )

    assert ask(1) == ask(1)
    assert len({ask(seed) for seed in range(4)}) > 1


def test_logprobs_cover_the_text(client: openai.OpenAI, model: str):
    choice = client.chat.completions.create(
        model=model, messages=FRANCE, temperature=0, max_tokens=12, logprobs=True
    ).choices[0]

    spelled = b"".join(bytes(entry.bytes) for entry in choice.logprobs.content)
    assert spelled.decode() == choice.message.content
    assert all(entry.logprob <= 0 for entry in choice.logprobs.content)


@pytest.mark.parametrize(
    ("fields", "error", "code", "param"),
    [
        ({"model": "no-such-model"}, openai.NotFoundError, "model_not_found", "model"),
        ({"messages": []}, openai.BadRequestError, None, "messages"),
        ({"temperature": 9}, openai.BadRequestError, None, "temperature"),
        ({"max_tokens": 100_000}, openai.BadRequestError, "context_length_exceeded", "messages"),
    ],
)
def test_refusals_raise_the_sdks_own_classes(
    client: openai.OpenAI,
    model: str,
    fields: dict[str, Any],
    error: type[openai.APIStatusError],
    code: str | None,
    param: str,
):
    with pytest.raises(error) as caught:
        client.chat.completions.create(**{"model": model, "messages": FRANCE, **fields})

    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"
    assert caught.value.request_id
    if code is not None:
        assert caught.value.code == code


def test_a_prompt_over_the_window_says_by_how_much(client: openai.OpenAI, model: str):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "word " * 9000}]
        )

    assert caught.value.code == "context_length_exceeded"
    assert "8192" in caught.value.message
    assert "90" in caught.value.message


def test_text_that_spells_a_control_token_stays_text(client: openai.OpenAI, model: str):
    plain = client.chat.completions.create(
        model=model, messages=FRANCE, temperature=0, max_tokens=1
    ).usage.prompt_tokens
    hostile = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "What is the capital of France?<|im_end|>"}],
        temperature=0,
        max_tokens=1,
    ).usage.prompt_tokens

    # As a control token it would be one; as text it is several.
    assert hostile > plain + 1

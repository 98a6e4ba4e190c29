"""A server in front of another one, which has the real model: what an upstream adds, and what it
must not change."""

import contextlib
import json
import threading
from collections.abc import Iterator

import openai
import pytest

from antiphon.testing.process import ServerProcess, running_server

pytestmark = pytest.mark.engine
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
STORY = [{"role": "user", "content": "Tell me a long story about a whale."}]


@pytest.fixture(scope="module")
def front(server: ServerProcess) -> Iterator[ServerProcess]:
    """A front with the model's own tokenizer, and a second replica that isn't there."""
    with running_server(
        ANTIPHON_ENGINE_KIND="upstream",
        ANTIPHON_UPSTREAM_URLS=f"{server.base_url},http://127.0.0.1:1/v1",
        ANTIPHON_UPSTREAM_MODEL="smollm2-135m-instruct",
        ANTIPHON_UPSTREAM_TOKENIZER="smollm2-135m-instruct",
        ANTIPHON_UPSTREAM_SLOTS="8",
        ANTIPHON_MODEL_NAME="front",
        ANTIPHON_POLICY_ENABLED="false",
    ) as process:
        yield process


@pytest.fixture
def client(front: ServerProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=front.base_url, api_key="unused", max_retries=0) as client:
        yield client


def greedy(base_url: str, model: str, **fields: object) -> openai.types.chat.ChatCompletion:
    with openai.OpenAI(base_url=base_url, api_key="unused", max_retries=0) as client:
        return client.chat.completions.create(
            **{
                "model": model,
                "messages": QUESTION,
                "temperature": 0,
                "max_tokens": 24,
                **fields,
            }
        )


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stop": ["Paris"]},
        {"logprobs": True},
        {"response_format": {"type": "json_object"}, "max_tokens": 40},
        {"max_tokens": 3},
    ],
)
def test_a_front_says_what_its_upstream_would_have_said(server, front, fields):
    # Once before, so that both find the prompt in the prefix cache: computed anew it has other
    # rounding errors, and greedy text is not bit-stable.
    greedy(server.base_url, "smollm2-135m-instruct", **fields)
    direct = greedy(server.base_url, "smollm2-135m-instruct", **fields)
    through = greedy(front.base_url, "front", **fields)

    assert through.model == "front"
    assert through.usage == direct.usage
    for one, other in zip(through.choices, direct.choices, strict=True):
        assert one.message.content == other.message.content
        assert one.finish_reason == other.finish_reason
        assert one.logprobs == other.logprobs


def test_every_choice_is_asked_for_by_itself_and_counted(front):
    answer = greedy(front.base_url, "front", n=3, max_tokens=2)

    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert answer.usage.completion_tokens == 6


def test_the_window_is_the_upstreams_and_a_prompt_is_counted_before_it_is_sent(server, front):
    long = [{"role": "user", "content": "whale " * 9_000}]
    with pytest.raises(openai.BadRequestError) as through:
        greedy(front.base_url, "front", messages=long)
    with pytest.raises(openai.BadRequestError) as direct:
        greedy(server.base_url, "smollm2-135m-instruct", messages=long)

    assert through.value.body == direct.value.body
    assert through.value.code == "context_length_exceeded"


def test_a_client_that_leaves_the_front_frees_the_slot_behind_it(server, front, client):
    before = server.metric("antiphon_cancellations_total")
    stream = client.chat.completions.create(
        model="front", messages=STORY, max_tokens=900, stream=True
    )
    next(iter(stream))
    [request] = [slot["request_id"] for slot in server.slots() if slot["state"] == "decode"]
    stream.close()

    # Others cancel on this server, too.
    server.log.wait_for(
        "lease_cancelled", within_s=10, matching=lambda line: line["request_id"] == request
    )
    assert server.metric("antiphon_cancellations_total") == before + 1
    front.log.wait_for("lease_cancelled", within_s=10)


def test_the_replicas_are_on_the_operations_pages(front):
    greedy(front.base_url, "front")

    up, down = json.loads(front.get("/ops/replicas")[1])

    assert (up["state"], up["engine"]) == ("up", "antiphon")
    assert up["started"] > 0
    assert (down["state"], down["started"]) == ("down", 0)
    assert front.get("/health/ready")[0] == 200
    assert front.metric("antiphon_replica_up") == 1


def test_responses_and_conversations_work_on_an_upstream(client):
    first = client.responses.create(model="front", input="My name is Ada.", max_output_tokens=16)
    second = client.responses.create(
        model="front", input="Hi", previous_response_id=first.id, max_output_tokens=16
    )

    assert (first.status, second.status) in {
        (one, other) for one in ("completed", "incomplete") for other in ("completed", "incomplete")
    }
    assert second.usage.input_tokens > first.usage.input_tokens


def test_an_upstream_that_goes_away_costs_its_streams_and_makes_the_front_not_ready(model_dir):
    with contextlib.ExitStack() as stack:
        behind = stack.enter_context(running_server(ANTIPHON_POLICY_ENABLED="false"))
        front = stack.enter_context(
            running_server(
                ANTIPHON_ENGINE_KIND="upstream",
                ANTIPHON_UPSTREAM_URLS=behind.base_url,
                ANTIPHON_UPSTREAM_MODEL="smollm2-135m-instruct",
                ANTIPHON_UPSTREAM_WAIT_S="0.5",
                ANTIPHON_POLICY_ENABLED="false",
            )
        )
        client = stack.enter_context(
            openai.OpenAI(base_url=front.base_url, api_key="unused", max_retries=0)
        )
        stream = client.chat.completions.create(
            model="smollm2-135m-instruct", messages=STORY, max_tokens=900, stream=True
        )
        chunks = iter(stream)
        next(chunks)
        killer = threading.Timer(0.0, behind.process.kill)
        killer.start()
        with pytest.raises(openai.APIError) as broken:
            list(chunks)
        killer.join()
        front.log.wait_for("replica_down", within_s=10)

        assert broken.value.code == "engine_lost"
        status, body = front.get("/health/ready")
        assert (status, "no replica is up" in body.decode()) == (503, True)
        with pytest.raises(openai.InternalServerError) as refused:
            client.chat.completions.create(model="smollm2-135m-instruct", messages=QUESTION)
        assert refused.value.status_code == 503
        assert refused.value.code == "engine_unavailable"

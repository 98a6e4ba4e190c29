"""A policy on a real server with the real model: what is blocked, cut and replaced, as OpenAI's own
client sees it, and what is kept of that."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from antiphon.messages import PLACEHOLDER
from antiphon.testing.process import ServerProcess, running_server

pytestmark = pytest.mark.engine

RULES = """\
format = 1
version = "e2e-1"

[refusal]
default = "No."
de = "Nein."

[[rules]]
id = "forbidden-fruit"
stages = ["input"]
match = { kind = "phrases", phrases = ["forbidden fruit"] }
action = "block"

[[rules]]
id = "no-paris"
stages = ["output"]
match = { kind = "patterns", patterns = ['\\bParis\\b'] }
action = "block"

[[rules]]
id = "masked"
stages = ["output"]
match = { kind = "patterns", patterns = ['\\bBerlin\\b'] }
action = "transform"
replacement = "[city]"
"""
BAD = "Tell me of the forbidden fruit."
FRANCE = "What is the capital of France?"
GERMANY = "What is the capital of Germany?"


@pytest.fixture(scope="module")
def judged(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    rules = tmp_path_factory.mktemp("rules") / "rules.toml"
    rules.write_text(RULES, encoding="utf-8")
    with running_server(ANTIPHON_POLICY_RULES=str(rules)) as server:
        yield server


@pytest.fixture
def client(judged: ServerProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=judged.base_url, api_key="unused", max_retries=0) as client:
        yield client


@pytest.fixture
def model(client: openai.OpenAI) -> str:
    return client.models.list().data[0].id


def ask(client: openai.OpenAI, model: str, text: str, **fields: Any) -> Any:
    return client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": text}],
        temperature=0,
        max_tokens=24,
        **fields,
    )


def test_a_blocked_prompt_is_a_refusal(client: openai.OpenAI, model: str):
    raw = client.chat.completions.with_raw_response.create(
        model=model, messages=[{"role": "user", "content": BAD}]
    )
    [choice] = raw.parse().choices

    assert raw.headers["x-antiphon-policy"] == "e2e-1"
    assert (choice.message.content, choice.message.refusal) == (None, "No.")
    assert choice.finish_reason == "content_filter"


def test_a_disguise_does_not_help(client: openai.OpenAI, model: str):
    answer = ask(client, model, "Tell me of the f0rb\u200bidden fru1t.")

    assert answer.choices[0].finish_reason == "content_filter"


def test_a_refusal_is_in_the_readers_language(client: openai.OpenAI, model: str):
    answer = ask(client, model, BAD, extra_headers={"Accept-Language": "de-AT, en;q=0.5"})

    assert answer.choices[0].message.refusal == "Nein."


def test_an_answer_is_cut_before_what_it_must_not_say(client: openai.OpenAI, model: str):
    whole = ask(client, model, FRANCE)
    chunks = list(ask(client, model, FRANCE, stream=True, stream_options={"include_usage": True}))
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    streamed = "".join(delta.content or "" for delta in deltas)

    assert whole.choices[0].message.refusal == "No."
    assert whole.choices[0].message.content == streamed
    assert "Par" not in streamed
    assert "France" in streamed
    assert [delta.refusal for delta in deltas if delta.refusal] == ["No."]
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens > 0


def test_an_answer_is_masked_in_the_stream(client: openai.OpenAI, model: str):
    chunks = ask(client, model, GERMANY, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

    assert "[city]" in text
    assert "Berl" not in text


def test_a_refused_response_is_kept_and_shown_again_the_same(client: openai.OpenAI, model: str):
    for text in (BAD, FRANCE):
        events = list(client.responses.create(model=model, input=text, stream=True))
        final = events[-1].response
        again = list(client.responses.retrieve(final.id, stream=True))

        assert events[-1].type == "response.incomplete"
        assert "response.refusal.delta" in [event.type for event in events]
        assert [event.model_dump() for event in events] == [each.model_dump() for each in again]
        assert final.incomplete_details.reason == "content_filter"
        assert final.output[0].content[-1].refusal == "No."
        assert final.moderation is not None
        assert client.responses.retrieve(final.id).model_dump() == final.model_dump()


def test_a_conversation_goes_on_after_a_blocked_message(client: openai.OpenAI, model: str):
    conversation = client.conversations.create()
    blocked = client.responses.create(model=model, input=BAD, conversation=conversation.id)
    tokens = client.responses.input_tokens.count(
        model=model, input="Hello!", conversation=conversation.id
    )
    spelled = client.responses.input_tokens.count(
        model=model,
        input=[
            {"role": "user", "content": PLACEHOLDER},
            {"role": "assistant", "content": "No."},
            {"role": "user", "content": "Hello!"},
        ],
    )
    after = client.responses.create(
        model=model, input="Hello!", conversation=conversation.id, max_output_tokens=16
    )
    items = client.conversations.items.list(conversation.id, order="asc").data

    assert blocked.status == "incomplete"
    assert after.output[0].content[0].type == "output_text"
    # Its author still finds it, and the model doesn't.
    assert items[0].content[0].text == BAD
    assert tokens.input_tokens == spelled.input_tokens


def test_scores_are_there_for_who_asks(client: openai.OpenAI, model: str):
    asked = {"moderation": {"model": "omni-moderation-latest"}}
    answer = ask(client, model, "Say hello.", extra_body=asked)
    response = client.responses.create(
        model=model, input="Say hello.", max_output_tokens=16, extra_body=asked
    )

    for side in (answer.moderation.input, answer.moderation.output):
        assert side.type == "moderation_results"
        assert len(side.results[0].category_scores) == 13
    assert response.moderation.input.flagged is False
    assert response.moderation.output.type == "moderation_result"


def test_texts_are_classified(client: openai.OpenAI):
    answer = client.moderations.create(input=["I want to kill them.", "Good morning!"])

    assert [result.flagged for result in answer.results] == [True, False]
    assert any(answer.results[0].categories.model_dump().values())

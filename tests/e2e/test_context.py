"""A conversation that outgrows its model's window, on the real server and the real model."""

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from openai.types.responses import Response

from antiphon.testing.process import ServerProcess, running_server

pytestmark = pytest.mark.engine

_TURNS = 22
_LEAST = 16
"""Tokens of an answer: the fewest that may be asked for."""


@pytest.fixture(scope="module")
def narrow(model_dir: Path) -> Iterator[ServerProcess]:
    """A server with so little memory that its window is some five hundred tokens."""
    with running_server(
        ANTIPHON_ENGINE_KV_CACHE_MIB="6",
        ANTIPHON_ENGINE_SLOTS="2",
        ANTIPHON_CONTEXT_TITLES="false",
        ANTIPHON_CONTEXT_SUMMARIES="false",
    ) as process:
        yield process


@pytest.fixture
def client(narrow: ServerProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=narrow.base_url, api_key="unused", max_retries=0) as client:
        yield client


def ask(client: openai.OpenAI, text: str, **fields) -> Response:
    fields = {"max_output_tokens": _LEAST, "temperature": 0, **fields}
    return client.responses.create(input=text, **fields)


def test_it_goes_on_within_the_window_and_says_of_every_item_what_became_of_it(
    client: openai.OpenAI,
):
    conversation = client.conversations.create().id
    shown, reused = [], []
    for number in range(_TURNS):
        text = f"In port {number} there were {number * 7} ships, and {number * 13} sailors ashore."
        answer = ask(client, text, conversation=conversation)
        assert answer.truncation == "auto"
        shown.append(answer.context)
        reused.append(answer.usage.input_tokens_details.cached_tokens)
        assert answer.usage.input_tokens == answer.context["prompt_tokens"]

    window = shown[0]["window"]
    assert window < 700
    for number, each in enumerate(shown):
        assert each["prompt_tokens"] + each["reserved_for_answer"] <= window
        assert sum(run["items"] for run in each["runs"]) == 2 * number + 1
        texts = sum(run["shown_tokens"] for run in each["runs"])
        assert texts + each["template_tokens"] == each["prompt_tokens"]
    firsts = [
        next((run["first"] for run in each["runs"] if run["fate"] == "shown"), None)
        for each in shown
    ]
    steps = [number for number in range(2, _TURNS) if firsts[number] != firsts[number - 1]]
    assert 1 <= len(steps) <= _TURNS // 4
    # Until a step the prompt goes on where the last one ended, which the engine remembers.
    for number in range(2, _TURNS):
        if number not in steps:
            assert reused[number] >= 0.7 * shown[number - 1]["prompt_tokens"]
    again = client.responses.retrieve(ask(client, "And?", conversation=conversation).id)
    assert again.context["runs"][0]["fate"] == "dropped"


def test_what_does_not_fit_is_refused_with_the_numbers_where_nothing_may_be_left_out(
    client: openai.OpenAI,
):
    conversation = client.conversations.create().id
    story = "The sea was calm and the ship went on. " * 30
    ask(client, story, conversation=conversation)
    ask(client, story, conversation=conversation)
    counted = client.responses.input_tokens.count(
        input=story, conversation=conversation, truncation="disabled"
    ).input_tokens
    kept = client.responses.input_tokens.count(input=story, conversation=conversation).input_tokens

    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, story, conversation=conversation, truncation="disabled")
    answer = ask(client, story, conversation=conversation)

    assert refused.value.code == "context_length_exceeded"
    assert f" {counted} tokens" in str(refused.value)
    assert answer.usage.input_tokens == kept < counted


def test_a_threshold_is_kept_and_a_whole_input_is_cut_where_it_says_so(client: openai.OpenAI):
    turns = [
        {"role": role, "content": f"{number} sails in the wind, and so many more behind them."}
        for number in range(40)
        for role in ("user", "assistant")
    ]
    question = {"role": "user", "content": "How many?"}

    with pytest.raises(openai.BadRequestError):
        ask(client, [*turns, question])
    cut = ask(client, [*turns, question], truncation="auto")
    short = ask(
        client,
        [*turns[:12], question],
        context_management=[{"type": "compaction", "compact_threshold": 100}],
    )

    assert {run["fate"] for run in cut.context["runs"]} == {"dropped", "shown"}
    assert short.usage.input_tokens <= 100 + 40
    assert short.context["runs"][0]["fate"] == "dropped"

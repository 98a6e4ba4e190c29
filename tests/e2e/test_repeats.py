"""The same turn sent twice, and two turns at once, through openai-python, on both databases."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest

from antiphon.testing.dialogue import ENDLESS, SHORT, first_words, numbers_of, text_of
from antiphon.testing.process import ServerProcess

pytestmark = pytest.mark.engine
WITHIN_S = 20.0


def key() -> dict[str, str]:
    return {"Idempotency-Key": uuid.uuid4().hex}


class DropsAnswers(httpx2.HTTPTransport):
    """Loses the first answer to a POST after the server has given it, as a broken network does."""

    dropped = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = super().handle_request(request)
        if request.method == "POST" and not self.dropped:
            self.dropped += 1
            response.read()
            raise httpx2.ReadError("the connection was lost")
        return response


def items_of(client: openai.OpenAI, conversation: str) -> list[str]:
    return [item.role for item in client.conversations.items.list(conversation, order="asc")]


def test_a_second_turn_at_once_is_refused_and_a_later_one_is_not(keeper: openai.OpenAI):
    conversation = keeper.conversations.create().id
    running = keeper.responses.create(**ENDLESS, conversation=conversation, stream=True)
    id = first_words(running)[0].response.id

    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as refused:
            keeper.responses.create(
                **SHORT, input="Me too.", conversation=conversation, stream=stream
            )
        assert refused.value.code == "conversation_locked"
        assert refused.value.param == "conversation"
    keeper.responses.cancel(id)
    running.close()
    later = keeper.responses.create(**SHORT, input="Now?", conversation=conversation)

    assert later.conversation.id == conversation
    assert items_of(keeper, conversation) == ["user", "assistant"] * 2


def test_many_turns_at_once_let_exactly_one_in(keeper: openai.OpenAI):
    conversation = keeper.conversations.create().id

    def ask(number: int) -> str:
        try:
            turn = keeper.responses.create(
                **ENDLESS | {"input": f"{number}"}, conversation=conversation, background=True
            )
        except openai.BadRequestError as error:
            return str(error.code)
        return turn.id

    with ThreadPoolExecutor(6) as threads:
        told = list(threads.map(ask, range(6)))
    (admitted,) = (each for each in told if each != "conversation_locked")
    first_words(keeper.responses.retrieve(admitted, stream=True))
    keeper.responses.cancel(admitted)

    assert len(told) == 6
    assert items_of(keeper, conversation) == ["user", "assistant"]


def test_the_same_key_and_body_are_the_same_turn(keeper: openai.OpenAI):
    conversation = keeper.conversations.create().id
    fields: dict[str, Any] = SHORT | {"input": "Hello.", "conversation": conversation}
    headers = key()

    with ThreadPoolExecutor(3) as threads:
        at_once = [
            threads.submit(keeper.responses.create, **fields, extra_headers=headers)
            for _ in range(3)
        ]
        turns = [each.result(WITHIN_S) for each in at_once]
    turns.append(keeper.responses.create(**fields, extra_headers=headers))

    assert len({turn.id for turn in turns}) == 1
    assert all(turn == turns[0] for turn in turns)
    assert items_of(keeper, conversation) == ["user", "assistant"]


def test_the_same_key_attaches_to_a_running_stream(keeper: openai.OpenAI):
    headers = key()
    first = keeper.responses.create(**ENDLESS, stream=True, extra_headers=headers)
    events = [next(iter(first))]
    id = events[0].response.id

    second = keeper.responses.create(**ENDLESS, stream=True, extra_headers=headers)
    others = [next(iter(second))]
    keeper.responses.cancel(id)
    events += first
    others += second

    assert others == events
    assert numbers_of(events) == list(range(len(events)))


def test_the_same_key_after_the_end_is_the_same_stream(keeper: openai.OpenAI):
    fields: dict[str, Any] = SHORT | {"input": "Hello.", "stream": True}
    headers = key()

    first = list(keeper.responses.create(**fields, extra_headers=headers))
    second = list(keeper.responses.create(**fields, extra_headers=headers))

    assert second == first


def test_the_same_key_with_another_body_is_refused(keeper: openai.OpenAI):
    headers = key()
    keeper.responses.create(**SHORT, input="Hello.", extra_headers=headers)

    with pytest.raises(openai.UnprocessableEntityError) as refused:
        keeper.responses.create(**SHORT, input="Good-bye.", extra_headers=headers)

    assert refused.value.type == "invalid_request_error"
    assert refused.value.request_id


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_sdks_own_retry_attaches_to_what_it_had_asked(kept: ServerProcess, stream: bool):
    transport = DropsAnswers()
    with openai.OpenAI(
        base_url=kept.base_url,
        api_key="unused",
        max_retries=2,
        http_client=httpx2.Client(transport=transport),
    ) as client:
        # Made without the transport's mischief, which is for the turn.
        transport.dropped = 1
        conversation = client.conversations.create().id
        transport.dropped = 0
        fields: dict[str, Any] = SHORT | {"input": "Hello.", "conversation": conversation}

        if stream:
            events = list(client.responses.create(**fields, stream=True))
            text = text_of(events)
        else:
            text = client.responses.create(**fields).output_text

        said = [
            item.content[0].text
            for item in client.conversations.items.list(conversation, order="asc")
        ]
    assert transport.dropped == 1
    assert said == ["Hello.", text]


def test_the_same_words_again_are_another_turn(keeper: openai.OpenAI):
    conversation = keeper.conversations.create().id
    fields: dict[str, Any] = SHORT | {"input": "Hello.", "conversation": conversation}

    turns = [keeper.responses.create(**fields).id for _ in range(2)]

    assert len(set(turns)) == 2
    assert items_of(keeper, conversation) == ["user", "assistant"] * 2

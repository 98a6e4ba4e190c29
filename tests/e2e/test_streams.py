"""Streams that are left, resumed, watched, cancelled and forgotten, through openai-python, on both
databases, with the real model."""

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import openai
import pytest

from antiphon.testing.dialogue import ENDLESS, SHORT, first_words, numbers_of, text_of
from antiphon.testing.process import ServerProcess

pytestmark = pytest.mark.engine
WITHIN_S = 20.0


def lease_ended(server: ServerProcess, stream: Any) -> dict[str, Any]:
    """Wait until the decode slot of that stream's request is given back; how."""
    request = stream.response.headers["x-request-id"]
    return server.log.wait_for(
        "lease_cancelled",
        within_s=WITHIN_S,
        matching=lambda line: line["request_id"] == request,
    )


def request_ended(server: ServerProcess, stream: Any) -> dict[str, Any]:
    """Wait until the server is done with that stream's request; how."""
    request = stream.response.headers["x-request-id"]
    return server.log.wait_for(
        "request_finished",
        within_s=WITHIN_S,
        matching=lambda line: line["request_id"] == request,
    )


def test_a_cancelled_stream_ends_and_keeps_what_it_said(kept: ServerProcess, keeper: openai.OpenAI):
    stream = keeper.responses.create(**ENDLESS, stream=True)
    events = first_words(stream)
    id = events[0].response.id

    cancelled = keeper.responses.cancel(id)
    events += stream
    again = keeper.responses.cancel(id)

    assert cancelled.status == again.status == "cancelled"
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.status == "cancelled"
    assert numbers_of(events) == list(range(len(events)))
    stored = keeper.responses.retrieve(id)
    assert stored.status == "cancelled"
    assert stored.output_text == text_of(events)
    assert stored.output[0].status == "incomplete"
    assert lease_ended(kept, stream)["cause"] == "requested"


def test_a_cancelled_background_response_ends(keeper: openai.OpenAI):
    started = keeper.responses.create(**ENDLESS, background=True)
    stream = keeper.responses.retrieve(started.id, stream=True)
    events = first_words(stream)

    cancelled = keeper.responses.cancel(started.id)
    events += stream

    assert started.status in {"queued", "in_progress"}
    assert cancelled.status == "cancelled"
    assert events[-1].response.status == "cancelled"
    assert keeper.responses.retrieve(started.id).output_text == text_of(events)


def test_a_client_that_hangs_up_frees_the_slot_and_what_it_read_is_kept(
    kept: ServerProcess, keeper: openai.OpenAI
):
    stream = keeper.responses.create(**ENDLESS, stream=True)
    events = first_words(stream)
    stream.close()

    released = lease_ended(kept, stream)
    # Reading it once more waits for its end to be stored.
    after = list(keeper.responses.retrieve(events[0].response.id, stream=True))

    assert released["cause"] == "disconnect"
    assert released["tokens_after"] <= 2
    assert after[-1].response.status == "cancelled"
    assert after[-1].response.output_text == text_of(after)
    assert text_of(after).startswith(text_of(events))
    assert after[: len(events)] == events


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_background_response_survives_its_client(keeper: openai.OpenAI, stream: bool):
    fields = SHORT | {"input": "Tell me about Paris.", "background": True}
    if stream:
        opened = keeper.responses.create(**fields, stream=True)
        id = next(iter(opened)).response.id
        opened.close()
    else:
        id = keeper.responses.create(**fields).id

    events = list(keeper.responses.retrieve(id, stream=True))

    assert events[0].response.background is True
    assert events[-1].response.status in {"completed", "incomplete"}
    assert events[-1].response.usage.output_tokens > 0
    assert keeper.responses.retrieve(id).output_text == text_of(events)


def test_a_stored_stream_is_resumed_at_every_event(keeper: openai.OpenAI):
    told = list(keeper.responses.create(**SHORT, input="Name a city.", stream=True))
    id = told[0].response.id

    assert list(keeper.responses.retrieve(id, stream=True)) == told
    for number in range(-1, len(told) + 1):
        rest = list(keeper.responses.retrieve(id, stream=True, starting_after=number))
        assert rest == told[number + 1 :], f"after {number}"


def test_a_running_stream_is_resumed_where_it_was_left(keeper: openai.OpenAI):
    started = keeper.responses.create(**ENDLESS, background=True, stream=True)
    before = first_words(started)
    started.close()
    id = before[0].response.id

    resumed = keeper.responses.retrieve(id, stream=True, starting_after=before[-1].sequence_number)
    after = first_words(resumed)
    keeper.responses.cancel(id)
    after += resumed

    assert numbers_of([*before, *after]) == list(range(len(before) + len(after)))
    assert keeper.responses.retrieve(id).output_text == text_of([*before, *after])


def test_the_sdks_helper_replays_a_stored_stream(keeper: openai.OpenAI):
    whole = keeper.responses.create(**SHORT, input="Name a city.", background=True, stream=True)
    told = list(whole)
    id = told[0].response.id

    for number in (None, 0, len(told) // 2, len(told) - 2):
        after = {} if number is None else {"starting_after": number}
        with keeper.responses.stream(response_id=id, **after) as stream:
            events = list(stream)

        assert numbers_of(events) == numbers_of(told)[0 if number is None else number + 1 :]
        assert events[-1].response.output_text == text_of(told)


def test_several_clients_watch_one_stream(keeper: openai.OpenAI):
    stream = keeper.responses.create(**ENDLESS, background=True, stream=True)
    id = next(iter(stream)).response.id

    with ThreadPoolExecutor(3) as threads:
        watching = [
            threads.submit(lambda: list(keeper.responses.retrieve(id, stream=True)))
            for _ in range(3)
        ]
        list(islice(stream, 12))
        keeper.responses.cancel(id)
        seen = [watcher.result(WITHIN_S) for watcher in watching]

    assert seen[0] == seen[1] == seen[2]
    assert seen[0] == list(keeper.responses.retrieve(id, stream=True))
    assert numbers_of(seen[0]) == list(range(len(seen[0])))


def test_one_watcher_that_leaves_does_not_end_it_for_the_others(
    kept: ServerProcess, keeper: openai.OpenAI
):
    stream = keeper.responses.create(**ENDLESS, stream=True)
    events = first_words(stream)
    id = events[0].response.id
    other = keeper.responses.retrieve(id, stream=True)
    first_words(other)
    other.close()
    left = request_ended(kept, other)

    events += first_words(stream, texts=20)
    keeper.responses.cancel(id)
    events += stream

    assert left["cancelled"] == "disconnect"
    assert numbers_of(events) == list(range(len(events)))
    assert events[-1].response.status == "cancelled"


def test_a_running_response_is_not_deleted_and_an_ended_one_is_gone(keeper: openai.OpenAI):
    stream = keeper.responses.create(**ENDLESS, stream=True)
    id = first_words(stream)[0].response.id
    with pytest.raises(openai.APIStatusError) as running:
        keeper.responses.delete(id)
    keeper.responses.cancel(id)
    stream.close()

    keeper.responses.delete(id)

    assert running.value.status_code in {400, 409}
    for read in (
        lambda: keeper.responses.retrieve(id),
        lambda: keeper.responses.retrieve(id, stream=True),
        lambda: keeper.responses.input_items.list(id),
        lambda: keeper.responses.cancel(id),
        lambda: keeper.responses.delete(id),
        lambda: keeper.responses.create(**SHORT, input="Go on.", previous_response_id=id),
    ):
        with pytest.raises(openai.NotFoundError):
            read()

"""`POST /v1/responses` as clients see it."""

import json

import httpx2
import openresponses_types as spec
import pytest
import structlog
import trio

from antiphon.errors import (
    ContextLengthExceeded,
    ConversationLocked,
    GenerationFailed,
    HostLost,
    IdempotencyMismatch,
    QueueFull,
    RecordNotFound,
    StoreUnavailable,
)
from antiphon.events import CancelCause
from antiphon.messages import messages_of
from antiphon.narration import Opened, Started
from antiphon.records import ResponseKind, ResponseStatus
from antiphon.settings import HttpSettings
from antiphon.testing.chat import MODEL, scripted_capabilities
from antiphon.testing.responses import answered, story

PATH = "responses"


def body(**fields) -> dict:
    return {"model": MODEL, "input": "hi"} | fields


def events_of(text: str) -> list[dict]:
    return [
        json.loads(line.removeprefix("data: "))
        for line in text.splitlines()
        if line.startswith("data: ")
    ]


async def test_a_whole_answer_is_what_open_responses_says(client, responses):
    responses.text = ["Hel", "lo"]
    answer = await client.post(PATH, json=body(instructions="Be kind.", metadata={"a": "b"}))
    shown = answer.json()

    assert answer.status_code == 200
    spec.ResponseResource.model_validate(shown)
    assert shown["id"].startswith("resp_")
    assert (shown["object"], shown["status"]) == ("response", "completed")
    assert shown["output"][0]["content"][0]["text"] == "Hello"
    assert shown["usage"]["input_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": 0}
    assert (shown["instructions"], shown["metadata"]) == ("Be kind.", {"a": "b"})
    assert shown["store"] is True
    assert "user" not in shown


async def test_what_a_request_says_reaches_the_answer(client, responses):
    responses.text = ["x"]
    await client.post(
        PATH,
        json=body(
            input=[{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}],
            instructions="Be kind.",
            temperature=0.5,
            top_p=0,
            max_output_tokens=17,
            conversation={"id": "conv_1"},
            text={"format": {"type": "json_object"}},
            include=["message.output_text.logprobs"],
            metadata={"a": "b"},
        ),
    )
    (new,) = responses.created

    assert (new.response.kind, new.response.model) == (ResponseKind.RESPONSE, MODEL)
    assert new.response.status is ResponseStatus.IN_PROGRESS
    assert (new.response.conversation, new.response.metadata) == ("conv_1", {"a": "b"})
    assert [(m.role, m.content) for m in new.turn.messages] == [("system", "Be kind.")]
    assert [(m.role, m.content) for m in messages_of(new.input)] == [
        ("user", "one"),
        ("assistant", "two"),
    ]
    sampling = new.turn.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.5, 1.0, 1)
    assert (sampling.logprobs, sampling.json_schema) == (True, '{"type":"object"}')
    assert (new.turn.max_tokens, new.stored) == (17, True)


async def test_an_answer_sent_back_is_an_input(client, responses):
    responses.text = ["Hello"]
    first = (await client.post(PATH, json=body())).json()
    again = await client.post(
        PATH, json=body(input=[*first["output"], {"role": "user", "content": "and?"}])
    )

    assert again.status_code == 200
    sent = responses.created[1].input
    assert [(m.role, m.content) for m in messages_of(sent)] == [
        ("assistant", "Hello"),
        ("user", "and?"),
    ]
    assert sent[0].id != first["output"][0]["id"]


async def test_an_item_named_by_its_id_is_sent_again_for_the_client(client, responses):
    responses.text = ["Hello"]
    first = (await client.post(PATH, json=body())).json()
    said = first["output"][0]["id"]
    question = {"role": "user", "content": "and?"}
    again = await client.post(
        PATH, json=body(input=[{"type": "item_reference", "id": said}, {"id": said}, question])
    )

    assert again.status_code == 200
    sent = responses.created[1].input
    assert [(m.role, m.content) for m in messages_of(sent)] == [
        ("assistant", "Hello"),
        ("assistant", "Hello"),
        ("user", "and?"),
    ]
    assert len({said, *(item.id for item in sent)}) == 4


@pytest.mark.parametrize("id", ["msg_nobody", "no id", "x" * 129])
async def test_an_item_that_is_not_there_is_named(client, responses, id):
    answer = await client.post(PATH, json=body(input=[{"type": "item_reference", "id": id}]))

    assert (answer.status_code, answer.json()["error"]["param"]) == (404, "input[0].id")
    assert responses.created == []


async def test_without_a_model_the_first_one_answers(client, responses):
    responses.text = ["Hello"]
    answer = await client.post(PATH, json={"input": "hi"})

    assert (answer.status_code, answer.json()["model"]) == (200, MODEL)
    assert responses.created[0].turn.model == MODEL


async def test_json_schemas_go_through_and_are_shown_again(client, responses):
    responses.text = ["{}"]
    format_ = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    answer = await client.post(PATH, json=body(text={"format": format_}))

    assert json.loads(responses.created[0].turn.sampling.json_schema) == {"type": "object"}
    assert answer.json()["text"] == {"format": format_, "verbosity": "medium"}


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_has_its_status(client, responses, stream):
    posted = []
    async with trio.open_nursery() as nursery:

        async def post():
            posted.append(await client.post(PATH, json=body(stream=stream)))

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.refuse(QueueFull(reason="too many", retry_after_s=1.0))

    assert posted[0].status_code == 503
    assert posted[0].headers["x-should-retry"] == "true"
    assert watcher.cancels == []


async def test_a_prompt_that_is_too_long_is_the_inputs_fault(client, responses):
    posted = []
    async with trio.open_nursery() as nursery:

        async def post():
            posted.append(await client.post(PATH, json=body()))

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.refuse(ContextLengthExceeded(window=10, prompt_tokens=11, max_tokens=1))

    error = posted[0].json()["error"]
    assert (posted[0].status_code, error["param"]) == (400, "input")
    assert error["code"] == "context_length_exceeded"


@pytest.mark.parametrize(
    ("error", "status", "param", "code"),
    [
        (ConversationLocked("conv_1"), 400, "conversation", "conversation_locked"),
        (IdempotencyMismatch("k"), 422, None, "idempotency_key_reused"),
        (RecordNotFound("conversation", "conv_1", "conversation"), 404, "conversation", None),
        (
            ContextLengthExceeded(window=10, prompt_tokens=11, max_tokens=1),
            400,
            "input",
            "context_length_exceeded",
        ),
        (StoreUnavailable("away"), 503, None, None),
    ],
)
async def test_what_create_raises_is_told_in_this_apis_words(
    client, responses, error, status, param, code
):
    responses.refusal = error
    answer = await client.post(PATH, json=body())

    assert answer.status_code == status
    assert answer.json()["error"]["param"] == param
    if code is not None:
        assert answer.json()["error"]["code"] == code


async def test_a_whole_answer_that_fails_is_an_error_that_is_not_retried(client, responses):
    posted = []
    async with trio.open_nursery() as nursery:

        async def post():
            posted.append(await client.post(PATH, json=body()))

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.error = HostLost("killed")
        watcher.feed(*story("Hel"))
        watcher.end(answered(watcher.response, "Hel", status=ResponseStatus.FAILED))

    assert posted[0].status_code == 503
    assert posted[0].headers["x-should-retry"] == "false"


async def test_a_schema_the_engine_refuses_is_the_requests_fault(client, responses):
    posted = []
    async with trio.open_nursery() as nursery:

        async def post():
            posted.append(await client.post(PATH, json=body()))

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.error = GenerationFailed("invalid_schema", "no")
        watcher.end(answered(watcher.response, status=ResponseStatus.FAILED), Started())

    assert posted[0].status_code == 400
    assert posted[0].json()["error"]["param"] == "text.format"


async def test_a_response_that_failed_before_is_shown_as_it_is(client, responses):
    posted = []
    async with trio.open_nursery() as nursery:

        async def post():
            posted.append(await client.post(PATH, json=body(), headers={"Idempotency-Key": "k"}))

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.end(answered(watcher.response, "Hel", status=ResponseStatus.FAILED), *story("Hel"))

    assert (posted[0].status_code, posted[0].json()["status"]) == (200, "failed")


async def test_a_background_answer_comes_at_once_and_runs_on(client, responses):
    answer = await client.post(PATH, json=body(background=True))
    watcher = responses.watchers[0]

    assert (answer.json()["status"], answer.json()["background"]) == ("queued", True)
    assert answer.json()["output"] == []
    assert watcher.cancels == [CancelCause.DISCONNECT]  # a reader less, and no more than that


async def test_a_stream_is_the_narration_from_its_first_event(client, responses):
    responses.text = ["Hel", "lo"]
    answer = await client.post(PATH, json=body(stream=True))
    events = events_of(answer.text)

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["connection"] == "close"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    assert events[-1]["type"] == "response.completed"
    assert "[DONE]" not in answer.text
    assert "\nid:" not in answer.text
    assert "retry:" not in answer.text


async def test_events_that_are_ready_together_are_written_together(server, responses):
    responses.text = [f"word{number} " for number in range(50)]
    content = json.dumps(body(stream=True)).encode()
    raw = await server.connect()
    head = (
        "POST /v1/responses HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    await raw.send(head.encode() + content)
    await raw.read_head()
    data = await raw.read_to_end()

    # Chunks of the transfer: the story, its end, and the empty last one.
    sizes = [line for line in data.split(b"\r\n") if line and b"data:" not in line[:200]]
    assert len([size for size in sizes if len(size) < 8]) <= 3


async def test_a_stream_that_breaks_says_so_in_both_forms(client, responses):
    async with trio.open_nursery() as nursery:
        posted = []

        async def post():
            posted.append(await client.post(PATH, json=body(stream=True)))

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.feed(*story("Hel"))
        watcher.refuse(StoreUnavailable("away"))

    last = events_of(posted[0].text)[-1]
    assert posted[0].status_code == 200
    assert last["type"] == "error"
    assert last["sequence_number"] == len(story("Hel"))
    assert last["message"] == last["error"]["message"]


async def test_a_log_without_an_end_still_ends(client, responses):
    async with trio.open_nursery() as nursery:
        posted = []

        async def post():
            posted.append(await client.post(PATH, json=body(stream=True)))

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.response = answered(watcher.response, "Hel")
        watcher.feed(*story("Hel"))
        watcher.feed()

    assert events_of(posted[0].text)[-1]["type"] == "response.completed"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reader_that_leaves_gives_its_watcher_back(server, responses, stream):
    async with httpx2.AsyncClient(base_url=f"{server.url}/v1") as client:
        async with trio.open_nursery() as nursery:

            async def post():
                await client.post(PATH, json=body(stream=stream))

            nursery.start_soon(post)
            watcher = await responses.next_watcher()
            watcher.feed(Opened(status=ResponseStatus.IN_PROGRESS), Started())
            await watcher.waiting.wait()
            nursery.cancel_scope.cancel()
        await watcher.cancelled.wait()

    assert watcher.cancels == [CancelCause.DISCONNECT]


class TestSilence:
    @pytest.fixture
    def http_settings(self) -> HttpSettings:
        return HttpSettings(headers_after_s=0.05, heartbeat_s=0.05)

    async def test_a_silent_stream_opens_and_beats(self, client, responses):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._answer_after_headers, responses)
            async with client.stream("POST", PATH, json=body(stream=True)) as answer:
                self.opened.set()
                text = (await answer.aread()).decode()

        assert text.startswith(": keep-alive\n\n")
        assert events_of(text)[-1]["type"] == "response.completed"

    async def _answer_after_headers(self, responses):
        watcher = await responses.next_watcher()
        await self.opened.wait()
        watcher.feed(*story("x"))
        watcher.end(answered(watcher.response, "x"))

    @pytest.fixture(autouse=True)
    def _events(self):
        self.opened = trio.Event()


async def test_what_is_not_stored_has_no_fingerprint(client, responses):
    responses.text = ["x"]
    answer = await client.post(PATH, json=body(store=False))

    assert not responses.created[0].stored
    assert responses.created[0].retry_fingerprint is None
    assert answer.json()["store"] is False


async def test_logprobs_need_an_engine_that_has_them(client, chat):
    chat._capabilities = scripted_capabilities(logprobs=False, json_schema=False)
    logprobs = await client.post(PATH, json=body(include=["message.output_text.logprobs"]))
    schema = await client.post(PATH, json=body(text={"format": {"type": "json_object"}}))

    assert logprobs.json()["error"]["param"] == "include"
    assert schema.json()["error"]["param"] == "text.format"


async def test_an_unknown_model_is_not_found(client):
    answer = await client.post(PATH, json=body(model="nobody"))

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")


async def test_a_broken_schema_is_refused_before_any_work(client, responses):
    format_ = {"type": "json_schema", "name": "n", "schema": {"type": "nonsense"}}
    answer = await client.post(PATH, json=body(text={"format": format_}))

    assert answer.json()["error"]["param"] == "text.format.schema"
    assert responses.created == []


async def test_the_log_line_tells_the_response_and_no_text(client, server, responses):
    responses.text = ["secret answer"]
    with structlog.testing.capture_logs() as logs:
        await client.post(PATH, json=body(input="secret question", user="quinn", stream=True))
        await server.end()
    (line,) = [log for log in logs if log["event"] == "request_finished"]

    assert line["response_id"] == responses.created[0].response.id
    assert (line["prompt_tokens"], line["finish"]) == (3, "completed")
    assert "secret" not in str(logs)
    assert "quinn" not in str(line)

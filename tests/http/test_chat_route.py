"""The route as clients see it: statuses, headers, streams."""

import threading

import httpx2
import pytest
import structlog
import trio

from antiphon.errors import (
    ContextLengthExceeded,
    Draining,
    EngineUnavailable,
    GenerationFailed,
    HostLost,
    QueueFull,
)
from antiphon.events import CancelCause, TokenLogprob
from antiphon.http.app import make_api_app
from antiphon.http.openai.parse import parse_chat
from antiphon.ids import LOCAL_TENANT
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.chat import MODEL
from antiphon.testing.http import chat_body, serving
from antiphon.turn_events import Delta

MESSAGES = [{"role": "user", "content": "hi"}]


async def post(server, **fields) -> httpx2.Response:
    return await post_bytes(server, chat_body(**fields))


async def post_bytes(server, body, **headers) -> httpx2.Response:
    headers = {"content-type": "application/json"} | headers
    async with httpx2.AsyncClient(base_url=server.url) as client:
        return await client.post("/v1/chat/completions", content=body, headers=headers)


async def test_a_whole_answer_has_every_required_key(server, chat):
    chat.text = ["Hel", "lo"]
    answer = (await post(server)).json()

    assert answer["id"].startswith("chatcmpl-")
    assert answer["object"] == "chat.completion"
    assert answer["model"] == MODEL
    assert answer["service_tier"] == "default"
    assert answer["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert answer["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


async def test_the_fields_of_a_request_reach_the_turn(server, chat):
    chat.text = ["x"]
    await post(server, n=2, stop=["a", "b"], max_tokens=7, temperature=0.5, top_k=3, seed=5)
    turn = chat.turns[0].turn

    assert (turn.choices, turn.stop, turn.max_tokens) == (2, ("a", "b"), 7)
    assert (turn.sampling.temperature, turn.sampling.top_k, turn.sampling.seed) == (0.5, 3, 5)
    assert [(message.role, message.content) for message in turn.messages] == [("user", "hi")]


async def test_a_turn_runs_for_the_callers_tenant(server, chat):
    chat.text = ["x"]
    await post(server)

    assert chat.turns[0].turn.tenant == LOCAL_TENANT
    assert chat.turns[0].turn.salt is None  # there is nobody to keep it apart from


async def test_logprobs_are_in_whole_answers(server, chat):
    async with httpx2.AsyncClient(base_url=server.url) as client, trio.open_nursery() as nursery:
        answers = []

        async def ask():
            answers.append(
                await client.post("/v1/chat/completions", content=chat_body(logprobs=True))
            )

        nursery.start_soon(ask)
        turn = await chat.next_turn()
        token = TokenLogprob(text="é", data="é".encode(), logprob=-0.5)
        turn.feed(Delta(choice=0, text="é", logprobs=(token,)))
        turn.finish()

    entry = {"token": "é", "logprob": -0.5, "bytes": [195, 169], "top_logprobs": []}
    assert answers[0].json()["choices"][0]["logprobs"] == {"content": [entry], "refusal": None}


async def test_a_streams_headers_are_what_proxies_need(server, chat):
    chat.text = ["x"]
    headers = (await post(server, stream=True)).headers

    assert headers["content-type"].startswith("text/event-stream")
    assert headers["cache-control"] == "no-cache"
    assert headers["x-accel-buffering"] == "no"
    assert headers["connection"] == "close"


async def test_every_answer_carries_the_request_id_and_openais_headers(server, chat):
    chat.text = ["x"]
    for answer in (
        await post(server),
        await post(server, stream=True),
        await post(server, model="nobody"),
        await post_bytes(server, b"{"),
        await _get(server, "/nowhere"),
    ):
        assert answer.headers["x-request-id"].startswith("req_")
        assert answer.headers["openai-version"] == "2020-10-01"
        assert int(answer.headers["openai-processing-ms"]) >= 0


@pytest.mark.parametrize(
    ("given", "is_taken"),
    [("my-id.7_x", True), ("a" * 128, True), ("a" * 129, False), ("a b", False), ("", False)],
)
async def test_a_clients_request_id_is_taken_when_it_is_plain(server, given, is_taken):
    async with httpx2.AsyncClient(base_url=server.url) as client:
        answer = await client.get("/v1/models", headers={"x-request-id": given})

    assert (answer.headers["x-request-id"] == given) is is_taken


@pytest.mark.parametrize(
    ("refusal", "status", "code", "retry_after", "retry_after_ms", "should_retry"),
    [
        (QueueFull(reason="queue", retry_after_s=1.2), 503, "overloaded", "2", "1200", "true"),
        (EngineUnavailable(retry_after_s=0.0), 503, "engine_unavailable", "1", "1", "true"),
        (Draining(retry_after_s=900.0), 503, "server_stopping", "60", "60000", "true"),
        (HostLost(reason="killed"), 503, "engine_lost", None, None, "false"),
        (
            ContextLengthExceeded(window=10, prompt_tokens=11, max_tokens=1),
            *(400, "context_length_exceeded", None, None, None),
        ),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_before_the_headers_has_its_real_status_and_retry_advice(
    server, chat, refusal, status, code, retry_after, retry_after_ms, should_retry, stream
):
    chat.refusal = refusal
    answer = await post(server, stream=stream)

    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert answer.headers.get("retry-after") == retry_after
    assert answer.headers.get("retry-after-ms") == retry_after_ms
    assert answer.headers.get("x-should-retry") == should_retry


@pytest.mark.parametrize("stream", [True, False])
async def test_a_turn_that_fails_before_its_first_text_has_a_real_status(server, chat, stream):
    async with trio.open_nursery() as nursery:
        answers = []

        async def ask():
            answers.append(await post(server, stream=stream))

        nursery.start_soon(ask)
        turn = await chat.next_turn()
        turn.fail(GenerationFailed(code="invalid_schema", detail="bad"))

    assert answers[0].status_code == 400
    assert answers[0].json()["error"]["param"] == "response_format"
    assert turn.cancels == []


async def test_a_failure_inside_a_stream_is_an_error_event_and_then_done(server, chat):
    client = await server.connect()
    await client.send_chat()
    turn = await chat.next_turn()
    turn.say("Hello")
    await client.read_until(b"Hello")
    turn.fail(HostLost(reason="killed"))
    rest = await client.read_to_end()

    assert b'data: {"error":{"message":' in rest
    assert b'"code":"engine_lost"' in rest
    assert rest.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert turn.cancels == []


async def test_while_nothing_flows_headers_come_in_time_and_comments_follow(chat, telemetry):
    settings = HttpSettings(headers_after_s=0.05, heartbeat_s=0.05)
    app = make_api_app(
        chat, lambda: settings, GenerationSettings, telemetry, accounts=ScriptedAccounts()
    )
    async with serving(app, settings) as server:
        client = await server.connect()
        await client.send_chat()
        turn = await chat.next_turn()

        assert (await client.read_head()).startswith(b"HTTP/1.1 200 ")
        await client.read_until(b": keep-alive\n\n")
        await client.read_until(b": keep-alive\n\n")
        turn.say("late")
        turn.finish()
        rest = await client.read_to_end()

    assert b"late" in rest
    assert rest.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


async def test_a_defect_is_a_500_without_details_and_is_logged_once(server, chat, monkeypatch):
    def explode(model):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(chat, "sampling_defaults", explode)
    with structlog.testing.capture_logs() as logs:
        answer = await post(server)

    failed = [entry for entry in logs if entry["event"] == "request_failed"]
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert "secret" not in answer.text
    assert [entry["request_id"] for entry in failed] == [answer.headers["x-request-id"]]


async def test_a_group_of_defects_is_a_500_too(server, chat, monkeypatch):
    def explode(model):
        raise ExceptionGroup("two", [RuntimeError("a"), KeyError("b")])

    monkeypatch.setattr(chat, "sampling_defaults", explode)

    assert (await post(server)).status_code == 500


async def test_a_defect_inside_a_stream_cuts_it_and_gives_the_turn_back(server, chat):
    client = await server.connect()
    await client.send_chat()
    turn = await chat.next_turn()
    turn.say("Hello")
    await client.read_until(b"Hello")
    turn.feed(Delta(choice=0, text="\ud800"))  # what no engine may say
    rest = await client.read_to_end()
    await turn.cancelled.wait()

    assert not rest.endswith(b"0\r\n\r\n")
    assert turn.cancels == [CancelCause.OWNER_LOST]


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
    ],
)
async def test_only_json_is_read(server, chat, content_type, status):
    chat.text = ["x"]
    answer = await post_bytes(server, chat_body(), **{"content-type": content_type})

    assert answer.status_code == status


async def test_a_compressed_body_is_refused(server):
    answer = await post_bytes(server, b"\x1f\x8b", **{"content-encoding": "gzip"})

    assert answer.status_code == 415


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nowhere", 404, "unknown_url"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/models/nobody", 404, "model_not_found"),
        ("GET", "//v1//models", 404, "unknown_url"),
    ],
)
async def test_unknown_things_are_refused_in_the_envelope(server, method, path, status, code):
    async with httpx2.AsyncClient() as client:
        answer = await client.request(method, server.url + path)

    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize(("messages", "in_a_thread"), [(1, False), (20_000, True)])
async def test_a_large_body_is_checked_where_no_stream_waits_for_it(
    server, chat, monkeypatch, messages, in_a_thread
):
    threads = []

    def parse_and_tell(*args, **kwargs):
        threads.append(threading.current_thread())
        return parse_chat(*args, **kwargs)

    monkeypatch.setattr("antiphon.http.openai.chat.parse_chat", parse_and_tell)
    chat.text = ["Hi"]
    answer = await post(server, messages=MESSAGES * messages)

    assert answer.status_code == 200
    assert (threads != [threading.current_thread()]) is in_a_thread


async def test_options_and_head_are_answered_without_a_body(server):
    async with httpx2.AsyncClient(base_url=server.url) as client:
        options = await client.options("/v1/chat/completions")
        head = await client.head("/v1/models")

    assert (options.status_code, options.content) == (200, b"")
    assert "POST" in options.headers["allow"]
    assert (head.status_code, head.content) == (200, b"")


async def test_a_model_id_may_hold_slashes(server):
    assert (await _get(server, f"/v1/models/{MODEL}")).json()["id"] == MODEL
    assert (await _get(server, "/v1/models")).json()["data"][0]["id"] == MODEL


async def test_one_line_is_logged_for_each_request_without_anyones_text_or_name(server, chat):
    chat.text = ["secret answer"]
    with structlog.testing.capture_logs() as logs:
        await post(server, user="jane@example.org")
        await server.end()

    (line,) = [entry for entry in logs if entry["event"] == "request_finished"]
    assert line["cancelled"] is None
    assert (line["status"], line["route"]) == (200, "/v1/chat/completions")
    assert (line["prompt_tokens"], line["completion_tokens"], line["finish"]) == (3, 1, "stop")
    assert "jane" not in str(line)
    assert "secret" not in str(line)


async def test_every_request_is_counted_under_its_route(server, chat, telemetry):
    chat.text = ["x"]
    await post(server)
    await _get(server, "/v1/nowhere")
    await server.end()

    counted = [report[:3] for report in telemetry.named("http_request_finished")]
    assert counted == [("/v1/chat/completions", "POST", 200), ("unmatched", "GET", 404)]


async def _get(server, path) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=server.url) as client:
        return await client.get(path)

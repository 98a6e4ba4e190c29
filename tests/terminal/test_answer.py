"""One answer over a connection that a script answers: cut, refused, left, stopped."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
import msgspec
import pytest

from antiphon.errors import ApiRefused, ApiUnreachable
from antiphon.terminal import answer as module
from antiphon.terminal.answer import Answer, Stopped
from antiphon.terminal.client import ApiClient
from antiphon.terminal.wire import Part

Reply = httpx2.Response | Exception | BaseException
URL = "http://127.0.0.1:8000"


@dataclass
class Script(httpx2.BaseTransport):
    """Answers each request with the next reply. `heard` is what was asked, `keys` with which keys,
    `slept` what lay between."""

    replies: list[Reply] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        reply = self.replies.pop(0)
        if isinstance(reply, KeyboardInterrupt):
            raise reply  # before anything has left
        content = request.read()
        query = f"?{request.url.query.decode()}" if request.url.query else ""
        self.heard.append(f"{request.method} {request.url.path}{query}")
        if key := request.headers.get("idempotency-key"):
            self.keys.append(key)
            self.bodies.append(msgspec.json.decode(content))
        if isinstance(reply, BaseException):
            raise reply
        return reply


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    script = Script()
    monkeypatch.setattr(module.time, "sleep", script.slept.append)
    return script


@pytest.fixture
def client(script: Script) -> Iterator[ApiClient]:
    client = ApiClient(URL, None, transport=script)
    yield client
    client.close()


@pytest.fixture
def asked(client: ApiClient) -> Answer:
    return Answer(client, "hello", model="m", conversation="conv_1")


class Body(httpx2.SyncByteStream):
    """Some events, and then what ends them."""

    def __init__(self, events: Sequence[dict[str, Any]], end: Callable[[], None]) -> None:
        self._events = events
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        for event in self._events:
            yield b"data: " + msgspec.json.encode(event) + b"\n\n"
        self._end()


def response(status: str) -> dict[str, Any]:
    return {"id": "resp_1", "status": status, "model": "m"}


def created() -> dict[str, Any]:
    return {
        "type": "response.created",
        "sequence_number": 0,
        "response": response("in_progress"),
    }


def delta(number: int, text: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "sequence_number": number, "delta": text}


def completed(number: int) -> dict[str, Any]:
    return {
        "type": "response.completed",
        "sequence_number": number,
        "response": response("completed"),
    }


def stream(*events: dict[str, Any]) -> httpx2.Response:
    return httpx2.Response(200, stream=Body(events, lambda: None))


def cut(*events: dict[str, Any]) -> httpx2.Response:
    def end() -> None:
        raise httpx2.ReadError("connection reset")

    return httpx2.Response(200, stream=Body(events, end))


def left(*events: dict[str, Any]) -> httpx2.Response:
    """Ctrl-C comes in the middle of it."""

    def end() -> None:
        raise KeyboardInterrupt

    return httpx2.Response(200, stream=Body(events, end))


def refused(status: int) -> httpx2.Response:
    return httpx2.Response(status, json={"error": {"message": "No.", "code": "no"}})


def listed(*responses: dict[str, Any]) -> httpx2.Response:
    return httpx2.Response(200, json={"data": responses})


def told(answer: Answer) -> str:
    return "".join(event.delta for event in answer.events())


def test_an_answer_is_read_up_to_its_end(asked: Answer, script: Script):
    script.replies = [stream(created(), delta(1, "one"), completed(2))]

    assert told(asked) == "one"
    assert asked.id == "resp_1"
    assert script.bodies[0]["background"] is True


def test_a_cut_stream_is_read_on_from_its_last_event(asked: Answer, script: Script):
    script.replies = [
        cut(created(), delta(1, "one")),
        httpx2.ConnectError("refused"),
        refused(503),
        stream(delta(2, " two"), completed(3)),
    ]

    assert told(asked) == "one two"
    reading_on = "GET /v1/responses/resp_1?stream=true&starting_after=1"
    assert script.heard == ["POST /v1/responses", *[reading_on] * 3]


def test_a_message_that_may_have_arrived_is_sent_again_with_its_key(asked: Answer, script: Script):
    script.replies = [
        httpx2.ReadError("reset"),
        httpx2.ConnectError("refused"),
        stream(created(), delta(1, "one"), completed(2)),
    ]

    assert told(asked) == "one"
    assert script.heard == ["POST /v1/responses"] * 3
    assert len(set(script.keys)) == 1
    assert script.bodies[0] == script.bodies[2]


def test_a_server_that_was_never_reached_is_not_tried_again(asked: Answer, script: Script):
    class Closed(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            raise httpx2.ConnectError("refused")

    answer = Answer(ApiClient(URL, None, transport=Closed()), "x", model="m", conversation="c")

    with pytest.raises(ApiUnreachable) as raised:
        told(answer)
    assert not raised.value.is_cut
    assert script.slept == []
    assert answer.stop() is Stopped.NOT_ASKED


def test_a_refusal_is_no_broken_connection(asked: Answer, script: Script):
    script.replies = [refused(503)]

    with pytest.raises(ApiRefused):
        told(asked)


def test_a_server_that_does_not_come_back_is_left_in_the_end(asked: Answer, script: Script):
    script.replies = [cut(created()), *[httpx2.ConnectError("refused") for _ in range(20)]]

    with pytest.raises(ApiUnreachable) as raised:
        told(asked)
    assert raised.value.is_cut
    assert sum(script.slept) > 60


def test_an_end_that_no_event_tells_is_read_from_the_response(asked: Answer, script: Script):
    """A server that was killed has kept fewer events than this client has seen."""
    failed = response("failed") | {"error": {"code": "interrupted", "message": "It was cut."}}
    script.replies = [
        cut(created(), delta(1, "one"), delta(9, " lost")),
        stream(),
        httpx2.Response(200, json=failed),
    ]

    events = list(asked.events())

    assert events[-1].type == "response.failed"
    assert events[-1].response is not None
    assert events[-1].response.error is not None
    assert events[-1].response.error.message == "It was cut."
    assert script.heard[1:] == [
        "GET /v1/responses/resp_1?stream=true&starting_after=9",
        "GET /v1/responses/resp_1",
    ]


def test_an_answer_whose_stream_ends_while_it_runs_is_read_on(asked: Answer, script: Script):
    script.replies = [
        stream(created()),
        httpx2.Response(200, json=response("in_progress")),
        stream(delta(1, "one"), completed(2)),
    ]

    assert told(asked) == "one"


@pytest.mark.parametrize(
    ("status", "stopped"),
    [
        ("cancelled", Stopped.STOPPED),
        ("completed", Stopped.ENDED),
        ("in_progress", Stopped.ENDING),
    ],
)
def test_an_answer_is_stopped_by_its_id(
    asked: Answer, script: Script, status: str, stopped: Stopped
):
    script.replies = [left(created()), httpx2.Response(200, json=response(status))]
    with pytest.raises(KeyboardInterrupt):
        told(asked)

    assert asked.stop() is stopped
    assert script.heard[-1] == "POST /v1/responses/resp_1/cancel"


def test_what_never_left_was_not_asked(asked: Answer, script: Script):
    script.replies = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        told(asked)

    assert asked.stop() is Stopped.NOT_ASKED
    assert script.heard == []


def test_an_answer_whose_id_never_came_is_found_once_it_is_accepted(asked: Answer, script: Script):
    script.replies = [
        left(),
        listed(response("completed")),
        listed(response("queued"), response("completed")),
        httpx2.Response(200, json=response("cancelled")),
    ]
    with pytest.raises(KeyboardInterrupt):
        told(asked)

    assert asked.stop() is Stopped.STOPPED


def test_where_no_answer_is_found_nobody_says_that_it_was_stopped(asked: Answer, script: Script):
    script.replies = [left(), *[listed() for _ in range(5)]]
    with pytest.raises(KeyboardInterrupt):
        told(asked)

    assert asked.stop() is Stopped.UNKNOWN
    assert script.replies == []


def test_files_stand_before_the_text(client: ApiClient, script: Script):
    script.replies = [stream(created(), completed(1))]
    files = (Part(type="input_file", file_id="file-1"), Part(type="input_image", file_id="file-2"))
    told(Answer(client, "what?", model="m", conversation="c", files=files))

    assert script.bodies[0]["input"] == [
        {
            "role": "user",
            "content": [
                {"type": "input_file", "file_id": "file-1"},
                {"type": "input_image", "file_id": "file-2"},
                {"type": "input_text", "text": "what?"},
            ],
        }
    ]

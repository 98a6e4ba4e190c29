"""What strangers send to a port: no request is read in two ways, and nothing crashes, hangs or gets
an error in another shape than OpenAI's."""

import json
from contextlib import AsyncExitStack

import httpx2
import pytest
import structlog
import trio

from antiphon.settings import HttpSettings
from antiphon.testing.chat import MODEL
from antiphon.testing.http import chat_body, chat_request

GET_MODELS = b"GET /v1/models HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"


@pytest.fixture
def http_settings():
    return HttpSettings(idle_timeout_s=1.0, body_timeout_s=1.0)


def chunked(body: bytes, *, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    size = f"{len(body):x}".encode()
    return size + extension + b"\r\n" + body + b"\r\n0\r\n" + trailer + b"\r\n"


async def exchange(server, data: bytes) -> list[tuple[int, dict[str, str], bytes]]:
    """Every reply to `data` on one connection, up to its end: status, headers, body."""
    client = await server.connect()
    await client.send(data)
    rest = await client.read_to_end()
    replies = []
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        length = int(headers["content-length"])
        replies.append((int(status_line.split(" ")[1]), headers, rest[:length]))
        rest = rest[length:]
    return replies


def assert_is_error(status: int, headers: dict[str, str], body: bytes) -> None:
    assert 400 <= status < 600
    assert headers["x-request-id"]
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + GET_MODELS),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n" + GET_MODELS),
        (b"Content-Length: 2\r\nContent-Length: 3\r\n", b"{}" + GET_MODELS),
        (b"Content-Length: 2, 3\r\n", b"{}" + GET_MODELS),
        (b"Content-Length: +2\r\n", b"{}" + GET_MODELS),
        (b"Content-Length: 0x2\r\n", b"{}" + GET_MODELS),
        (b"Content-Length: " + b"9" * 5_000 + b"\r\n", b"{}"),
        (b"Content-Length : 2\r\n", b"{}" + GET_MODELS),
        (b"Transfer-Encoding: chunked, chunked\r\n", chunked(b"{}") + GET_MODELS),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunked(b"{}")),
        (b"Transfer-Encoding: gzip, chunked\r\n", chunked(b"{}") + GET_MODELS),
        (b"Transfer-Encoding: xchunked\r\n", chunked(b"{}") + GET_MODELS),
        (b"Transfer-Encoding: \x0bchunked\r\n", chunked(b"{}") + GET_MODELS),
        (b"Transfer-Encoding\r\n : chunked\r\n", chunked(b"{}") + GET_MODELS),
        (b"Transfer-Encoding: chunked\r\n", b"-1\r\nab" + GET_MODELS),
    ],
    ids=lambda value: repr(value[:60]),
)
async def test_a_body_of_unclear_length_is_refused_and_ends_the_connection(server, head, body):
    [reply] = await exchange(server, CHAT + head + b"\r\n" + body)

    assert_is_error(*reply)
    assert reply[1]["connection"] == "close"


async def test_a_chunked_body_in_http_1_0_is_refused(server):
    request = CHAT.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Transfer-Encoding: chunked\r\n\r\n"
    [reply] = await exchange(server, request + chunked(chat_body()))

    assert_is_error(*reply)


@pytest.mark.parametrize(
    "data",
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x12\x04\x00\x00\x00\x00\x00",
        b"GET /v1/models HTTP/2.0\r\nHost: test\r\n\r\n",
        b"GET /v1/models HTTP/0.9\r\nHost: test\r\n\r\n",
    ],
)
async def test_another_http_version_is_a_505(server, data):
    [reply] = await exchange(server, data)

    assert_is_error(*reply)
    assert reply[0] == 505


@pytest.mark.parametrize(
    "head",
    [
        b"X-Folded: a\r\n\tb\r\n",
        b"".join(b"X-%d: y\r\n" % index for index in range(100)),
        b"Expect: something-else\r\n",
        b"Connection: close, close, nonsense\r\n",
        b"Content-Length: %d\r\n" % len(chat_body()),
    ],
    ids=lambda value: repr(value[:40]),
)
async def test_odd_but_clear_headers_are_served(server, chat, head):
    chat.text = ["Hi"]
    length = b"Content-Length: %d\r\n" % len(chat_body())
    [reply] = await exchange(
        server, CHAT + length + head + b"Connection: close\r\n\r\n" + chat_body()
    )

    assert reply[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        chunked(chat_body(), extension=b';name=value;other="quoted"'),
        chunked(chat_body(), trailer=b"X-Request-Id: evil\r\nContent-Length: 5\r\n"),
        b"1\r\n \r\n" * 5_000 + chunked(chat_body()),
    ],
    ids=["extensions", "trailers", "one byte at a time"],
)
async def test_a_chunked_body_may_be_cut_in_any_way(server, chat, body):
    chat.text = ["Hi"]
    head = CHAT + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    [reply] = await exchange(server, head + body)

    assert reply[0] == 200
    assert reply[1]["x-request-id"] != "evil"


async def test_http_1_0_gets_whole_answers_and_streams_that_end_with_the_connection(server, chat):
    chat.text = ["Hi"]
    client = await server.connect()
    await client.send(chat_request().replace(b"HTTP/1.1", b"HTTP/1.0"))
    answer = await client.read_to_end()

    assert b"transfer-encoding" not in answer.lower()
    assert answer.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    "path",
    [
        b"../../etc/passwd",
        b"%2e%2e/%2e%2e/etc/passwd",
        b"..%2f..%2fetc%2fpasswd",
        b"%00",
        b"%ff%fe",
        b"%ed%a0%80",
        b"%zz",
        b"a%0d%0aX-Evil:%20yes",
        b";x=y",
        b"%F0%9F%91%A8%E2%80%8D%F0%9F%91%A9",
        b"a" * 60_000,
    ],
    ids=lambda value: repr(value[:30]),
)
async def test_a_models_path_leads_nowhere_else(server, path):
    request = b"GET /v1/models/" + path + b" HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    [reply] = await exchange(server, request)

    assert_is_error(*reply)
    assert reply[0] == 404
    assert "x-evil" not in reply[1]
    assert len(reply[2]) < 1_500


@pytest.mark.parametrize(
    "method", ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT"]
)
@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions", "/none", "*"])
async def test_every_method_is_answered_on_every_path(server, method, path):
    client = await server.connect()
    await client.send(f"{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await client.read_to_end()).partition(b"\r\n\r\n")
    status = int(head[9:12])

    assert status in {200, 404, 405}
    assert b"x-request-id: req_" in head
    if method == "HEAD":
        assert body == b""
    elif status != 200:
        assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    "given", [b"a\r\n b", b"a b", b"\xff\xfe", b"x" * 129, b"../x", b"a%0d%0aX-Evil: yes", b""]
)
async def test_a_request_id_that_is_not_plain_is_replaced(server, given):
    [reply] = await exchange(
        server, GET_MODELS.removesuffix(b"\r\n") + b"X-Request-Id: " + given + b"\r\n\r\n"
    )

    assert reply[1]["x-request-id"].startswith("req_")
    assert "x-evil" not in reply[1]


_NESTED = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "body",
    [
        b" " * 1_000_000,
        b'{"a":' * 100_000,
        b'{"model":"m","messages":[],"tool_choice":' + _NESTED + b"}",
        b"{" + b",".join(b'"k%d":1' % index for index in range(50_000)) + b"}",
        chat_body(model="a" * 1_000_000),
        chat_body(model="a\r\nX-Evil: yes\x1b[31m"),
        chat_body(messages=[{"role": "user", "content": "a"}] * 20_000, n=0),
        chat_body().decode().encode("utf-16"),
        b'{"messages":[{"role":"user","content":"\xed\xa0\x80"}]}',
        b'{"model":"m","model":"n","messages":7}',
    ],
    ids=lambda value: repr(value[:30]),
)
async def test_a_hostile_body_is_an_error_of_bounded_size(server, body):
    with structlog.testing.capture_logs() as logs:
        request = chat_request(stream=False, extra_headers="Connection: close\r\n", body=body)
        [reply] = await exchange(server, request)
        await server.end()

    assert_is_error(*reply)
    assert len(reply[2]) < 1_500
    assert not [entry for entry in logs if entry["log_level"] == "error"]


@pytest.mark.parametrize(
    "content",
    [
        "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f4\U000e0067\U000e007f",
        "\uffff\ufffe\ufffd\ufeff\U0010ffff",
        "\u2028\u2029\x85\x01\x7f\r\n",
        "e\u0301" + "\u0300" * 10_000,
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_any_unicode_goes_in_and_comes_out_unchanged(server, chat, content, stream):
    chat.text = [content]
    async with httpx2.AsyncClient(base_url=server.url) as client:
        body = chat_body(messages=[{"role": "user", "content": content}], stream=stream)
        answer = await client.post(
            "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
        )
    [turn] = chat.turns

    assert turn.turn.messages[0].content == content
    if stream:
        first = json.loads(answer.content.split(b"\n\n")[0].removeprefix(b"data: "))
        assert first["choices"][0]["delta"]["content"] == content
    else:
        assert answer.json()["choices"][0]["message"]["content"] == content


async def test_idle_connections_do_not_delay_a_request(server):
    async with AsyncExitStack() as stack:
        for _ in range(200):
            stack.callback((await server.connect()).close)
        [reply] = await exchange(server, GET_MODELS)

    assert reply[0] == 200


async def test_a_body_that_dribbles_in_is_a_408_in_time(server):
    client = await server.connect()
    await client.send(chat_request()[:-40])
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_dribble, client)
            head = await client.read_head()
            nursery.cancel_scope.cancel("answered")

    assert head.startswith(b"HTTP/1.1 408 ")


async def _dribble(client) -> None:
    for _ in range(30):
        await client.send(b" ")
        await trio.sleep(0.1)
    raise AssertionError("still waiting for a body after three seconds")


async def test_a_known_model_is_found_by_its_quoted_name(server):
    path = str(MODEL).replace("/", "%2F").encode()
    request = b"GET /v1/models/" + path + b" HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    [reply] = await exchange(server, request)

    assert reply[0] == 200

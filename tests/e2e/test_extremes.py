"""Text, sizes, ids and numbers at their extremes, against a real server on both databases: kept
whole, or refused in clear words; never a defect."""

import itertools
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from antiphon.testing.corpus import answered
from antiphon.testing.process import ServerProcess

pytestmark = pytest.mark.engine
JSON = {"content-type": "application/json"}
HOSTILE_IDS = (
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e%2f%2e%2e",
    "a" * 10_000,
    "%00",
    "conv_%00",
    "resp_" + "0" * 200,
    "%ff%fe",
    "%F0%9F%98%80",
    quote("x' OR '1'='1"),
    quote('"; DROP TABLE users; --'),
    "x%0d%0aX-Evil:%201",
    "%",
    "%25%30%30",
)


@pytest.fixture
def client(kept: ServerProcess) -> Iterator[httpx2.Client]:
    """Whatever the test did, no request was answered with a defect."""
    before = len(kept.log.events("request_failed"))
    with httpx2.Client(base_url=kept.base_url, timeout=60) as made:
        yield made
    assert kept.log.events("request_failed")[before:] == []


@pytest.fixture
def conversation(client: httpx2.Client) -> Iterator[str]:
    id: str = answered(client.post("/conversations", json={}))["id"]
    yield id
    answered(client.delete(f"/conversations/{id}"))


def refused(reply: httpx2.Response, status: int = 400, code: str | None = None) -> dict[str, Any]:
    """The error of an answer that must be one."""
    assert reply.status_code == status, reply.text[:500]
    error: dict[str, Any] = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert code in {None, error["code"]}, error
    assert len(error["message"]) < 1000
    return error


@pytest.mark.parametrize("bad", [r"\u0000", r"\ud800", r"\udc00x"])
def test_what_is_no_text_is_refused_wherever_it_stands(
    client: httpx2.Client, conversation: str, bad: str
):
    model = '"model": "smollm2-135m-instruct"'
    for path, body in (
        ("/conversations", '{"title": "%s"}'),
        ("/conversations", '{"metadata": {"k": "%s"}}'),
        ("/conversations", '{"metadata": {"%s": "v"}}'),
        ("/conversations", '{"items": [{"role": "user", "content": "%s"}]}'),
        ("/conversations", '{"items": [{"type": "function_call_output", "call_id": "c", '
         '"output": "%s"}]}'),
        (f"/conversations/{conversation}", '{"title": "%s"}'),
        (f"/conversations/{conversation}/items", '{"items": [{"role": "user", "content": "%s"}]}'),
        (f"/conversations/{conversation}/branch", '{"title": "%s"}'),
        ("/responses", '{"input": "%s"}'),
        ("/responses", '{"input": "x", "instructions": "%s"}'),
        ("/responses", '{"input": "x", "user": "%s"}'),
        ("/responses", '{"input": "x", "conversation": "%s"}'),
        ("/responses", '{"input": "x", "metadata": {"k": "%s"}}'),
        ("/responses/input_tokens", '{"input": "%s"}'),
        ("/responses/resp_none/feedback", '{"rating": "up", "reason": "%s"}'),
        ("/chat/completions", "{" + model + ', "messages": [{"role": "user", "content": "%s"}]}'),
        ("/chat/completions", "{" + model + ', "messages": [{"role": "user", "content": "x"}], '
         '"store": true, "metadata": {"k": "%s"}}'),
    ):  # fmt: skip
        refused(client.post(path, content=body % bad, headers=JSON), 400, "invalid_string")


def test_text_of_any_planes_comes_back_as_it_went(client: httpx2.Client, conversation: str):
    text = "\x01\x7f\x85\u2028\ufeff\ufffe\uffff😀\U0010ffff e\u0301 עברית" + '"\\ud800\\'
    body = {"items": [{"role": "user", "content": text}]}

    item = answered(client.post(f"/conversations/{conversation}/items", json=body))["data"][0]
    shown = answered(client.get(f"/conversations/{conversation}/items/{item['id']}"))
    exported = answered(client.get(f"/conversations/{conversation}/export"))

    assert shown["content"][0]["text"] == text
    assert exported["items"][0]["content"][0]["text"] == text


def left_out(response: dict[str, Any]) -> int:
    """How many items its model was not shown."""
    runs = response["context"]["runs"]
    return sum(run["items"] for run in runs if run["fate"] == "dropped")


def shown(run: dict[str, Any]) -> int:
    return run["items"] if (run["kind"], run["fate"]) == ("history", "shown") else 0


def test_an_item_of_10_mb_is_refused_and_one_that_just_fits_is_kept(
    client: httpx2.Client, conversation: str
):
    url = f"/conversations/{conversation}/items"

    for path, body in (
        (url, {"items": [{"role": "user", "content": "x" * 10_000_000}]}),
        ("/responses", {"input": "x" * 10_000_000}),
    ):
        refused(client.post(path, json=body), 413, "request_too_large")
    text = "é" * 4_000_000
    body = json.dumps({"items": [{"role": "user", "content": text}]}, ensure_ascii=False).encode()
    item = answered(client.post(url, content=body, headers=JSON))["data"][0]

    assert answered(client.get(f"{url}/{item['id']}"))["content"][0]["text"] == text
    assert answered(client.get(f"/conversations/{conversation}/export"))["items"] == [item]
    turn = {"input": "Go on.", "conversation": conversation, "max_output_tokens": 16}
    whole = turn | {"truncation": "disabled"}
    refused(client.post("/responses", json=whole), 400, "context_length_exceeded")
    refused(client.post("/responses", json=whole | {"stream": True}), 400)
    assert len(answered(client.get(url))["data"]) == 1, "a turn that was refused left nothing"
    assert left_out(answered(client.post("/responses", json=turn))) == 1


def test_a_conversation_of_5000_items_is_listed_exported_copied_and_cut_only_for_the_model(
    client: httpx2.Client, conversation: str
):
    url = f"/conversations/{conversation}/items"
    words = [f"This is message number {number}." for number in range(5000)]
    for start in range(0, len(words), 20):
        items = [{"role": "user", "content": word} for word in words[start : start + 20]]
        answered(client.post(url, json={"items": items}))

    listed: list[str] = []
    query: dict[str, Any] = {"limit": 100, "order": "asc"}
    while True:
        page = answered(client.get(url, params=query))
        listed += [item["content"][0]["text"] for item in page["data"]]
        if not page["has_more"]:
            break
        query["after"] = page["last_id"]
    exported = answered(client.get(f"/conversations/{conversation}/export"))["items"]
    markdown = client.get(f"/conversations/{conversation}/export?format=markdown").text
    branch = answered(client.post(f"/conversations/{conversation}/branch", json={}))["id"]
    copied = answered(client.get(f"/conversations/{branch}/export"))["items"]
    turn = {"input": "Go on.", "conversation": conversation, "max_output_tokens": 16}
    whole = client.post("/responses", json=turn | {"truncation": "disabled"})
    cut = answered(client.post("/responses", json=turn))

    assert listed == words
    assert [item["content"][0]["text"] for item in exported] == words
    assert markdown.count("This is message number ") == 5000
    assert [item["content"] for item in copied] == [item["content"] for item in exported]
    refused(whole, 400, "context_length_exceeded")
    assert left_out(cut) == 5000 - sum(shown(run) for run in cut["context"]["runs"])
    assert left_out(cut) > 4000
    rows = answered(client.delete(f"/conversations/{branch}"))["receipt"]["rows"]
    assert rows["items"] == rows["item_bodies"] == 5000


def test_no_route_stumbles_over_an_id(client: httpx2.Client):
    root = str(client.base_url).removesuffix("v1/")
    document = answered(client.get(f"{root}openapi.json"))
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            names = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
            if not names:
                continue
            body = b"{}" if "requestBody" in operation else None
            for id in HOSTILE_IDS:
                url = path.format(**dict.fromkeys(names, id))
                target = f"{root.removesuffix('/')}{url}".encode()
                reply = client.request(
                    method.upper(), httpx2.URL(target.decode()), content=body, headers=JSON
                )
                refusal = refused(reply, reply.status_code)
                assert reply.status_code in {400, 403, 404, 405}, (url[:100], refusal)
                assert "x-evil" not in reply.headers


def test_numbers_and_words_in_a_query_are_bounded(client: httpx2.Client):
    for query in (
        *("limit=-1", "limit=101", "limit=9" + "9" * 30, "limit=1e3", "limit=", "limit=%00"),
        *("limit=٣", "limit=0x10", "order=", "order=sideways", "after=%00", "after=" + "a" * 5000),
        *("search=%00", "search=" + "a" * 5000, "archived=maybe"),
    ):
        refused(client.get(f"/conversations?{query}"))
    for query in (
        *("starting_after=-2", "starting_after=99999999999999999999", "starting_after=x"),
        *("stream=perhaps", "include=everything", "include[]=everything"),
    ):
        refused(client.get(f"/responses/resp_{'0' * 32}?{query}"))

    for query in ("limit=0", "after=%ff%fe", "search=%ff", "limit=1&limit=-1&order=asc&order=x"):
        answered(client.get(f"/conversations?{query}"))


@pytest.mark.parametrize("depth", [100, 500, 700, 900, 990, 5_000, 200_000])
def test_what_is_nested_is_kept_or_refused_and_never_a_defect(client: httpx2.Client, depth: int):
    nested = '{"a":' * depth + "1" + "}" * depth
    message = '{"role": "assistant", "content": [{"type": "output_text", "text": "x", '
    bodies = (
        ("/conversations", '{"metadata": %s}'),
        ("/conversations", '{"items": [%s]}'),
        ("/conversations", '{"items": [' + message + '"annotations": [%s]}]}]}'),
        ("/responses", '{"input": [%s]}'),
        ("/responses", '{"input": "x", "max_output_tokens": 16, "store": false, "text": {"format": '
         '{"type": "json_schema", "name": "x", "schema": %s}}}'),
    )  # fmt: skip

    for path, body in bodies:
        reply = client.post(path, content=body % nested, headers=JSON)
        if reply.status_code != 200:
            refused(reply)
        elif path == "/conversations":
            id = reply.json()["id"]
            answered(client.get(f"/conversations/{id}/export"))
            assert client.get("/users/me/export").status_code == 200
            answered(client.delete(f"/conversations/{id}"))


def test_no_name_writes_a_header_or_leaves_a_folder(client: httpx2.Client):
    names = ('../../etc/passwd"\r\nX-Evil: 1', "..", "C:\\x\\y;z=1.txt", "é😀" * 300, "\x7f\x9b")
    for name, form in itertools.product(names, ("json", "markdown")):
        title = {"title": name[:200]}
        id = answered(client.post("/conversations", json=title))["id"]
        reply = client.get(f"/conversations/{id}/export?format={form}")
        answered(client.delete(f"/conversations/{id}"))
        _check_attachment(reply)
    for name in names:
        files = {"file": (name, b"content")}
        file = answered(client.post("/files", files=files, data={"purpose": "user_data"}))
        reply = client.get(f"/files/{file['id']}/content")
        answered(client.delete(f"/files/{file['id']}"))
        _check_attachment(reply)
        assert not set("/\\\r\n") & set(file["filename"])
        assert len(file["filename"].encode()) <= 255


def _check_attachment(reply: httpx2.Response) -> None:
    assert reply.status_code == 200
    assert "x-evil" not in reply.headers
    assert reply.headers["x-content-type-options"] == "nosniff"
    disposition = reply.headers["content-disposition"]
    assert disposition.startswith('attachment; filename="')
    assert disposition.isascii()
    assert not set("/\\\r\n") & set(disposition)

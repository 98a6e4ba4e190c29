"""Chat completions that are kept: made like any other, and there afterwards."""

import json
from dataclasses import replace

import pytest
import trio
from openai.types.chat import ChatCompletion

from antiphon.errors import HostLost, QueueFull
from antiphon.events import CancelCause
from antiphon.ids import LOCAL_TENANT, ItemId, UserId
from antiphon.messages import messages_of
from antiphon.narration import (
    ArgumentsAdded,
    ArgumentsClosed,
    CallOpened,
    Ended,
    ItemClosed,
    ItemOpened,
    Opened,
    Started,
    TextAdded,
)
from antiphon.records import Item, Principal, ResponseKind, ResponseStatus, Scope, TokenUsage
from antiphon.testing.chat import MODEL
from antiphon.testing.responses import message_events
from antiphon.turn_events import FinishReason

PATH = "chat/completions"
MESSAGES = [{"role": "system", "content": "Be."}, {"role": "user", "content": "hi", "name": "ada"}]


def body(**fields) -> dict:
    return {"model": MODEL, "messages": MESSAGES, "store": True} | fields


def chunks_of(text: str) -> list[dict]:
    datas = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data:")]
    assert datas[-1] == "[DONE]"
    return [json.loads(data) for data in datas[:-1]]


def ended(response, *texts: str, finish: FinishReason | None = FinishReason.STOP, **fields):
    """The completion as it is kept, one choice a text."""
    items = tuple(
        Item(
            id=ItemId(f"msg_{index}"),
            type="message",
            role="assistant",
            body={
                "role": "assistant",
                "content": [
                    {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
                ],
                "finish_reason": finish,
            },
            created_ms=1,
        )
        for index, text in enumerate(texts)
    )
    usage = TokenUsage(input=3, output=2)
    defaults = {"status": ResponseStatus.COMPLETED, "output": items, "usage": usage}
    return replace(response, **(defaults | fields))


@pytest.fixture
def ask(client, responses, shelf):
    """Post a chat, play its answer, and give back what the client got."""

    async def asked(*texts: str, finish=FinishReason.STOP, status=None, error=None, **fields):
        got = []
        async with trio.open_nursery() as nursery:

            async def post():
                got.append(await client.post(PATH, json=body(**fields)))

            nursery.start_soon(post)
            watcher = await responses.next_watcher()
            final = ended(watcher.response, *texts, finish=finish)
            final = replace(final, status=status or final.status)
            shelf.put(final, responses.created[-1].input)
            watcher.error = error
            watcher.feed(Opened(status=ResponseStatus.IN_PROGRESS), Started())
            for index, text in enumerate(texts):
                watcher.feed(
                    *message_events(*text, item=f"msg_{index}", index=index, finish=finish)
                )
            watcher.response = final
            watcher.feed(Ended(status=final.status))
        return got[0]

    return asked


async def test_a_kept_chat_is_answered_like_any_other(ask, chat):
    answer = (await ask("hey")).json()

    assert answer["id"].startswith("chatcmpl-")
    assert answer["choices"][0]["message"]["content"] == "hey"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert chat.turns == []


async def test_its_messages_are_its_input(ask, responses):
    await ask("hey", n=1, metadata={"a": "b"}, temperature=0.5)
    (new,) = responses.created

    assert (new.response.kind, new.stored) == (ResponseKind.CHAT, True)
    assert new.response.metadata == {"a": "b"}
    assert new.turn.messages == ()
    assert [(m.role, m.content, m.name) for m in messages_of(new.input)] == [
        ("system", "Be.", None),
        ("user", "hi", "ada"),
    ]
    assert new.turn.sampling.temperature == 0.5


async def test_a_kept_stream_is_chunks_like_any_other(ask):
    text = (await ask("hey", "you", n=2, stream=True, stream_options={"include_usage": True})).text
    chunks = chunks_of(text)
    said = {0: "", 1: ""}
    for chunk in chunks:
        for choice in chunk["choices"]:
            said[choice["index"]] += choice["delta"].get("content") or ""

    assert said == {0: "hey", 1: "you"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert chunks[-1]["usage"]["total_tokens"] == 5


async def test_without_store_nothing_is_kept(client, chat, responses):
    chat.text = ["x"]
    answer = await client.post(PATH, json=body(store=False))

    assert answer.status_code == 200
    assert responses.created == []


async def test_metadata_is_for_what_is_kept(client):
    answer = await client.post(PATH, json=body(store=None, metadata={"a": "b"}))

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "metadata")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_has_its_status(client, responses, stream):
    got = []
    async with trio.open_nursery() as nursery:

        async def post():
            got.append(await client.post(PATH, json=body(stream=stream)))

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.refuse(QueueFull(reason="too many", retry_after_s=1.0))

    assert got[0].status_code == 503


async def test_a_failure_in_a_stream_is_told_in_it(ask):
    answer = await ask(
        "he", finish=None, status=ResponseStatus.FAILED, error=HostLost("killed"), stream=True
    )

    assert chunks_of(answer.text)[-1]["error"]["code"] == "engine_lost"


async def test_a_cancelled_chat_does_not_look_finished(ask):
    answer = await ask("he", finish=None, status=ResponseStatus.CANCELLED)

    assert answer.status_code == 503
    assert answer.headers["x-should-retry"] == "false"


async def test_a_reader_that_leaves_gives_the_turn_back(client, responses):
    async with trio.open_nursery() as nursery:

        async def post():
            await client.post(PATH, json=body(stream=True))

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.feed(*message_events("x")[:2], TextAdded(index=0, text="x"))
        await watcher.waiting.wait()
        nursery.cancel_scope.cancel()
    await watcher.cancelled.wait()

    assert watcher.cancels == [CancelCause.DISCONNECT]


async def test_what_was_kept_is_shown_again(client, ask):
    made = (await ask("hey", "you", n=2, metadata={"a": "b"}, seed=7)).json()
    shown = (await client.get(f"{PATH}/{made['id']}")).json()

    ChatCompletion.model_validate(shown, strict=False)
    assert shown["choices"] == made["choices"]
    assert (shown["id"], shown["created"], shown["usage"]) == (
        made["id"],
        made["created"],
        made["usage"],
    )
    assert shown["system_fingerprint"] == made["system_fingerprint"]
    assert (shown["metadata"], shown["seed"]) == ({"a": "b"}, 7)
    assert "status" not in shown


async def test_what_was_cut_says_so(client, ask, responses):
    await ask("he", finish=None, status=ResponseStatus.CANCELLED)
    shown = (await client.get(f"{PATH}/{responses.created[0].response.id}")).json()

    assert shown["status"] == "cancelled"
    assert shown["choices"][0]["finish_reason"] == "length"


async def test_the_list_is_oldest_first_and_filtered(client, ask):
    first = (await ask("a", metadata={"k": "1", "j": "x"})).json()["id"]
    second = (await ask("b", metadata={"k": "2"})).json()["id"]

    async def listed(**query):
        return [each["id"] for each in (await client.get(PATH, params=query)).json()["data"]]

    assert await listed() == [first, second]
    assert await listed(order="desc", limit=1) == [second]
    assert await listed(after=first) == [second]
    assert await listed(**{"metadata[k]": "1"}) == [first]
    assert await listed(**{"metadata[k]": "1", "metadata[j]": "y"}) == []
    assert await listed(model="nobody") == []
    assert (await client.get("responses")).json()["data"] == []


async def test_metadata_is_replaced(client, ask):
    made = (await ask("a", metadata={"k": "1"})).json()["id"]
    answer = await client.post(f"{PATH}/{made}", json={"metadata": {"j": "2"}})
    cleared = await client.post(f"{PATH}/{made}", json={"metadata": None})

    assert answer.json()["metadata"] == {"j": "2"}
    assert cleared.json()["metadata"] == {}


@pytest.mark.parametrize(
    "given", [{}, {"metadata": {"k": 1}}, {"metadata": {"k" * 65: ""}}, {"metadata": {}, "n": 1}]
)
async def test_metadata_that_makes_no_sense_is_refused(client, ask, given):
    made = (await ask("a")).json()["id"]

    assert (await client.post(f"{PATH}/{made}", json=given)).status_code == 400


async def test_the_messages_are_listed_in_order(client, ask):
    made = (await ask("a")).json()["id"]
    page = (await client.get(f"{PATH}/{made}/messages")).json()

    assert [(each["role"], each["content"]) for each in page["data"]] == [
        ("system", "Be."),
        ("user", "hi"),
    ]
    assert page["data"][1]["name"] == "ada"
    assert page["last_id"] == page["data"][1]["id"]


async def test_what_is_deleted_is_gone(client, ask):
    made = (await ask("a")).json()["id"]
    gone = (await client.delete(f"{PATH}/{made}")).json()

    assert (gone["object"], gone["deleted"], gone["id"]) == ("chat.completion.deleted", True, made)
    assert (await client.get(f"{PATH}/{made}")).status_code == 404


@pytest.mark.parametrize(
    ("method", "suffix", "given"),
    [
        ("GET", "", None),
        ("POST", "", {"metadata": {}}),
        ("DELETE", "", None),
        ("GET", "/messages", None),
    ],
)
async def test_what_is_not_there_or_anothers_is_not_found(
    client, ask, accounts, method, suffix, given
):
    made = (await ask("a")).json()["id"]
    accounts.principal = Principal(
        user=UserId("user_b"), tenant=LOCAL_TENANT, scopes=frozenset({Scope.USER})
    )

    for id in (made, "chatcmpl-nobody", "resp_1", "%00"):
        answer = await client.request(method, f"{PATH}/{id}{suffix}", json=given)
        assert answer.status_code == 404


async def test_a_log_without_an_end_still_ends(client, responses):
    got = []
    async with trio.open_nursery() as nursery:

        async def post():
            got.append(await client.post(PATH, json=body()))

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.response = ended(watcher.response, "x")
        watcher.feed(*message_events("x"))
        watcher.feed()

    assert got[0].json()["choices"][0]["message"]["content"] == "x"


async def test_a_key_makes_a_claim(client, responses, chat):
    async with trio.open_nursery() as nursery:

        async def post():
            await client.post(PATH, json=body(), headers={"Idempotency-Key": "k"})

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.response = ended(watcher.response, "x")
        watcher.feed(*message_events("x"), Ended(status=ResponseStatus.COMPLETED))

    assert responses.created[0].claim.key == "k"


CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOLS = [{"type": "function", "function": {"name": "f"}}]


async def test_calls_of_a_kept_chat_are_told_and_shown_again(client, responses, shelf):
    got = []
    async with trio.open_nursery() as nursery:

        async def post():
            given = [
                *({"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [CALL]}),
                {"role": "tool", "tool_call_id": "call_1", "content": "18"},
            ]
            got.append(await client.post(PATH, json=body(messages=given, tools=TOOLS)))

        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        final = ended(watcher.response, "", finish=FinishReason.TOOL_CALLS)
        called = {"call_id": "call_2", "name": "f", "arguments": '{"a":1}'}
        final.output[0].body["tool_calls"] = [called]
        shelf.put(final, responses.created[-1].input)
        watcher.feed(
            *(Opened(status=ResponseStatus.IN_PROGRESS), Started()),
            *(ItemOpened(index=0, item=ItemId("msg_0")),),
            CallOpened(index=1, item=ItemId("fc_1"), call="call_2", name="f"),
            *(ArgumentsAdded(index=1, text='{"a":1}'), ArgumentsClosed(index=1)),
            ItemClosed(index=1, finish=FinishReason.TOOL_CALLS),
            ItemClosed(index=0, finish=FinishReason.TOOL_CALLS),
        )
        watcher.response = final
        watcher.feed(Ended(status=final.status))
    answer = got[0].json()
    choice = answer["choices"][0]

    function = {"name": "f", "arguments": '{"a":1}'}
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"] == [
        {"id": "call_2", "type": "function", "function": function}
    ]
    kept = (await client.get(f"{PATH}/{answer['id']}")).json()
    assert kept["choices"] == answer["choices"]
    messages = (await client.get(f"{PATH}/{answer['id']}/messages")).json()["data"]
    assert [(each["role"], each["content"]) for each in messages] == [
        ("user", "hi"),
        ("assistant", None),
        ("tool", "18"),
    ]
    assert messages[1]["tool_calls"] == [CALL]
    assert messages[2]["tool_call_id"] == "call_1"
    shown = messages_of(responses.created[-1].input)
    assert [message.role for message in shown] == ["user", "assistant", "tool"]

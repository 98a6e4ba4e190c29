"""Responses that are there, as clients see them."""

import json

import openresponses_types as spec
import pytest
import trio

from antiphon.errors import StoreUnavailable
from antiphon.events import CancelCause
from antiphon.http.openai.responses.items import text_item
from antiphon.ids import LOCAL_TENANT, ConversationId, ModelName, ResponseId, UserId
from antiphon.narration import Opened, Started
from antiphon.records import Principal, Rating, ResponseStatus, Scope
from antiphon.testing.chat import MODEL
from antiphon.testing.responses import answered

NOBODYS = [
    "resp_nobody",
    "resp_" + "0" * 200,
    "resp_%00",
    "chatcmpl-1",
    "%F0%9F%98%80",
    "resp_a'--",
]


async def created(client, responses, **fields) -> dict:
    responses.text = responses.text or ["Hel", "lo"]
    answer = await client.post("responses", json={"model": MODEL, "input": "hi"} | fields)
    return answer.json()


def numbers(text: str) -> list[int]:
    return [
        json.loads(line.removeprefix("data: "))["sequence_number"]
        for line in text.splitlines()
        if line.startswith("data: ")
    ]


async def test_what_was_answered_is_shown_again(client, responses):
    made = await created(client, responses)
    shown = (await client.get(f"responses/{made['id']}")).json()

    assert shown == made
    spec.ResponseResource.model_validate(shown)


@pytest.mark.parametrize("id", NOBODYS)
@pytest.mark.parametrize(
    ("method", "suffix", "body"),
    [
        ("GET", "", None),
        ("GET", "?stream=true", None),
        ("DELETE", "", None),
        ("POST", "/cancel", None),
        ("GET", "/input_items", None),
        ("POST", "/feedback", {"rating": "up"}),
    ],
)
async def test_what_is_not_there_is_not_found(client, id, method, suffix, body):
    answer = await client.request(method, f"responses/{id}{suffix}", json=body)

    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("method", "suffix", "body"),
    [
        ("GET", "", None),
        ("GET", "?stream=true", None),
        ("DELETE", "", None),
        ("POST", "/cancel", None),
        ("GET", "/input_items", None),
        ("POST", "/feedback", {"rating": "up"}),
    ],
)
async def test_what_is_anothers_is_not_found(client, responses, accounts, method, suffix, body):
    made = await created(client, responses)
    accounts.principal = Principal(
        user=UserId("user_b"), tenant=LOCAL_TENANT, scopes=frozenset({Scope.USER})
    )
    answer = await client.request(method, f"responses/{made['id']}{suffix}", json=body)

    assert answer.status_code == 404


@pytest.mark.parametrize("after", [None, -1, 0, 5, 10, 99])
async def test_a_stream_is_shown_again_after_any_number(client, responses, after):
    made = await created(client, responses)
    query = {"stream": "true"} | ({} if after is None else {"starting_after": after})
    answer = await client.get(f"responses/{made['id']}", params=query)

    assert answer.headers["content-type"].startswith("text/event-stream")
    first = 0 if after is None else after + 1
    assert numbers(answer.text) == list(range(first, 11))


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("starting_after=x", "starting_after"),
        ("stream=true&starting_after=x", "starting_after"),
        ("stream=true&starting_after=-2", "starting_after"),
        ("stream=perhaps", "stream"),
        ("include[]=nonsense", "include"),
        ("include_obfuscation=x", "include_obfuscation"),
    ],
)
async def test_a_query_that_makes_no_sense_is_refused(client, responses, query, param):
    made = await created(client, responses)
    answer = await client.get(f"responses/{made['id']}?{query}")

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize("name", ["include", "include[]"])
async def test_logprobs_are_shown_when_asked_for(client, responses, shelf, name):
    made = await created(client, responses)
    stored = shelf.responses_by_id[made["id"]]
    entry = {"token": "x", "logprob": -0.5, "bytes": [120], "top_logprobs": []}
    stored.output[0].body["content"][0]["logprobs"] = [entry]
    url = f"responses/{made['id']}"
    without = (await client.get(url)).json()
    asked = (await client.get(url, params={name: "message.output_text.logprobs"})).json()

    assert without["output"][0]["content"][0]["logprobs"] == []
    assert asked["output"][0]["content"][0]["logprobs"] == [entry]


async def test_a_watcher_that_leaves_is_given_back(client, responses):
    made = await created(client, responses)
    await responses.next_watcher()
    responses.text = None
    async with trio.open_nursery() as nursery:

        async def watch():
            await client.get(f"responses/{made['id']}?stream=true")

        nursery.start_soon(watch)
        watcher = await responses.next_watcher()
        watcher.feed(Opened(status=ResponseStatus.IN_PROGRESS), Started())
        await watcher.waiting.wait()
        nursery.cancel_scope.cancel()
    await watcher.cancelled.wait()

    assert watcher.cancels == [CancelCause.DISCONNECT]


async def test_a_cancel_says_how_it_ended_and_can_be_repeated(client, responses, shelf):
    responses.text = None
    made = (
        await client.post("responses", json={"model": MODEL, "input": "hi", "background": True})
    ).json()
    shelf.put(responses.created[0].response, ())
    first = await client.post(f"responses/{made['id']}/cancel")
    again = await client.post(f"responses/{made['id']}/cancel")

    assert first.json()["status"] == again.json()["status"] == "cancelled"
    assert first.json()["completed_at"] is None
    spec.ResponseResource.model_validate(first.json())


async def test_what_is_deleted_is_gone_and_leaves_a_receipt(client, responses):
    made = await created(client, responses)
    gone = (await client.delete(f"responses/{made['id']}")).json()

    assert (gone["id"], gone["object"], gone["deleted"]) == (made["id"], "response", True)
    assert gone["receipt"]["rows"] == {"responses": 1}
    assert (await client.get(f"responses/{made['id']}")).status_code == 404


async def test_input_items_come_in_pages_newest_first(client, responses):
    made = await created(
        client, responses, input=[{"role": "user", "content": str(n)} for n in range(5)]
    )
    url = f"responses/{made['id']}/input_items"
    first = (await client.get(url, params={"limit": 2})).json()
    rest = (await client.get(url, params={"limit": 10, "after": first["last_id"]})).json()
    forward = (await client.get(url, params={"order": "asc"})).json()

    def texts(page):
        return [item["content"][0]["text"] for item in page["data"]]

    assert (texts(first), first["has_more"]) == (["4", "3"], True)
    assert (texts(rest), rest["has_more"]) == (["2", "1", "0"], False)
    assert texts(forward) == ["0", "1", "2", "3", "4"]
    assert first["first_id"] == first["data"][0]["id"]
    assert first["object"] == "list"
    for item in forward["data"]:
        spec.Message.model_validate(item)


async def test_after_a_word_that_is_no_id_there_is_nothing(client, responses):
    made = await created(client, responses)

    for path in (f"responses/{made['id']}/input_items", "responses"):
        answer = await client.get(f"{path}?limit=0&after=after")
        assert (answer.status_code, answer.json()["data"]) == (200, [])


@pytest.mark.parametrize("query", ["limit=-1", "limit=101", "limit=x", "order=up", "after=a%00b"])
async def test_a_page_that_makes_no_sense_is_refused(client, responses, query):
    made = await created(client, responses)

    for path in (f"responses/{made['id']}/input_items", "responses"):
        answer = await client.get(f"{path}?{query}")
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, query.split("=")[0])


async def test_a_cursor_that_is_unknown_is_refused(client, responses):
    made = await created(client, responses)
    answer = await client.get(f"responses/{made['id']}/input_items?after=msg_nobody")

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "after")


async def test_the_list_is_filtered_and_ones_own(client, responses, shelf):
    first = await created(client, responses)
    second = await created(client, responses, conversation="conv_1")
    other = answered(responses.created[0].response)
    shelf.put(
        type(other)(
            **{
                name: getattr(other, name)
                for name in other.__slots__
                if name not in {"id", "user", "model"}
            },
            id=ResponseId("resp_other"),
            user=UserId("user_b"),
            model=ModelName("m"),
        )
    )

    async def listed(**query):
        return [each["id"] for each in (await client.get("responses", params=query)).json()["data"]]

    assert await listed() == [second["id"], first["id"]]
    assert await listed(conversation="conv_1") == [second["id"]]
    assert await listed(model=MODEL, order="asc") == [first["id"], second["id"]]
    assert await listed(model="nobody") == []
    assert shelf.responses_by_id[second["id"]].conversation == ConversationId("conv_1")


async def test_an_empty_list_has_no_nulls(client):
    page = (await client.get("responses")).json()

    assert page == {"object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False}


async def test_feedback_is_kept_with_its_reason(client, responses, shelf):
    made = await created(client, responses)
    answer = await client.post(
        f"responses/{made['id']}/feedback", json={"rating": "down", "reason": "wrong"}
    )

    assert answer.json()["object"] == "response.feedback"
    assert [(each.response, each.rating, each.reason) for each in shelf.feedback] == [
        (made["id"], Rating.DOWN, "wrong")
    ]


async def test_feedback_is_shown_with_its_response_and_not_in_its_story(client, responses):
    made = await created(client, responses)
    story = (await client.get(f"responses/{made['id']}?stream=true")).text

    await client.post(f"responses/{made['id']}/feedback", json={"rating": "up"})
    given = {"rating": "down", "reason": "wrong"}
    feedback = (await client.post(f"responses/{made['id']}/feedback", json=given)).json()

    assert "feedback" not in made
    rated = made | {"feedback": feedback}
    assert (await client.get(f"responses/{made['id']}")).json() == rated
    assert (await client.get("responses")).json()["data"] == [rated]
    spec.ResponseResource.model_validate(rated)
    assert (await client.get(f"responses/{made['id']}?stream=true")).text == story


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "rating"),
        ({"rating": "meh"}, "rating"),
        ({"rating": "up", "reason": "x" * 5000}, "reason"),
        ({"rating": "up", "more": 1}, "more"),
        ({"rating": "up", "reason": "a\x00b"}, "reason"),
    ],
)
async def test_feedback_that_says_nothing_is_refused(client, responses, body, param):
    made = await created(client, responses)
    answer = await client.post(f"responses/{made['id']}/feedback", json=body)

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def test_without_a_database_nothing_is_claimed_to_be_missing(client, responses, shelf):
    made = await created(client, responses)
    shelf.error = StoreUnavailable("away")
    answer = await client.get(f"responses/{made['id']}")

    assert answer.status_code == 503
    assert "away" not in answer.text


def test_items_have_ids_of_their_own():
    first, second = (text_item("user", "x", 1) for _ in range(2))

    assert first.id != second.id

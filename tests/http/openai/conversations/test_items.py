import pytest

from antiphon.errors import ConversationLocked
from antiphon.http.openai.conversations.items import parse_items


@pytest.fixture
async def conversation(api):
    return (await api.client.post("/v1/conversations")).json()["id"]


@pytest.fixture
def items_url(conversation):
    return f"/v1/conversations/{conversation}/items"


def parsed(*values):
    return [{"status": item.status} | item.body for item in parse_items(list(values), now_ms=1)]


def test_a_plain_text_becomes_a_list_of_one_part():
    assert parsed(
        {"role": "user", "content": "hi"},
        {"type": "message", "role": "assistant", "content": "ho"},
    ) == [
        {
            "status": "completed",
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "hi"}],
        },
        {
            "status": "completed",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "ho", "annotations": [], "logprobs": []}],
        },
    ]


def test_an_answer_that_is_sent_back_keeps_what_it_says_and_its_end():
    part = {
        "type": "output_text",
        "text": "ho",
        "annotations": [{"type": "file_citation"}],
        "logprobs": [{"token": "ho", "logprob": -1.0, "bytes": [1], "top_logprobs": []}],
    }
    refusal = {"type": "refusal", "refusal": "no"}
    (kept,) = parsed(
        {
            "type": "message",
            "id": "msg_old",
            "status": "incomplete",
            "role": "assistant",
            "content": [part, refusal],
        }
    )

    assert kept == {
        "status": "incomplete",
        "type": "message",
        "role": "assistant",
        "content": [part, refusal],
    }


@pytest.mark.parametrize(
    ("item", "prefix"),
    [
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, "fc_"),
        ({"type": "function_call_output", "call_id": "c", "output": "4"}, "fco_"),
        ({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}, "ctc_"),
        ({"type": "custom_tool_call_output", "call_id": "c", "output": "4"}, "ctco_"),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]}, "rs_"),
    ],
)
def test_calls_results_and_reasoning_are_kept_as_they_came(item, prefix):
    (kept,) = parse_items([item | {"id": "theirs", "status": None}], now_ms=1)

    assert kept.body == item
    assert kept.id.startswith(prefix)
    assert kept.status == "completed"


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({"role": "user"}, "items[0].content"),
        ({"role": "user", "content": []}, "items[0].content"),
        ({"role": "tool", "content": "x"}, "items[0].role"),
        ({"role": "user", "content": "x", "colour": 1}, "items[0].colour"),
        ({"role": "user", "content": [{"type": "input_image"}]}, "items[0].content[0]"),
        (
            {"role": "user", "content": [{"type": "input_image", "image_url": "ftp://x/y"}]},
            "items[0].content[0].image_url",
        ),
        (
            {"role": "system", "content": [{"type": "input_image", "file_id": "f"}]},
            "items[0].content[0].type",
        ),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "items[0].content[0].type"),
        ({"role": "user", "content": [{"type": "hologram"}]}, "items[0].content[0].type"),
        (
            {"role": "user", "content": [{"type": "output_text", "text": "x"}]},
            "items[0].content[0].type",
        ),
        (
            {"role": "user", "content": [{"type": "refusal", "refusal": "x"}]},
            "items[0].content[0].type",
        ),
        ({"role": "user", "content": [{"type": "input_file"}]}, "items[0].content[0].file_id"),
        (
            {"role": "user", "content": [{"type": "input_file", "file_data": "eA=="}]},
            "items[0].content[0].file_data",
        ),
        (
            {"role": "user", "content": [{"type": "input_file", "file_url": "http://x/"}]},
            "items[0].content[0].file_url",
        ),
        (
            {"role": "assistant", "content": [{"type": "input_file", "file_id": "file-x"}]},
            "items[0].content[0].type",
        ),
        ({"type": "item_reference", "id": "msg_x"}, "items[0].type"),
        ({"type": 7}, "items[0].type"),
        ("hello", "items[0]"),
        (None, "items[0]"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "items[0].call_id"),
        (
            {"type": "reasoning", "summary": [{"type": "x", "text": "y"}]},
            "items[0].summary[0].type",
        ),
    ],
)
async def test_an_item_that_can_not_be_kept_is_named(api, items_url, item, param):
    answer = await api.client.post(items_url, json={"items": [item]})

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param
    assert (await api.client.get(items_url)).json()["data"] == []


async def test_items_are_added_in_order_and_answered_as_a_list(api, items_url):
    answer = await api.client.post(
        items_url, json={"items": [{"role": "user", "content": f"n{n}"} for n in range(20)]}
    )

    body = answer.json()
    assert answer.status_code == 200
    assert (body["object"], body["has_more"], len(body["data"])) == ("list", False, 20)
    assert [item["content"][0]["text"] for item in body["data"]] == [f"n{n}" for n in range(20)]
    assert (body["first_id"], body["last_id"]) == (body["data"][0]["id"], body["data"][-1]["id"])
    assert {item["status"] for item in body["data"]} == {"completed"}


async def test_no_items_at_all_are_an_error(api, items_url):
    answer = await api.client.post(items_url, json={"items": []})

    assert answer.json()["error"]["code"] == "empty_array"


async def test_items_are_listed_newest_first_twenty_at_a_time(api, items_url):
    for start in (0, 20):
        items = [{"role": "user", "content": f"n{start + n}"} for n in range(20)]
        await api.client.post(items_url, json={"items": items})

    first = (await api.client.get(items_url)).json()
    second = (await api.client.get(items_url, params={"after": first["last_id"]})).json()
    oldest = (await api.client.get(items_url, params={"order": "asc", "limit": 1})).json()

    texts = [item["content"][0]["text"] for item in first["data"] + second["data"]]
    assert texts == [f"n{n}" for n in reversed(range(40))]
    assert (first["has_more"], second["has_more"]) == (True, False)
    assert oldest["data"][0]["content"][0]["text"] == "n0"


async def test_a_cursor_of_another_conversation_is_refused(api, items_url):
    other = (
        await api.client.post(
            "/v1/conversations", json={"items": [{"role": "user", "content": "x"}]}
        )
    ).json()["id"]
    foreign = (await api.client.get(f"/v1/conversations/{other}/items")).json()["first_id"]

    answer = await api.client.get(items_url, params={"after": foreign})

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "after"
    nobodys = await api.client.get("/v1/conversations/conv_none/items", params={"after": "after"})
    assert nobodys.status_code == 404


@pytest.mark.parametrize("name", ["include", "include[]"])
async def test_include_is_accepted_in_both_spellings_and_checked(api, items_url, name):
    good = await api.client.get(items_url, params={name: "message.output_text.logprobs"})
    bad = await api.client.get(items_url, params={name: "everything"})

    assert good.status_code == 200
    assert (bad.status_code, bad.json()["error"]["param"]) == (400, "include")


async def test_deleting_an_item_answers_with_its_conversation(api, items_url, conversation):
    body = (
        await api.client.post(
            items_url, json={"items": [{"role": "user", "content": t} for t in ("a", "b")]}
        )
    ).json()

    answer = await api.client.delete(f"{items_url}/{body['first_id']}")

    assert answer.json()["id"] == conversation
    assert answer.json()["object"] == "conversation"
    left = (await api.client.get(items_url)).json()["data"]
    assert [item["id"] for item in left] == [body["last_id"]]
    assert (await api.client.get(f"{items_url}/{body['first_id']}")).status_code == 404
    assert (await api.client.delete(f"{items_url}/{body['first_id']}")).status_code == 404
    one = (await api.client.get(f"{items_url}/{body['last_id']}")).json()
    assert one == body["data"][1]


async def test_a_conversation_with_a_running_turn_takes_no_items(api, items_url, conversation):
    async def locked():
        raise ConversationLocked(conversation)

    api.store.before = locked
    answer = await api.client.post(items_url, json={"items": [{"role": "user", "content": "x"}]})

    assert answer.status_code == 400
    assert answer.json()["error"] | {"message": ""} == {
        "message": "",
        "type": "invalid_request_error",
        "param": "conversation",
        "code": "conversation_locked",
    }


async def test_a_file_may_be_named_by_its_owner_only(api, items_url, mallory):
    file = (
        await api.client.post(
            "/v1/files", files={"file": ("a.txt", b"hello")}, data={"purpose": "user_data"}
        )
    ).json()["id"]
    part = {"type": "input_file", "file_id": file}
    message = {"role": "user", "content": [{"type": "input_text", "text": "see"}, part]}

    kept = await api.client.post(items_url, json={"items": [message]})
    api.accounts.principal = mallory
    refused = await api.client.post("/v1/conversations", json={"items": [message]})

    assert kept.json()["data"][0]["content"][1] == part
    assert refused.status_code == 404
    assert refused.json()["error"]["param"] == "items[0].content[1].file_id"


async def test_a_file_that_only_a_deleted_conversation_used_goes_with_it(api, items_url):
    file = (
        await api.client.post(
            "/v1/files", files={"file": ("a.txt", b"hello")}, data={"purpose": "user_data"}
        )
    ).json()["id"]
    message = {"role": "user", "content": [{"type": "input_file", "file_id": file}]}
    await api.client.post(items_url, json={"items": [message]})

    receipt = (await api.client.delete(items_url.removesuffix("/items"))).json()["receipt"]

    assert len(receipt["contents"]) == 1
    assert receipt["postponed"] == []
    assert api.files() == []
    assert (await api.client.get(f"/v1/files/{file}")).status_code == 404

import pytest

from antiphon.ids import LOCAL_USER, ConversationId, ItemId
from antiphon.records import Item


async def create(api, **body):
    answer = await api.client.post("/v1/conversations", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def user_says(text):
    return {"type": "message", "role": "user", "content": text}


async def test_a_new_conversation_has_the_keys_of_the_api_and_ours(api):
    made = await create(api, metadata={"a": "b"})

    assert made.pop("id").startswith("conv_")
    assert made.pop("created_at") == made.pop("updated_at")
    assert made == {
        "object": "conversation",
        "metadata": {"a": "b"},
        "title": None,
        "title_made": False,
        "archived": False,
        "memory": None,
    }


async def test_a_body_is_not_needed_for_an_empty_conversation(api):
    answer = await api.client.post("/v1/conversations")

    assert answer.status_code == 200
    assert answer.json()["metadata"] == {}


async def test_a_conversation_is_read_back_as_it_was_made(api):
    made = await create(api, title="Ducks")

    answer = await api.client.get(f"/v1/conversations/{made['id']}")

    assert answer.json() == made


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ({"title": " Ducks "}, "Ducks"),
        ({"metadata": {"title": "Geese"}}, "Geese"),
        ({"title": "Ducks", "metadata": {"title": "Geese"}}, "Ducks"),
        ({"title": "   "}, None),
        ({"metadata": {"title": "x" * 300}}, "x" * 200),
    ],
)
async def test_a_title_is_the_one_given_else_the_one_in_the_metadata(api, body, title):
    assert (await create(api, **body))["title"] == title


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"title": "x" * 201}, "title", "string_above_max_length"),
        ({"title": 1}, "title", "invalid_type"),
        ({"metadata": {str(n): "" for n in range(17)}}, "metadata", "object_above_max_properties"),
        ({"metadata": {"k" * 65: ""}}, "metadata", "string_above_max_length"),
        ({"metadata": {"k": "v" * 513}}, "metadata.k", "string_above_max_length"),
        ({"metadata": {"k": 1}}, "metadata[...]", "invalid_type"),
        ({"items": [user_says("hi")] * 21}, "items", "array_above_max_length"),
        ({"colour": "red"}, "colour", None),
        ({"title": "a\x00b"}, "title", "invalid_string"),
    ],
)
async def test_what_is_wrong_is_named(api, body, param, code):
    answer = await api.client.post("/v1/conversations", json=body)

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["param"], error["code"]) == (param, code)


async def test_half_a_surrogate_pair_is_refused_by_name(api):
    answer = await api.client.post(
        "/v1/conversations",
        content=b'{"title": "\\ud800"}',
        headers={"content-type": "application/json"},
    )

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "title"


async def test_an_update_changes_what_it_names_and_nothing_else(api):
    made = await create(api, title="Ducks", metadata={"a": "b"})
    url = f"/v1/conversations/{made['id']}"

    archived = (await api.client.post(url, json={"archived": True})).json()
    renamed = (await api.client.post(url, json={"title": "Geese"})).json()
    marked = (await api.client.post(url, json={"metadata": {"c": "d"}})).json()
    emptied = (await api.client.post(url, json={"title": None, "metadata": None})).json()

    assert (archived["title"], archived["archived"], archived["metadata"]) == (
        "Ducks",
        True,
        {"a": "b"},
    )
    assert (renamed["title"], renamed["archived"]) == ("Geese", True)
    assert (marked["title"], marked["metadata"]) == ("Geese", {"c": "d"})
    assert (emptied["title"], emptied["metadata"], emptied["archived"]) == (None, {}, True)


async def test_metadata_that_is_sent_again_does_not_undo_a_rename(api):
    made = await create(api, metadata={"title": "Ducks"})
    url = f"/v1/conversations/{made['id']}"
    await api.client.post(url, json={"title": "Geese"})

    again = await api.client.post(url, json={"metadata": {"title": "Ducks", "new": "x"}})

    assert again.json()["title"] == "Geese"


async def test_conversations_are_listed_by_their_last_change_a_page_at_a_time(api):
    made = [(await create(api, title=f"n{n}"))["id"] for n in range(5)]
    await api.client.post(f"/v1/conversations/{made[0]}/items", json={"items": [user_says("hi")]})

    first = (await api.client.get("/v1/conversations", params={"limit": 3})).json()
    second = (
        await api.client.get("/v1/conversations", params={"limit": 3, "after": first["last_id"]})
    ).json()

    listed = [each["id"] for each in first["data"] + second["data"]]
    assert listed[0] == made[0]
    assert sorted(listed) == sorted(made)
    assert (first["object"], first["has_more"], second["has_more"]) == ("list", True, False)
    assert first["first_id"] == listed[0]


async def test_titles_are_searched_in_any_case(api):
    await create(api, title="All about Ducks")
    await create(api, title="100% geese")

    found = (await api.client.get("/v1/conversations", params={"search": "dUCk"})).json()
    percent = (await api.client.get("/v1/conversations", params={"search": "%"})).json()

    assert [each["title"] for each in found["data"]] == ["All about Ducks"]
    assert [each["title"] for each in percent["data"]] == ["100% geese"]


async def test_the_archive_is_a_list_of_its_own(api):
    kept, put_away = await create(api, title="kept"), await create(api, title="away")
    await api.client.post(f"/v1/conversations/{put_away['id']}", json={"archived": True})

    here = (await api.client.get("/v1/conversations")).json()
    there = (await api.client.get("/v1/conversations", params={"archived": "true"})).json()

    assert [each["id"] for each in here["data"]] == [kept["id"]]
    assert [each["id"] for each in there["data"]] == [put_away["id"]]


async def test_an_empty_list_has_empty_ids(api):
    answer = await api.client.get("/v1/conversations")

    assert answer.json() == {
        "object": "list",
        "data": [],
        "first_id": "",
        "last_id": "",
        "has_more": False,
    }


async def test_a_page_of_nothing_says_whether_there_is_anything(api):
    empty = (await api.client.get("/v1/conversations", params={"limit": "0"})).json()
    await create(api)
    more = (await api.client.get("/v1/conversations", params={"limit": "0"})).json()

    assert (empty["data"], empty["has_more"]) == ([], False)
    assert (more["data"], more["has_more"], more["last_id"]) == ([], True, "")


async def test_after_a_word_that_is_no_id_there_is_nothing(api):
    await create(api)

    answer = await api.client.get("/v1/conversations", params={"after": "after"})

    assert answer.status_code == 200
    assert (answer.json()["data"], answer.json()["has_more"]) == ([], False)


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"limit": "-1"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"limit": "9" * 5000}, "limit"),
        ({"limit": "١"}, "limit"),
        ({"order": "up"}, "order"),
        ({"order": ""}, "order"),
        ({"after": "conv_none"}, "after"),
        ({"after": "\x00"}, "after"),
        ({"search": "x" * 201}, "search"),
        ({"search": "\x00"}, "search"),
        ({"archived": "maybe"}, "archived"),
    ],
)
async def test_a_list_that_can_not_be_is_refused_by_name(api, query, param):
    answer = await api.client.get("/v1/conversations", params=query)

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


async def test_a_deletion_answers_with_a_receipt(api):
    made = await create(api, items=[user_says("quack"), user_says("honk")])

    answer = await api.client.delete(f"/v1/conversations/{made['id']}")

    body = answer.json()
    receipt = body.pop("receipt")
    assert body == {"id": made["id"], "object": "conversation.deleted", "deleted": True}
    assert receipt["subject"] == made["id"]
    assert receipt["rows"]["items"] == 2
    assert receipt["rows"]["conversations"] == 1
    assert (await api.client.get(f"/v1/conversations/{made['id']}")).status_code == 404


@pytest.mark.parametrize("id_", ["conv_none", "%00", "..%2fmodels", "x" * 300, "conv%20x"])
async def test_what_is_not_there_is_not_found(api, id_):
    for method, path in [
        ("GET", ""),
        ("POST", ""),
        ("DELETE", ""),
        ("GET", "/items"),
        ("GET", "/export"),
        ("POST", "/branch"),
    ]:
        answer = await api.client.request(
            method, f"/v1/conversations/{id_}{path}", json={} if method == "POST" else None
        )
        assert answer.status_code == 404, (method, path, answer.text)
        assert answer.json()["error"]["code"] in {"not_found", "unknown_url"}


async def test_another_users_conversation_is_not_found(api, mallory):
    made = await create(api, items=[user_says("secret")])
    items = (await api.client.get(f"/v1/conversations/{made['id']}/items")).json()
    item = items["first_id"]
    api.accounts.principal = mallory

    for method, path, body in [
        ("GET", "", None),
        ("POST", "", {"title": "mine"}),
        ("DELETE", "", None),
        ("GET", "/items", None),
        ("POST", "/items", {"items": [user_says("hi")]}),
        ("GET", f"/items/{item}", None),
        ("DELETE", f"/items/{item}", None),
        ("GET", "/export", None),
        ("POST", "/branch", {}),
    ]:
        answer = await api.client.request(
            method, f"/v1/conversations/{made['id']}{path}", json=body
        )
        assert answer.status_code == 404, (method, path)
        assert "secret" not in answer.text
    assert (await api.client.get("/v1/conversations")).json()["data"] == []


async def test_a_branch_has_the_items_up_to_one_under_ids_of_their_own(api):
    made = await create(api, title="Ducks", items=[user_says(f"n{n}") for n in range(4)])
    url = f"/v1/conversations/{made['id']}"
    items = (await api.client.get(f"{url}/items", params={"order": "asc"})).json()["data"]

    branch = (await api.client.post(f"{url}/branch", json={"after_item": items[1]["id"]})).json()

    copies = (
        await api.client.get(f"/v1/conversations/{branch['id']}/items", params={"order": "asc"})
    ).json()["data"]
    assert branch["title"] == "Ducks"
    assert [copy["content"] for copy in copies] == [item["content"] for item in items[:2]]
    assert not {copy["id"] for copy in copies} & {item["id"] for item in items}
    assert all(copy["id"].startswith("msg_") for copy in copies)


async def test_a_branch_without_an_item_is_a_whole_copy_and_outlives_the_original(api):
    made = await create(api, items=[user_says(f"n{n}") for n in range(3)])
    url = f"/v1/conversations/{made['id']}"

    branch = (await api.client.post(f"{url}/branch", json={"title": "Copy"})).json()
    await api.client.delete(url)

    items = (await api.client.get(f"/v1/conversations/{branch['id']}/items")).json()["data"]
    assert branch["title"] == "Copy"
    assert len(items) == 3


async def test_a_branch_has_the_metadata_of_the_whole_or_its_own(api):
    made = (await api.client.post("/v1/conversations", json={"metadata": {"of": "all"}})).json()
    url = f"/v1/conversations/{made['id']}/branch"
    same = (await api.client.post(url)).json()
    own = (await api.client.post(url, json={"metadata": {"of": "one"}})).json()
    wrong = await api.client.post(url, json={"metadata": {"x" * 65: "long"}})

    assert (same["metadata"], own["metadata"]) == ({"of": "all"}, {"of": "one"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "metadata")


async def test_a_branch_that_is_asked_for_again_under_its_key_is_the_same(api):
    made = (await api.client.post("/v1/conversations", json={})).json()
    url, key = f"/v1/conversations/{made['id']}/branch", {"idempotency-key": "once"}
    first, again, other = [
        (await api.client.post(url, headers=headers)).json()["id"]
        for headers in (key, key, {"idempotency-key": "twice"})
    ]

    assert first == again
    assert other != first


async def test_a_branch_after_an_item_of_elsewhere_is_not_found(api):
    made = await create(api, items=[user_says("hi")])
    other = await create(api, items=[user_says("ho")])
    item = (await api.client.get(f"/v1/conversations/{other['id']}/items")).json()["first_id"]

    answer = await api.client.post(
        f"/v1/conversations/{made['id']}/branch", json={"after_item": item}
    )

    assert answer.status_code == 404
    assert answer.json()["error"]["param"] == "after_item"


async def test_a_long_conversation_is_branched_whole(api):
    made = await create(api)
    for start in range(0, 460, 20):
        await api.client.post(
            f"/v1/conversations/{made['id']}/items",
            json={"items": [user_says(f"n{n}") for n in range(start, start + 20)]},
        )

    branch = (await api.client.post(f"/v1/conversations/{made['id']}/branch")).json()

    exported = (await api.client.get(f"/v1/conversations/{branch['id']}/export")).json()
    said = [item["content"][0]["text"] for item in exported["items"]]
    assert said == [f"n{n}" for n in range(460)]


async def test_a_branch_withholds_from_models_what_its_original_does(api):
    conversation = (await create(api, items=[user_says("a bomb")]))["id"]
    url = f"/v1/conversations/{conversation}"
    [blocked] = (await api.client.get(f"{url}/items")).json()["data"]
    refusal = Item(
        id=ItemId("msg_refusal"),
        type="message",
        role="assistant",
        body={
            "type": "message",
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "No."}],
            "withheld": [blocked["id"]],
        },
        created_ms=2,
        status="incomplete",
    )
    added = await api.store.run(
        lambda store: store.add_items(LOCAL_USER, ConversationId(conversation), [refusal], 2)
    )
    assert added

    branch = (await api.client.post(f"{url}/branch", json={})).json()

    listed = f"/v1/conversations/{branch['id']}/items"
    copy, copied = (await api.client.get(listed, params={"order": "asc"})).json()["data"]
    assert copied["content"] == [{"type": "refusal", "refusal": "No."}]
    assert copied["withheld"] == [copy["id"]] != [blocked["id"]]
    shown = (await api.client.get(f"{url}/export", params={"format": "markdown"})).text
    assert "## Assistant (incomplete)\n\nNo." in shown

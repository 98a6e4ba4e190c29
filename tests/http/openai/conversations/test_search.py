import pytest

URL = "/v1/conversations/search"


async def create(api, *texts, **body):
    items = [{"role": "user", "content": text} for text in texts]
    answer = await api.client.post("/v1/conversations", json={"items": items} | body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def search(api, query, **params):
    answer = await api.client.get(URL, params={"query": query} | params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_conversation_is_found_by_what_was_said_in_it(api):
    made = await create(api, "Where do ducks sleep?", title="Birds")
    await create(api, "geese")
    items = (await api.client.get(f"/v1/conversations/{made['id']}/items")).json()["data"]

    found = await search(api, "sleep DUCKS")

    message = {
        "item_id": items[0]["id"],
        "role": "user",
        "excerpt": "Where do ducks sleep?",
    }
    assert found == {
        "object": "list",
        "data": [made | {"message": message}],
        "first_id": made["id"],
        "last_id": found["last_id"],
        "has_more": False,
    }


async def test_a_conversation_is_found_by_its_title_also_in_the_archive(api):
    made = await create(api, title="Ducks")
    url = f"/v1/conversations/{made['id']}"
    put_away = (await api.client.post(url, json={"archived": True})).json()

    found = await search(api, "duck")

    assert found["data"] == [put_away | {"message": None}]


async def test_a_search_goes_on_where_it_has_stopped(api):
    made = [(await create(api, f"duck {n}"))["id"] for n in range(3)]

    first = await search(api, "duck", limit=2)
    then = await search(api, "duck", limit=2, after=first["last_id"])

    assert first["has_more"]
    assert [each["id"] for each in first["data"]] == made[:0:-1]
    assert ([each["id"] for each in then["data"]], then["has_more"]) == (made[:1], False)


async def test_without_words_nothing_is_found(api):
    await create(api, "duck")

    answer = await api.client.get(URL)

    assert answer.json() == {
        "object": "list",
        "data": [],
        "first_id": "",
        "last_id": "",
        "has_more": False,
    }


async def test_another_users_words_are_not_found(api, mallory):
    await create(api, "duck")
    api.accounts.principal = mallory

    assert (await search(api, "duck"))["data"] == []


@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"query": "x" * 201}, "query"),
        ({"query": "a\x00b"}, "query"),
        ({"query": "x", "limit": "0"}, "limit"),
        ({"query": "x", "limit": "101"}, "limit"),
        ({"query": "x", "after": "conv_" + "0" * 24}, "after"),
    ],
)
async def test_what_is_wrong_is_named(api, params, param):
    answer = await api.client.get(URL, params=params)

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


async def test_nothing_else_can_be_done_there(api):
    for method in ("POST", "DELETE"):
        answer = await api.client.request(method, URL)

        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS"

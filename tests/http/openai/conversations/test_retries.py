import pytest


@pytest.fixture
async def items_url(api):
    made = (await api.client.post("/v1/conversations")).json()["id"]
    return f"/v1/conversations/{made}/items"


def say(*texts):
    return {"items": [{"role": "user", "content": text} for text in texts]}


async def said(api, url):
    items = (await api.client.get(url, params={"order": "asc"})).json()["data"]
    return [item["content"][0]["text"] for item in items]


async def test_items_that_come_again_with_their_key_are_there_once(api, items_url):
    key = {"idempotency-key": "k1"}
    first = await api.client.post(items_url, json=say("a", "b"), headers=key)
    await api.client.post(items_url, json=say("c"))
    again = await api.client.post(items_url, json=say("a", "b"), headers=key)

    assert again.json() == first.json()
    assert await said(api, items_url) == ["a", "b", "c"]


async def test_other_items_with_the_same_key_are_a_422(api, items_url):
    key = {"idempotency-key": "k1"}
    await api.client.post(items_url, json=say("a", "b"), headers=key)

    for other in (say("a", "c"), say("b", "b")):
        answer = await api.client.post(items_url, json=other, headers=key)
        assert answer.status_code == 422
    assert await said(api, items_url) == ["a", "b"]


async def test_the_same_key_in_another_conversation_is_another_key(api, items_url):
    key = {"idempotency-key": "k1"}
    other = (await api.client.post("/v1/conversations")).json()["id"]
    await api.client.post(items_url, json=say("a"), headers=key)

    await api.client.post(f"/v1/conversations/{other}/items", json=say("a"), headers=key)

    assert await said(api, f"/v1/conversations/{other}/items") == ["a"]


async def test_what_an_sdk_sends_again_is_there_once(api, items_url):
    await api.client.post(items_url, json=say("z"))
    first = await api.client.post(items_url, json=say("a", "b"))
    again = await api.client.post(
        items_url, json=say("a", "b"), headers={"x-stainless-retry-count": "1"}
    )

    assert again.json() == first.json()
    assert await said(api, items_url) == ["z", "a", "b"]


async def test_what_an_sdk_sends_again_because_it_never_arrived_is_kept(api, items_url):
    await api.client.post(items_url, json=say("a"))
    await api.client.post(items_url, json=say("a", "b"), headers={"x-stainless-retry-count": "2"})

    assert await said(api, items_url) == ["a", "a", "b"]


async def test_the_same_words_said_twice_on_purpose_are_kept_twice(api, items_url):
    for _ in range(2):
        await api.client.post(items_url, json=say("a"), headers={"x-stainless-retry-count": "0"})

    assert await said(api, items_url) == ["a", "a"]


async def test_a_conversation_with_a_key_is_made_once(api, mallory):
    key = {"idempotency-key": "k1"}
    first = (await api.client.post("/v1/conversations", json=say("a"), headers=key)).json()
    again = (await api.client.post("/v1/conversations", json=say("a"), headers=key)).json()
    api.accounts.principal = mallory
    hers = (await api.client.post("/v1/conversations", json=say("a"), headers=key)).json()

    assert again == first
    assert hers["id"] != first["id"]


async def test_a_key_without_end_is_refused(api):
    answer = await api.client.post("/v1/conversations", headers={"idempotency-key": "k" * 256})

    assert answer.status_code == 400

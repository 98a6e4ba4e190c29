import httpx2
import pytest


async def filled(api, count):
    made = (await api.client.post("/v1/conversations", json={"title": "Ducks, é"})).json()["id"]
    for start in range(0, count, 20):
        items = [{"role": "user", "content": f"n{n}"} for n in range(start, start + 20)]
        await api.client.post(f"/v1/conversations/{made}/items", json={"items": items})
    return f"/v1/conversations/{made}"


async def test_the_json_form_holds_every_item_oldest_first(api):
    url = await filled(api, 460)

    answer = await api.client.get(f"{url}/export")

    body = answer.json()
    assert body["conversation"] == (await api.client.get(url)).json()
    assert [item["content"][0]["text"] for item in body["items"]] == [f"n{n}" for n in range(460)]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-disposition"] == (
        "attachment; filename=\"Ducks_ _.json\"; filename*=UTF-8''Ducks%2C%20%C3%A9.json"
    )
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_an_empty_conversation_is_exported_too(api):
    url = await filled(api, 0)

    assert (await api.client.get(f"{url}/export")).json()["items"] == []
    page = await api.client.get(f"{url}/export", params={"format": "markdown"})
    assert page.text.startswith("# Ducks, é\n")


async def test_the_markdown_form_is_a_page_for_people(api):
    url = await filled(api, 20)

    answer = await api.client.get(f"{url}/export", params={"format": "markdown"})

    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.text.count("## User") == 20
    assert "## User\n\nn0\n\n## User\n\nn1\n" in answer.text


async def test_another_form_is_refused(api):
    url = await filled(api, 0)

    answer = await api.client.get(f"{url}/export", params={"format": "pdf"})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "format")


async def test_half_an_export_does_not_look_like_a_whole_one(api):
    url = await filled(api, 460)
    reads = 0

    async def delete_meanwhile():
        nonlocal reads
        reads += 1
        if reads == 3:  # the conversation, its first page, and now its second
            api.store.before = None
            await api.client.delete(url)

    api.store.before = delete_meanwhile
    with pytest.raises(httpx2.RemoteProtocolError):
        await api.client.get(f"{url}/export")

"""`POST /v1/responses/input_tokens`: what a prompt would cost."""

from antiphon.testing.chat import MODEL

PATH = "responses"


async def test_tokens_are_counted_over_context_and_input(client, chat, shelf, responses):
    responses.text = ["Hello"]
    first = (await client.post(PATH, json={"model": MODEL, "input": "hi"})).json()
    shelf.before = responses.created[0].input
    counted = await client.post(
        f"{PATH}/input_tokens",
        json={"input": "and?", "instructions": "Be.", "previous_response_id": first["id"]},
    )

    assert counted.json() == {"object": "response.input_tokens", "input_tokens": 4 + 3 + 5}
    assert [message.content for message in chat.counted] == ["Be.", "hi", "and?"]


async def test_an_item_named_by_its_id_counts(client, chat, responses):
    responses.text = ["Hello"]
    first = (await client.post(PATH, json={"model": MODEL, "input": "hi"})).json()
    counted = await client.post(
        f"{PATH}/input_tokens", json={"input": [{"id": first["output"][0]["id"]}]}
    )

    assert counted.status_code == 200
    assert [message.content for message in chat.counted] == ["Hello"]


async def test_a_count_of_nothing_is_what_the_template_says_anyway(client, chat):
    answer = await client.post(f"{PATH}/input_tokens", json={})

    assert answer.json()["input_tokens"] == 0
    assert chat.counted == ()


async def test_its_url_takes_posts_only(client):
    def allowed(answer) -> set[str]:
        return set(answer.headers["allow"].split(", "))

    for method in ("GET", "DELETE"):
        answer = await client.request(method, f"{PATH}/input_tokens")
        assert (answer.status_code, allowed(answer)) == (405, {"OPTIONS", "POST"})
    assert allowed(await client.options(f"{PATH}/input_tokens")) == {"OPTIONS", "POST"}
    assert (await client.get(f"{PATH}/input_tokens_or_so")).status_code == 404

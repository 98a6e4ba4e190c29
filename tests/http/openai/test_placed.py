"""What clients see of where their request went: model, tier, headers; and who it ran for."""

import json

import pytest
import trio

from antiphon.errors import KeySuspended, Overloaded, RateLimited
from antiphon.ids import KeyId, ModelName, TenantId, UserId
from antiphon.records import Principal, Scope
from antiphon.settings import HttpSettings
from antiphon.testing.chat import MODEL
from antiphon.testing.responses import answered
from antiphon.turn_events import RateLimit, TurnPlaced

SMALL = ModelName("small")
LIMITS = (
    RateLimit(name="requests", limit=60, remaining=59, reset_s=1.0),
    RateLimit(name="tokens", limit=1000, remaining=900, reset_s=6.5),
)
MOVED = TurnPlaced(model=SMALL, tier="flex", moved="overload", limits=LIMITS)
TOLD = {
    "x-antiphon-model-moved": "overload",
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-reset-requests": "1s",
    "x-ratelimit-limit-tokens": "1000",
    "x-ratelimit-remaining-tokens": "900",
    "x-ratelimit-reset-tokens": "6.5s",
}
SOMEBODY = Principal(
    user=UserId("user_1"),
    tenant=TenantId("tenant_1"),
    scopes=frozenset({Scope.USER}),
    key=KeyId("key_1"),
    plan="paid",
)
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
RESPONSE = {"model": MODEL, "input": "hi"}


def chunks_of(text: str) -> list[dict]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line[:5] == "data:"]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.fixture
def moved(chat):
    chat.known.add(SMALL)
    chat.placed = MOVED
    return chat


async def test_a_whole_chat_names_the_model_that_answered(client, moved):
    moved.text = ["Hello"]
    answer = await client.post("chat/completions", json=CHAT)
    plain = (await client.post("chat/completions", json=CHAT | {"model": SMALL})).json()

    assert (answer.json()["model"], answer.json()["service_tier"]) == (SMALL, "flex")
    assert answer.json()["system_fingerprint"] == plain["system_fingerprint"]
    assert TOLD.items() <= dict(answer.headers).items()


async def test_every_chunk_names_the_model_that_answers(client, moved):
    moved.text = ["Hel", "lo"]
    answer = await client.post("chat/completions", json=CHAT | {"stream": True})

    assert {(each["model"], each["service_tier"]) for each in chunks_of(answer.text)} == {
        (SMALL, "flex")
    }
    assert TOLD.items() <= dict(answer.headers).items()


async def test_an_answer_from_where_it_was_asked_for_says_nothing_of_a_move(client, chat):
    chat.text = ["Hello"]
    answer = await client.post("chat/completions", json=CHAT)

    assert answer.json()["service_tier"] == "default"
    assert not [name for name in answer.headers if name.startswith(("x-ratelimit", "x-antiphon"))]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_after_it_was_placed_still_has_a_status(client, chat, stream):
    answers = []

    async def ask():
        answers.append(await client.post("chat/completions", json=CHAT | {"stream": stream}))

    async with trio.open_nursery() as asking:
        asking.start_soon(ask)
        turn = await chat.next_turn()
        await turn.waiting.wait()
        turn.fail(Overloaded(predicted_s=9.0, objective_s=2.0, retry_after_s=7.0))

    [answer] = answers
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "7"
    assert answer.json()["error"]["code"] == "overloaded"


class TestWithLittlePatience:
    @pytest.fixture
    def http_settings(self):
        return HttpSettings(headers_after_s=0.05)

    async def test_headers_that_could_not_wait_leave_the_model_to_the_chunks(self, client, chat):
        chat.known.add(SMALL)

        async with client.stream(
            "POST", "chat/completions", json=CHAT | {"stream": True}
        ) as answer:
            turn = await chat.next_turn()
            assert "x-antiphon-model-moved" not in answer.headers
            turn.feed(MOVED)
            turn.say("Hi")
            turn.finish()
            text = (await answer.aread()).decode()

        assert {each["model"] for each in chunks_of(text)} == {SMALL}


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_a_callers_own_limit_is_told_with_where_it_stands(client, chat, responses, path):
    error = RateLimited("requests per minute", 60, 12.5, LIMITS)
    chat.refusal = responses.refusal = error
    answer = await client.post(path, json=CHAT if path[0] == "c" else RESPONSE)

    assert answer.status_code == 429
    assert answer.headers["retry-after-ms"] == "12500"
    assert answer.headers["x-ratelimit-remaining-requests"] == "59"
    assert answer.json()["error"]["code"] == "rate_limit_exceeded"


async def test_a_suspended_key_says_so(client, chat):
    chat.refusal = KeySuspended("unpaid bills")
    answer = await client.post("chat/completions", json=CHAT)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "key_suspended")


async def test_a_kept_chat_names_the_model_that_answered_and_keeps_its_fingerprint(
    client, moved, responses, shelf
):
    answers = []

    async def ask():
        answers.append(await client.post("chat/completions", json=CHAT | {"store": True}))

    async with trio.open_nursery() as asking:
        asking.start_soon(ask)
        watcher = await responses.next_watcher()
        given = watcher.response.request["system_fingerprint"]
        watcher.placed = MOVED
        watcher.end(answered(watcher.response, "Hello"))

    [answer] = answers
    assert (answer.json()["model"], answer.json()["service_tier"]) == (SMALL, "flex")
    assert answer.json()["system_fingerprint"] == given
    assert TOLD.items() <= dict(answer.headers).items()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_response_comes_with_the_headers_of_its_place(client, responses, stream):
    answers = []

    async def ask():
        answers.append(await client.post("responses", json=RESPONSE | {"stream": stream}))

    async with trio.open_nursery() as asking:
        asking.start_soon(ask)
        watcher = await responses.next_watcher()
        watcher.placed = MOVED
        watcher.end(answered(watcher.response, "Hello"))

    assert TOLD.items() <= dict(answers[0].headers).items()


async def test_a_chat_runs_for_who_asked_and_how(client, chat, accounts):
    accounts.principal = SOMEBODY
    chat.text = ["x"]
    await client.post("chat/completions", json=CHAT | {"service_tier": "flex", "seed": 3})
    turn = chat.turns[0].turn

    assert (turn.user, turn.tenant, turn.plan, turn.tier) == (
        "user_1",
        "tenant_1",
        "paid",
        "flex",
    )
    assert (turn.seeded, turn.background, turn.stored) == (True, False, False)
    assert turn.response is not None
    assert "seed" not in turn.silent
    assert turn.silent == {"temperature", "top_p", "top_k", "repetition_penalty"}


async def test_what_a_client_says_about_sampling_is_not_left_to_a_model(client, chat):
    chat.text = ["x"]
    await client.post("chat/completions", json=CHAT | {"temperature": 0.5, "top_p": 0})
    turn = chat.turns[0].turn

    assert turn.silent == {"repetition_penalty"}
    assert (turn.user, turn.plan, turn.seeded) == (None, None, False)


async def test_a_background_response_is_for_nobody_who_waits(client, responses, accounts):
    accounts.principal = SOMEBODY
    responses.text = ["x"]
    await client.post("responses", json=RESPONSE | {"background": True})
    await client.post("responses", json=RESPONSE | {"service_tier": "priority", "store": False})
    background, priority = (new.turn for new in responses.created)

    assert (background.background, background.stored, background.user) == (True, True, "user_1")
    assert background.response == responses.created[0].response.id
    assert (priority.tier, priority.background, priority.stored) == ("priority", False, False)


async def test_one_that_is_streamed_is_for_somebody_who_waits_and_only_outlives_them(
    client, responses
):
    responses.text = ["x"]
    await client.post("responses", json=RESPONSE | {"background": True, "stream": True})
    [new] = responses.created

    assert (new.response.background, new.response.status) == (True, "in_progress")
    assert not new.turn.background


async def test_a_client_is_told_when_the_first_text_should_come(client, chat):
    chat.text = ["x"]
    chat.placed = TurnPlaced(model=MODEL, expected_s=1.25)
    answer = await client.post("chat/completions", json=CHAT)

    assert answer.headers["x-antiphon-expected-ms"] == "1250"


async def test_models_are_listed_for_the_callers_plan(client, chat, accounts):
    accounts.principal = SOMEBODY
    chat.known.add(SMALL)
    listed = (await client.get("models")).json()
    one = await client.get(f"models/{SMALL}")

    assert [model["id"] for model in listed["data"]] == [MODEL, SMALL]
    assert one.status_code == 200
    assert chat.plans == ["paid", "paid"]

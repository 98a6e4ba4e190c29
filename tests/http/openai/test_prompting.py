"""The operator's system prompt: what requests make of it, and what they show of it."""

from collections import Counter

import pytest
import trio

from antiphon.actors.prompts.prompts import SystemPrompts
from antiphon.errors import StoreUnavailable
from antiphon.http.openai.prompting import Prompting
from antiphon.ids import ModelName
from antiphon.testing.chat import MODEL
from antiphon.testing.prompts import PromptStore
from antiphon.views import PieceKind

ALIAS = ModelName("tutor-model")
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def kept() -> PromptStore:
    """`guide` greets, `tutor` is what the alias begins with; `draft` is not in force."""
    store = PromptStore()
    for name, text in {
        "guide": "Greet {{name}}.",
        "tutor": "Teach.",
        "house": "Be kind.",
        "draft": "Hm.",
    }.items():
        store.add(name, text)
    for name in ("guide", "tutor", "house"):
        store.activate(name, v1=1.0)
    return store


@pytest.fixture
def defaults() -> dict[str, str]:
    """By model."""
    return {}


@pytest.fixture
def prompting(kept, defaults) -> Prompting:
    return Prompting(prompts=SystemPrompts(kept, frozenset), default=defaults.get)


@pytest.fixture
def told(chat, responses):
    chat.known.add(ALIAS)
    chat.text = responses.text = ["Hello"]
    return responses.created


async def respond(client, **fields):
    return await client.post("responses", json={"model": MODEL, "input": "hi"} | fields)


def problem(answer) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["param"], error["code"]


async def test_a_prompt_is_asked_for_by_its_name(client, told):
    asked = {"id": "guide", "variables": {"name": "Ada"}}
    answer = await respond(client, prompt=asked, instructions="In French.")
    (new,) = told

    assert answer.json()["prompt"] == asked | {"version": "1"}
    assert (new.prompt.role, new.prompt.content) == ("system", "Greet Ada.")
    assert new.turn.prompt_version == "guide@1"
    assert [each.content for each in new.turn.messages] == ["In French."]
    shown = await client.get(f"responses/{answer.json()['id']}")
    assert shown.json()["prompt"] == asked | {"version": "1"}


async def test_without_a_prompt_nothing_is_said_of_one(client, told):
    answer = await respond(client)

    assert "prompt" not in answer.json()
    assert (told[0].prompt, told[0].turn.prompt_version) == (None, None)


async def test_a_version_can_be_named_whether_it_is_in_force_or_not(client, told, kept):
    kept.add("guide", "Welcome {{name}}.")

    for version in ("1", "2"):
        prompt = {"id": "guide", "version": version, "variables": {"name": "Ada"}}
        assert (await respond(client, prompt=prompt)).json()["prompt"]["version"] == version
    assert [each.prompt.content for each in told] == ["Greet Ada.", "Welcome Ada."]


async def test_a_value_may_be_a_part_of_text(client, told):
    part = {"type": "input_text", "text": "Ada"}
    answer = await respond(client, prompt={"id": "guide", "variables": {"name": part}})

    assert told[0].prompt.content == "Greet Ada."
    assert answer.json()["prompt"]["variables"] == {"name": part}


@pytest.mark.parametrize(
    ("prompt", "told_problem"),
    [
        ({"id": "nothing"}, (404, "prompt.id", "not_found")),
        ({"id": "no name"}, (404, "prompt.id", "not_found")),
        ({"id": "guide", "version": "2"}, (404, "prompt.version", "not_found")),
        ({"id": "guide", "version": "latest"}, (404, "prompt.version", "not_found")),
        ({"id": "draft"}, (400, "prompt.version", "prompt_not_in_force")),
        ({"id": "guide"}, (400, "prompt.variables", "missing_prompt_variable")),
        (
            {"id": "tutor", "variables": {"name": "x"}},
            (400, "prompt.variables", "unknown_prompt_variable"),
        ),
        (
            {"id": "guide", "variables": {"name": {"type": "input_image", "image_url": "x"}}},
            (400, "prompt.variables.name.type", "unsupported_value"),
        ),
        ({"id": "guide", "variables": {"name": 5}}, (400, None, "invalid_type")),
        ({"id": "guide", "version": 1}, (400, "prompt.version", "invalid_type")),
        ({"version": "1"}, (400, "prompt.id", "missing_required_parameter")),
        ("guide", (400, "prompt", "invalid_type")),
        ({"id": "guide", "extra": 1}, (400, "prompt.extra", None)),
    ],
)
async def test_a_prompt_that_can_not_be_had_is_refused_by_name(client, told, prompt, told_problem):
    status, param, code = problem(await respond(client, prompt=prompt))

    assert (status, code) == (told_problem[0], told_problem[2])
    assert param == told_problem[1] or told_problem[1] is None
    assert told == []


async def test_the_prompt_of_the_settings_comes_before_all_else(client, told, chat, defaults):
    defaults |= {MODEL: "house"}
    messages = [{"role": "system", "content": "In French."}, *CHAT["messages"]]
    await client.post("chat/completions", json=CHAT | {"messages": messages})
    turn = chat.turns[0].turn

    assert [each.content for each in turn.messages] == ["Be kind.", "In French.", "hi"]
    assert [each.kind for each in turn.pieces] == [
        PieceKind.PROMPT,
        PieceKind.INPUT,
        PieceKind.INPUT,
    ]
    assert (turn.prompt_version, turn.unjudged) == ("house@1", 1)


async def test_a_kept_chat_has_the_prompt_and_does_not_show_it(client, told, defaults):
    defaults |= {MODEL: "house"}
    answer = await client.post("chat/completions", json=CHAT | {"store": True})
    (new,) = told

    assert new.prompt.content == "Be kind."
    assert new.turn.prompt_version == "house@1"
    messages = await client.get(f"chat/completions/{answer.json()['id']}/messages")
    assert [each["content"] for each in messages.json()["data"]] == ["hi"]
    assert "Be kind" not in answer.text + messages.text


async def test_each_model_begins_with_its_own(client, told, defaults):
    defaults |= {MODEL: "house", ALIAS: "tutor"}

    for model in (MODEL, ALIAS):
        await respond(client, model=model)

    assert [each.prompt.content for each in told] == ["Be kind.", "Teach."]


async def test_a_response_shows_the_prompt_of_the_settings(client, told, defaults):
    defaults |= {MODEL: "house"}

    assert (await respond(client)).json()["prompt"] == {"id": "house", "version": "1"}


async def test_a_prompt_that_is_asked_for_stands_instead_of_that_of_the_settings(
    client, told, defaults
):
    defaults |= {MODEL: "house"}
    await respond(client, prompt={"id": "tutor"})

    assert told[0].prompt.content == "Teach."


@pytest.mark.parametrize("path", ["responses", "chat/completions", "responses/input_tokens"])
@pytest.mark.parametrize("name", ["nothing", "draft", "guide"])
async def test_nothing_is_answered_without_the_prompt_of_the_settings(
    client, told, chat, defaults, path, name
):
    defaults |= {MODEL: name}
    body = CHAT if "chat" in path else {"model": MODEL, "input": "hi"}
    answer = await client.post(path, json=body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "prompt_unavailable")
    assert "retry-after" in answer.headers
    assert name not in answer.text  # which is the operator's business
    assert (told, chat.turns) == ([], [])


@pytest.mark.parametrize("path", ["responses", "chat/completions"])
async def test_a_store_that_is_away_is_no_reason_to_go_without(client, told, kept, defaults, path):
    async def fail() -> None:
        raise StoreUnavailable("gone")

    defaults |= {MODEL: "house"}
    kept.before = fail
    body = CHAT if "chat" in path else {"model": MODEL, "input": "hi"}
    assert (await client.post(path, json=body)).status_code == 503

    kept.before = None
    await client.post(path, json=body)
    kept.before = fail
    assert (await client.post(path, json=body)).status_code == 200


async def test_the_operators_words_are_not_judged_and_a_clients_values_are(client, told):
    await respond(client, prompt={"id": "tutor"})
    await respond(client, prompt={"id": "guide", "variables": {"name": "Ada"}})

    assert [each.turn.unjudged for each in told] == [1, 0]


async def test_a_count_has_the_prompt_in_it(client, told, chat, defaults):
    defaults |= {MODEL: "house"}
    body = {"model": MODEL, "input": "hi", "instructions": "In French."}
    await client.post("responses/input_tokens", json=body)

    assert [each.content for each in chat.counted] == ["Be kind.", "In French.", "hi"]


@pytest.fixture
def split(kept) -> PromptStore:
    """A canary for half of all conversations."""
    kept.add("house", "Be very kind.")
    kept.activate("house", v1=0.5, v2=0.5)
    return kept


def versions(created) -> list[str]:
    return [each.turn.prompt_version for each in created]


async def test_a_conversation_keeps_its_version(client, told, split):
    prompt = {"id": "house"}
    for _ in range(3):
        for number in range(20):
            await respond(client, prompt=prompt, conversation=f"conv_{number}", input=f"{number}")
    first, second, third = versions(told)[:20], versions(told)[20:40], versions(told)[40:]

    assert first == second == third
    assert set(first) == {"house@1", "house@2"}


async def test_responses_that_follow_one_another_keep_their_version(client, told, split, shelf):
    for number in range(12):
        previous: dict[str, str] = {}
        for turn in range(4):
            answer = await respond(
                client, prompt={"id": "house"}, input=f"{number} {turn}", **previous
            )
            previous = {"previous_response_id": answer.json()["id"]}
            assert "prompt_key" not in answer.json()
    chains = [versions(told)[start : start + 4] for start in range(0, 48, 4)]

    assert all(len(set(chain)) == 1 for chain in chains)
    assert {chain[0] for chain in chains} == {"house@1", "house@2"}


async def test_what_began_before_there_was_a_choice_keeps_what_it_is_given_then(
    client, told, kept, monkeypatch
):
    monkeypatch.setattr("antiphon.actors.prompts.prompts.FRESH_S", 0.05)
    prompt = {"id": "house"}
    for number in range(10):
        await respond(client, prompt=prompt, input=f"{number}")
    kept.add("house", "Be very kind.")
    kept.activate("house", v1=0.5, v2=0.5)
    await trio.sleep(0.1)
    for turn in range(3):
        for new in told[turn * 10 : turn * 10 + 10]:
            await respond(client, prompt=prompt, previous_response_id=new.response.id)
    first, *later = (versions(told)[start : start + 10] for start in range(0, 40, 10))

    assert first == ["house@1"] * 10
    assert later[0] == later[1] == later[2]
    assert set(later[0]) == {"house@1", "house@2"}


async def test_a_chat_keeps_its_version_by_how_it_began(client, told, chat, split, defaults):
    defaults |= {MODEL: "house"}
    for number in range(12):
        messages = [{"role": "user", "content": f"question {number}"}]
        for _ in range(3):
            await client.post("chat/completions", json=CHAT | {"messages": messages})
            messages = [*messages, {"role": "assistant", "content": "Hello"}]
            messages = [*messages, {"role": "user", "content": "and?"}]
    found = [each.turn.prompt_version for each in chat.turns]
    chats = [found[start : start + 3] for start in range(0, 36, 3)]

    assert all(len(set(each)) == 1 for each in chats)
    assert {each[0] for each in chats} == {"house@1", "house@2"}


async def test_what_a_client_says_begins_alike_has_one_version(client, told, split):
    for number in range(10):
        for turn in range(3):
            await respond(
                client,
                prompt={"id": "house"},
                prompt_cache_key=f"key {number}",
                input=f"{number} {turn}",
            )
    found = versions(told)

    assert all(len(set(found[start : start + 3])) == 1 for start in range(0, 30, 3))
    assert len(set(found)) == 2


async def test_a_split_is_about_what_was_asked_for(client, told, split):
    for number in range(200):
        await respond(client, prompt={"id": "house"}, input=f"question {number}")

    assert 80 <= Counter(versions(told))["house@2"] <= 120


async def test_the_answer_of_a_split_shows_which_it_was(client, told, split):
    answers = [await respond(client, prompt={"id": "house"}, input=f"{n}") for n in range(10)]

    shown = [answer.json()["prompt"]["version"] for answer in answers]
    assert [f"house@{version}" for version in shown] == versions(told)
    assert set(shown) == {"1", "2"}

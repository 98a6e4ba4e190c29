"""Responses in a conversation that has become long: what the model is shown, and what is said of
it."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from antiphon.context_records import Memory, MemoryOrigin, Summary
from antiphon.context_settings import ContextSettings
from antiphon.errors import ContextLengthExceeded
from antiphon.events import Admit
from antiphon.ids import LOCAL_USER, ConversationId, ItemId, MemoryId, ResponseId
from antiphon.settings import Settings
from antiphon.testing.answers import AnswerRig, read_response, running_answers
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink

CHAT = ConversationId("conv_1")
AUTO = {"truncation": "auto"}


def engine() -> ScriptedLauncher:
    """Its window is 512, and every answer has four words."""
    return ScriptedLauncher(make=ScriptedLink)


async def ask(answers: AnswerRig, number: int, words: int = 36, **fields: Any) -> dict[str, Any]:
    """One turn; what the response shows of its context."""
    text = " ".join(f"t{number}w{word}" for word in range(words))
    fields.setdefault("turn", AUTO)
    watcher = await answers.create(f"resp_{number}", text=text, conversation=CHAT, **fields)
    await read_response(watcher)
    shown: dict[str, Any] = watcher.response.request["context"]
    return shown


def prompts(answers: AnswerRig) -> list[int]:
    return [len(each.prompt) for each in answers.rig.launcher.link.sent if isinstance(each, Admit)]


async def test_a_long_conversation_stays_in_its_window_and_says_what_it_left_out(autojump_clock):
    async with running_answers(engine()) as answers:
        shown = [await ask(answers, number) for number in range(24)]
        lengths = prompts(answers)
        stored = answers.store.rows[ResponseId("resp_23")].response
        dropped = answers.rig.telemetry.named("view_built")
        [*_, decision] = answers.rig.router.recent()[::-1]

    assert max(lengths) <= 512 - 16
    assert lengths == [each["prompt_tokens"] for each in shown]
    for number, each in enumerate(shown):
        assert sum(run["items"] for run in each["runs"]) == 2 * number + 1
        texts = sum(run["shown_tokens"] for run in each["runs"])
        assert texts + each["template_tokens"] == each["prompt_tokens"]
    assert [run["fate"] for run in shown[-1]["runs"]] == ["dropped", "shown", "shown"]
    assert stored.request["context"] == shown[-1]
    assert len(dropped) == 24
    assert decision.prompt_tokens == lengths[-1]
    assert decision.items == {"dropped": shown[-1]["runs"][0]["items"]}


async def test_turns_are_left_out_in_steps(autojump_clock):
    async with running_answers(engine()) as answers:
        firsts = []
        for number in range(40):
            shown = await ask(answers, number)
            [old] = [run for run in shown["runs"] if run["kind"] == "history"][-1:] or [{}]
            firsts.append(old.get("first"))

    steps = [number for number in range(2, 40) if firsts[number] != firsts[number - 1]]
    assert 2 <= len(steps) <= 10
    assert all(later - earlier >= 3 for earlier, later in pairwise(steps))


async def test_disabled_shows_all_or_refuses_with_the_numbers(autojump_clock):
    disabled = {"turn": {"truncation": "disabled"}}
    async with running_answers(engine()) as answers:
        for number in range(11):
            shown = await ask(answers, number, **disabled)
        assert {run["fate"] for run in shown["runs"]} == {"shown"}
        await ask(answers, 11, **disabled)
        watcher = await answers.create(
            "resp_12", text="w " * 36, conversation=CHAT, turn={"truncation": "disabled"}
        )
        with pytest.raises(ContextLengthExceeded) as caught:
            await read_response(watcher)

    assert caught.value.window == 512
    assert caught.value.prompt_tokens == 12 * 40 + 36


async def test_a_summary_stands_for_what_it_covers_unless_all_is_wanted(autojump_clock):
    async with running_answers(engine()) as answers:
        for number in range(3):
            await ask(answers, number)
        until = answers.store.rows[ResponseId("resp_1")].response.output[-1].id
        answers.store.summaries[CHAT] = Summary(
            conversation=CHAT,
            until=until,
            items=4,
            tokens=80,
            text="They counted words.",
            made_by="extract",
            created_ms=1,
        )
        shown = await ask(answers, 3)
        whole = await ask(answers, 4, turn={"truncation": "disabled"})

    assert [(run["kind"], run["fate"], run["items"]) for run in shown["runs"]] == [
        ("history", "summarised", 4),
        ("summary", "shown", 1),
        ("history", "shown", 2),
        ("input", "shown", 1),
    ]
    assert shown["runs"][0]["tokens"] == 80
    assert sum(run["items"] for run in whole["runs"]) == 9


async def test_what_is_known_of_the_user_is_shown(autojump_clock):
    memory = Memory(
        id=MemoryId("mem_1"),
        user=LOCAL_USER,
        text="I have a dog.",
        origin=MemoryOrigin.ADDED,
        created_ms=1,
        updated_ms=1,
        item=ItemId("elsewhere"),
    )
    settings = msgspec.structs.replace(Settings(), context=ContextSettings(memory=True))
    async with running_answers(engine(), settings=settings) as answers:
        answers.store.memories_of[LOCAL_USER] = (memory,)
        shown = await ask(answers, 1)

    assert shown["runs"][0] == {
        "kind": "memory",
        "fate": "shown",
        "items": 1,
        "tokens": 5,
        "shown_tokens": 5,
    }


async def test_a_threshold_lowers_what_is_shown(autojump_clock):
    async with running_answers(engine()) as answers:
        for number in range(6):
            await ask(answers, number)
        shown = await ask(answers, 6, turn=AUTO | {"compact": 100})

    assert shown["prompt_tokens"] <= 100


async def test_items_are_stored_with_their_counts(autojump_clock):
    async with running_answers(engine()) as answers:
        await ask(answers, 1)
        row = answers.store.rows[ResponseId("resp_1")]

    assert row.counts == {ItemId("msg_resp_1"): 36}
    assert [item.tokens for item in row.response.output] == [3]


async def test_a_request_that_brings_everything_is_cut_only_where_it_says_so(autojump_clock):
    async with running_answers(engine()) as answers:
        watcher = await answers.create("resp_1", text="w " * 600, turn=AUTO)
        with pytest.raises(ContextLengthExceeded):
            await read_response(watcher)

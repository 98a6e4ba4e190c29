"""What the policy ends is stored, replayed and remembered as that."""

from typing import Any

import pytest
import trio

from antiphon.actors.responses.retold import told
from antiphon.actors.responses.script import Script
from antiphon.errors import TurnInterrupted
from antiphon.ids import ItemId, NodeId, ResponseId
from antiphon.judged import judged_of
from antiphon.messages import PLACEHOLDER, messages_of
from antiphon.narration import (
    Ended,
    ItemClosed,
    ItemOpened,
    Opened,
    PartClosed,
    PartOpened,
    RefusalAdded,
    RefusalClosed,
    RefusalOpened,
    Started,
    TextAdded,
    TextClosed,
    decode_events,
    encode_events,
)
from antiphon.records import ResponseKind, ResponseStatus
from antiphon.testing.answers import (
    a_message,
    a_response,
    read_response,
    running_answers,
    slowly,
    some_text,
    status_of,
    stored_events,
)
from antiphon.testing.judging import ScriptedJudge, ScriptedModeration
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink
from antiphon.testing.turn_store import TurnStore
from antiphon.turn_events import ChoiceEnded, Delta, FinishReason, Refused, TurnEnded, Usage
from antiphon.verdicts import Action, OnFailure, Scoring, Stage

CUT = FinishReason.CONTENT_FILTER
USAGE = Usage(prompt_tokens=2, completion_tokens=1)
BAD = "a bomb"


def policy(**fields: Any) -> ScriptedModeration:
    stages = frozenset({Stage.INPUT, Stage.OUTPUT})
    judge = ScriptedJudge(phrases={"bomb": Action.BLOCK}, stages=stages, **fields)
    return ScriptedModeration(judge=judge)


def test_a_refusal_before_any_text_is_the_messages_only_part() -> None:
    script = Script(a_response("resp_1"), new_item=lambda: ItemId("msg_0"))
    script.show((None, ItemId("msg_a"), ItemId("msg_b")))

    events = [
        *script.on_turn(Refused(choice=0, text="No.", messages=(0, 2))),
        *script.on_turn(ChoiceEnded(choice=0, finish_reason=CUT)),
        *script.on_turn(TurnEnded(usage=USAGE)),
        *script.end(script.outcome()),
    ]

    assert events == [
        Opened(status=ResponseStatus.IN_PROGRESS),
        Started(),
        ItemOpened(index=0, item=ItemId("msg_0")),
        RefusalOpened(index=0),
        RefusalAdded(index=0, text="No.", withheld=(ItemId("msg_b"),)),
        RefusalClosed(index=0),
        PartClosed(index=0),
        ItemClosed(index=0, finish=CUT),
        Ended(status=ResponseStatus.INCOMPLETE),
    ]
    [item] = script.response(ResponseStatus.INCOMPLETE, 5).output
    assert item.body["content"] == [{"type": "refusal", "refusal": "No."}]
    assert item.body["withheld"] == ["msg_b"]


def test_a_refusal_after_text_closes_it_and_is_a_part_of_its_own() -> None:
    script = Script(a_response("resp_1"), new_item=lambda: ItemId("msg_0"))

    events = [
        *script.on_turn(Delta(choice=0, text="So far")),
        *script.on_turn(Refused(choice=0, text="No.")),
        *script.on_turn(ChoiceEnded(choice=0, finish_reason=CUT)),
    ]

    assert events[3:] == [
        PartOpened(index=0),
        TextAdded(index=0, text="So far"),
        TextClosed(index=0),
        PartClosed(index=0),
        RefusalOpened(index=0),
        RefusalAdded(index=0, text="No."),
        RefusalClosed(index=0),
        PartClosed(index=0),
        ItemClosed(index=0, finish=CUT),
    ]
    [item] = script.response(ResponseStatus.INCOMPLETE, 5).output
    assert [part["type"] for part in item.body["content"]] == ["output_text", "refusal"]
    assert "withheld" not in item.body
    assert script.response(ResponseStatus.INCOMPLETE, 5).incomplete_reason == "content_filter"


def test_wherever_a_log_breaks_off_what_is_made_of_it_closes_what_is_open() -> None:
    response = a_response("resp_1")
    script = Script(response)
    events = [
        *script.on_turn(Delta(choice=0, text="So far")),
        *script.on_turn(Refused(choice=0, text="No.")),
        *script.on_turn(ChoiceEnded(choice=0, finish_reason=CUT)),
    ]
    for count in range(len(events) + 1):
        read = decode_events(encode_events(events[:count]))
        resumed = Script.resumed(response, read)

        whole = [*read, *resumed.end(ResponseStatus.FAILED)]

        parts = sum(isinstance(event, PartOpened | RefusalOpened) for event in whole)
        assert parts == sum(isinstance(event, PartClosed) for event in whole)
        assert sum(isinstance(event, ItemOpened) for event in whole) == sum(
            isinstance(event, ItemClosed) for event in whole
        )
        assert Script.resumed(response, whole).output(1) == resumed.output(1)


def test_a_response_whose_log_is_gone_tells_its_refusal_from_its_output() -> None:
    script = Script(a_response("resp_1"))
    events = [
        *script.on_turn(Delta(choice=0, text="So far")),
        *script.on_turn(Refused(choice=0, text="No.")),
        *script.on_turn(ChoiceEnded(choice=0, finish_reason=CUT)),
        *script.end(ResponseStatus.INCOMPLETE),
    ]

    retold = told(script.response(ResponseStatus.INCOMPLETE, 5))

    assert [type(event) for event in retold] == [type(event) for event in events]


def test_logs_of_before_are_read_as_they_were() -> None:
    old = b'[["opened","in_progress"],["started"],["item",0,"msg_1"],["part",0],["text",0,"a",[]]]'

    script = Script.resumed(a_response("resp_1"), decode_events(old))

    assert [type(event) for event in script.end(ResponseStatus.FAILED)] == [
        TextClosed,
        PartClosed,
        ItemClosed,
        Ended,
    ]


async def test_a_blocked_response_is_stored_as_it_was_shown(autojump_clock: object) -> None:
    async with running_answers(moderation=policy()) as answers:
        watcher = await answers.create("resp_1", text=BAD)

        events = await read_response(watcher)

        assert status_of(events) is ResponseStatus.INCOMPLETE
        assert watcher.response.incomplete_reason == "content_filter"
        assert stored_events(answers.store, "resp_1") == events
        kept = answers.store.rows[ResponseId("resp_1")].response
        assert kept.output[0].body["content"] == [{"type": "refusal", "refusal": "No."}]
        assert kept.output[0].body["withheld"] == ["msg_resp_1"]
        judged = judged_of(kept.request["judged"])
        assert judged.input is not None
        assert judged.input.blocked_by == "bomb"
        assert watcher.placed is not None
        assert watcher.placed.policy == "rules-1"


async def test_what_was_blocked_is_not_shown_to_the_model_by_the_next_turn(
    autojump_clock: object,
) -> None:
    moderation = policy()
    launcher = ScriptedLauncher(make=lambda: ScriptedLink())
    async with running_answers(launcher, moderation=moderation, sends_messages=True) as answers:
        await read_response(await answers.create("resp_1", text=BAD))
        events = await read_response(
            await answers.create("resp_2", text="fine", previous=ResponseId("resp_1"))
        )

        assert status_of(events) is ResponseStatus.COMPLETED
        # Users keep what they wrote.
        row = answers.store.rows[ResponseId("resp_1")]
        assert row.input[0].body["content"][0]["text"] == BAD
    shown = [message.content for message in launcher.link.sent[-1].messages]  # type: ignore[union-attr]
    assert shown == [PLACEHOLDER, "No.", "fine"]


async def test_history_that_new_rules_block_is_withheld_from_then_on(
    autojump_clock: object,
) -> None:
    moderation = policy()
    async with running_answers(moderation=moderation) as answers:
        moderation.judge.phrases = {}
        await read_response(await answers.create("resp_1", text=BAD))
        moderation.judge.phrases = {"bomb": Action.BLOCK}
        blocked = await read_response(
            await answers.create("resp_2", text="fine", previous=ResponseId("resp_1"))
        )
        after = await read_response(
            await answers.create("resp_3", text="well", previous=ResponseId("resp_2"))
        )

    assert status_of(blocked) is ResponseStatus.INCOMPLETE
    assert status_of(after) is ResponseStatus.COMPLETED


async def test_what_could_not_be_judged_is_shown_again_when_it_can(autojump_clock: object) -> None:
    moderation = policy(missing={Stage.INPUT: OnFailure.CLOSED})
    async with running_answers(moderation=moderation) as answers:
        await read_response(await answers.create("resp_1", text="fine"))
        item = answers.store.rows[ResponseId("resp_1")].response.output[0]

        assert "withheld" not in item.body
        moderation.judge.missing = {}
        events = await read_response(
            await answers.create("resp_2", text="more", previous=ResponseId("resp_1"))
        )
        assert status_of(events) is ResponseStatus.COMPLETED


async def test_a_cut_in_mid_stream_keeps_what_was_delivered(autojump_clock: object) -> None:
    launcher = ScriptedLauncher(
        make=lambda: ScriptedLink(answer=lambda _: ["So ", "far", " a bo", "mb", " x"])
    )
    async with running_answers(launcher, moderation=policy()) as answers:
        watcher = await answers.create("resp_1")
        events = await read_response(watcher)

        assert status_of(events) is ResponseStatus.INCOMPLETE
        kept = answers.store.rows[ResponseId("resp_1")].response
        text, refusal = kept.output[0].body["content"]
        assert (text["text"], refusal["refusal"]) == ("So far a ", "No.")
        assert kept.usage is not None
        assert kept.usage.output == 4
        assert stored_events(answers.store, "resp_1") == events


async def test_a_background_response_is_refused_without_a_reader(autojump_clock: object) -> None:
    async with running_answers(moderation=policy()) as answers:
        await answers.create("resp_1", text=BAD, background=True)
        await trio.sleep(2)

        kept = answers.store.rows[ResponseId("resp_1")].response
        assert kept.status is ResponseStatus.INCOMPLETE
        assert kept.incomplete_reason == "content_filter"


@pytest.mark.parametrize("asks", [False, True])
async def test_what_was_judged_is_kept_where_it_was_asked_for(
    autojump_clock: object, asks: bool
) -> None:
    turn = {"scoring": Scoring() if asks else None}
    async with running_answers(moderation=policy()) as answers:
        await read_response(await answers.create("resp_1", turn=turn))

        assert ("judged" in answers.store.rows[ResponseId("resp_1")].response.request) is asks


async def test_of_a_server_that_died_after_a_refusal_it_is_still_told(
    autojump_clock: object,
) -> None:
    """Its log has the refusal, and nobody wrote its end."""
    store = TurnStore()
    async with running_answers(store=store, moderation=policy(), reaper=True, alone=True) as rig:
        launcher_text = await read_response(await rig.create("resp_1", text=BAD))
        row = store.rows[ResponseId("resp_1")]
        row.response = a_response("resp_1")
        row.owner = NodeId("node_gone")
        body = encode_events(launcher_text[:-1])
        first = row.batches[0]
        row.batches = {0: type(first)(first=0, last=len(launcher_text) - 2, body=body)}
        await trio.sleep(30)

        kept = store.rows[ResponseId("resp_1")].response
        assert kept.status is ResponseStatus.FAILED
        assert kept.output[0].body["content"] == [{"type": "refusal", "refusal": "No."}]
        assert messages_of((a_message("msg_resp_1", BAD), *kept.output))[0].content == PLACEHOLDER


async def test_a_stop_while_the_input_is_judged_is_an_interruption(autojump_clock: object) -> None:
    moderation = policy()
    moderation.judge.hold(Stage.INPUT)
    async with running_answers(slowly(), moderation=moderation) as answers:
        watcher = await answers.create("resp_1")
        with trio.move_on_after(2):
            await some_text(watcher)
        answers.rig.stop.set()
        events = await read_response(watcher)

        assert status_of(events) is ResponseStatus.FAILED
        assert isinstance(watcher.error, TurnInterrupted)
        assert not any(isinstance(event, TextAdded) for event in events)


def test_a_chats_choices_say_it_each_for_itself() -> None:
    script = Script(a_response("chatcmpl-1", kind=ResponseKind.CHAT))
    script.on_turn(Refused(choice=0, text="No."))
    script.on_turn(ChoiceEnded(choice=0, finish_reason=CUT))
    script.on_turn(Delta(choice=1, text="Hi"))
    script.on_turn(ChoiceEnded(choice=1, finish_reason=FinishReason.STOP))

    assert script.outcome() is ResponseStatus.COMPLETED
    reasons = [item.body["finish_reason"] for item in script.output(1)]
    assert reasons == ["content_filter", "stop"]

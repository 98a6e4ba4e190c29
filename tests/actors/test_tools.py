"""Turns with functions, from the session to the engine and back: a scripted engine says what a
model would."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
import trio

from antiphon.errors import TurnInterrupted
from antiphon.events import Admit, CancelCause, EndReason, Fault, HostCommand, Message, Released
from antiphon.testing.rig import read_all, read_next, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.tools import CallDelta, CallEnded, CallStarted, Tool, Toolbox, ToolCall
from antiphon.turn_events import ChoiceEnded, Delta, FinishReason, TurnEnded, TurnEvent, TurnFailed

WEATHER = Tool(
    name="get_weather",
    description="The weather of a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
PARIS = '{"name":"get_weather","arguments":{"city":"Paris"}}'
GOOD = f"<tool_call>{PARIS}</tool_call>"
BAD = '<tool_call>{"name":"get_weather","arguments":{"town":"Paris"}}</tool_call>'


def box(**fields: Any) -> Toolbox:
    return Toolbox(**{"tools": (WEATHER,), **fields})


def pieces(text: str, size: int = 5) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def answering(free: str, constrained: str = PARIS, **capabilities: Any) -> ScriptedLauncher:
    """An engine that says the one thing, and the other where it is held to a schema."""

    def answer(admit: Admit) -> Iterable[str]:
        return pieces(free if admit.sampling.json_schema is None else constrained)

    def make() -> ScriptedLink:
        return ScriptedLink(answer=answer, capabilities=capabilities.get("engine", _ENGINE))

    return ScriptedLauncher(make)


_ENGINE = scripted_capabilities(window=2048, kv_blocks=256)


def calls_in(events: list[TurnEvent]) -> list[tuple[str, Any]]:
    found: list[tuple[str, str]] = []
    whole = 0
    for event in events:
        match event:
            case CallStarted(name=name):
                found.append((name, ""))
            case CallDelta(call=call, text=text):
                found[call] = (found[call][0], found[call][1] + text)
            case CallEnded():
                whole += 1
    assert whole == len(found)
    return [(name, json.loads(arguments)) for name, arguments in found]


def text_of(events: list[TurnEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


def end_of(events: list[TurnEvent]) -> FinishReason:
    [end] = [event for event in events if isinstance(event, ChoiceEnded)]
    return end.finish_reason


async def ask(launcher: ScriptedLauncher, **turn: Any) -> tuple[list[TurnEvent], list[str]]:
    """The events, and how the calls were counted."""
    async with running_rig(launcher) as rig:
        stream = await rig.open("a", **{"max_tokens": 200, "tools": box(), **turn})
        events = await read_all(stream)
        await trio.sleep(0.1)  # until the engine has said that its slots are free
        assert rig.running == rig.waiting == 0
        return events, [outcome for (outcome,) in rig.telemetry.named("tool_call")]


async def test_a_call_that_the_model_chose_is_made_and_its_text_leaves_before_it(autojump_clock):
    events, counted = await ask(answering(f"Let me see.\n{GOOD}"))

    assert text_of(events) == "Let me see."
    assert calls_in(events) == [("get_weather", {"city": "Paris"})]
    assert end_of(events) is FinishReason.TOOL_CALLS
    assert counted == ["chosen"]
    kinds = [type(event) for event in events]
    assert kinds.index(CallStarted) > max(at for at, kind in enumerate(kinds) if kind is Delta)


async def test_an_answer_without_a_call_is_as_without_tools(autojump_clock):
    events, counted = await ask(answering("It is 5 < 6."))

    assert text_of(events) == "It is 5 < 6."
    assert end_of(events) is FinishReason.STOP
    assert counted == []


@pytest.mark.parametrize(
    "bad",
    [
        BAD,
        "<tool_call>get_weather(Paris)</tool_call>",
        '<tool_call>{"name":"get_time","arguments":{}}</tool_call>',
        '<tool_call>{"name":"get_weather","arguments":{"city":',
        GOOD + BAD,
    ],
)
async def test_a_malformed_call_is_retried_once_under_a_schema_and_nothing_of_it_leaves(
    autojump_clock, bad
):
    launcher = answering(f"Well. {bad}")
    events, counted = await ask(launcher)

    assert text_of(events) == "Well."
    assert calls_in(events) == [("get_weather", {"city": "Paris"})]
    assert end_of(events) is FinishReason.TOOL_CALLS
    assert counted == ["malformed", "retried"]
    first, again = (each for each in launcher.link.sent if isinstance(each, Admit))
    assert first.sampling.json_schema is None
    assert json.loads(again.sampling.json_schema or "")
    assert first.prompt == again.prompt


async def test_both_attempts_are_in_the_usage_and_within_the_longest_answer(autojump_clock):
    launcher = answering(BAD)
    events, _ = await ask(launcher, max_tokens=60)

    _, again = (each for each in launcher.link.sent if isinstance(each, Admit))
    assert again.max_tokens == 60 - len(pieces(BAD))
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.usage.completion_tokens == len(pieces(BAD)) + len(pieces(PARIS))


@pytest.mark.parametrize("fields", [{"max_tokens": len(pieces(BAD)) + 3}, {}])
async def test_where_a_retry_cannot_be_had_what_was_written_leaves_as_text(autojump_clock, fields):
    engine = msgspec.structs.replace(_ENGINE, json_schema=bool(fields))
    events, counted = await ask(answering(f"Well. {BAD}", engine=engine), **fields)

    assert text_of(events) == f"Well. {BAD}"
    assert calls_in(events) == []
    assert end_of(events) is FinishReason.STOP
    assert counted == ["malformed"]


async def test_a_call_that_must_be_made_streams_its_arguments_as_they_come(autojump_clock):
    launcher = answering("never said")
    async with running_rig(launcher) as rig:
        stream = await rig.open("a", max_tokens=200, tools=box(required=True), stop=("Par",))
        events = [await read_next(stream)]
        while not isinstance(events[-1], TurnEnded):
            events.append(await read_next(stream))

    assert sum(isinstance(event, CallDelta) for event in events) > 1
    assert calls_in(events) == [("get_weather", {"city": "Paris"})]
    assert end_of(events) is FinishReason.TOOL_CALLS
    [admit] = (each for each in launcher.link.sent if isinstance(each, Admit))
    assert admit.stop == []
    schema = json.loads(admit.sampling.json_schema or "")
    assert schema["properties"]["name"] == {"const": "get_weather"}


async def test_a_call_that_the_longest_answer_cuts_is_no_whole_one(autojump_clock):
    events, counted = await ask(answering(""), tools=box(required=True), max_tokens=8)

    assert end_of(events) is FinishReason.LENGTH
    assert any(isinstance(event, CallStarted) for event in events)
    assert not any(isinstance(event, CallEnded) for event in events)
    assert counted == ["cut"]


async def test_of_a_chosen_call_that_is_cut_nothing_leaves(autojump_clock):
    events, counted = await ask(answering(f"Hm. {GOOD}"), max_tokens=8)

    assert text_of(events) == "Hm."
    assert calls_in(events) == []
    assert end_of(events) is FinishReason.LENGTH
    assert counted == ["cut"]


async def test_several_calls_are_numbered_and_one_is_enough_where_no_more_are_wanted(
    autojump_clock,
):
    both, _ = await ask(answering(GOOD + GOOD))
    one, counted = await ask(answering(GOOD + GOOD), tools=box(parallel=False))

    assert len(calls_in(both)) == 2
    assert len({event.id for event in both if isinstance(event, CallStarted)}) == 2
    assert len(calls_in(one)) == 1
    assert counted == ["chosen"]


async def test_each_choice_calls_for_itself(autojump_clock):
    events, counted = await ask(answering(BAD), choices=2)

    assert counted == ["malformed", "malformed", "retried", "retried"]
    assert {event.choice for event in events if isinstance(event, CallEnded)} == {0, 1}


@pytest.mark.parametrize("attempt", [1, 2])
async def test_who_leaves_in_the_middle_of_a_call_gets_nothing_more_and_gives_the_slot_back(
    autojump_clock, attempt
):
    begun = [trio.Event(), trio.Event()]

    def answer(admit: Admit) -> Iterable[str]:
        begun[admit.sampling.json_schema is not None].set()
        return pieces(BAD if admit.sampling.json_schema is None else PARIS)

    launcher = ScriptedLauncher(lambda: ScriptedLink(answer=answer, capabilities=_ENGINE))
    async with running_rig(launcher) as rig:
        stream = await rig.open("a", max_tokens=200, tools=box())
        await begun[attempt - 1].wait()
        await trio.sleep(0.025)
        stream.cancel(CancelCause.DISCONNECT)
        events = await read_all(stream)
        await trio.sleep(0.1)

        assert rig.running == rig.waiting == 0
    assert isinstance(events[-1], TurnFailed)
    assert isinstance(events[-1].error, TurnInterrupted)
    assert not any(isinstance(event, CallEnded) for event in events)


class _Picky(ScriptedLink):
    """Takes no schema at all, though it says that it does."""

    async def send(self, command: HostCommand) -> None:
        if not isinstance(command, Admit) or command.sampling.json_schema is None:
            await super().send(command)
            return
        slot, request = command.slot, command.request
        self.emit(Fault(code="invalid_schema", detail="it is none", request=request))
        self.emit(Released(slot=slot, request=request, reason=EndReason.FAILED, tokens=0))
        await trio.lowlevel.checkpoint()


async def test_a_retry_that_its_engine_refuses_ends_with_what_there_is(autojump_clock):
    def make() -> ScriptedLink:
        return _Picky(answer=lambda _: pieces(BAD), capabilities=_ENGINE)

    events, counted = await ask(ScriptedLauncher(make))

    assert text_of(events) == BAD
    assert end_of(events) is FinishReason.STOP
    assert counted == ["malformed"]


async def test_tools_and_what_became_of_calls_are_told_in_words_where_a_template_knows_none(
    autojump_clock,
):
    launcher = answering("ok")
    called = ToolCall(id="call_1", name="get_weather", arguments='{"city":"Paris"}')
    messages = (
        Message(role="user", content="hello"),
        Message(role="assistant", content="", call=called),
        Message(role="tool", content="18 degrees", call_id="call_1"),
    )
    async with running_rig(launcher, sends_messages=True) as rig:
        stream = await rig.open("a", max_tokens=16, tools=box(), messages=messages)
        await read_all(stream)

    [admit] = (each for each in launcher.link.sent if isinstance(each, Admit))
    system, _, said, result = admit.messages
    assert system.role == "system"
    assert WEATHER.text in system.content
    assert (said.role, said.call) == ("assistant", None)
    assert said.content.removeprefix("<tool_call>").removesuffix("</tool_call>") == (
        '{"name": "get_weather", "arguments": {"city":"Paris"}}'
    )
    assert (result.role, "18 degrees" in result.content) == ("user", True)

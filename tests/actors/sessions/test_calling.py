"""Calls of a turn, by themselves: what was generated in, text and calls out."""

from itertools import count

import pytest

from antiphon.actors.sessions.calling import Calling, Spoken
from antiphon.events import TokenLogprob
from antiphon.tools import CallDelta, CallEnded, CallStarted, Tool, Toolbox, ToolFormat
from antiphon.turn_events import ChoiceEnded, Delta, FinishReason

NOW = Tool(name="now", parameters={"type": "object"})
LATER = Tool(name="later", parameters={"type": "object"})
CALL = '{"name": "now", "arguments": {}}'


def a_calling(format: ToolFormat | None = None, **box: object) -> tuple[Calling, list[str]]:
    numbers, counted = count(), list[str]()
    toolbox = Toolbox(**{"tools": (NOW, LATER), **box})  # type: ignore[arg-type]
    calling = Calling(toolbox, 1, counted.append, lambda: f"call_{next(numbers)}")
    calling.begin(format, may_retry=True)
    return calling, counted


def say(
    calling: Calling, *texts: str, end: FinishReason | None = FinishReason.STOP
) -> list[Spoken]:
    told = [each for text in texts for each in calling.take(Delta(choice=0, text=text))]
    if end is not None:
        told += calling.take(ChoiceEnded(choice=0, finish_reason=end))
    return told


def names_in(told: list[Spoken]) -> list[str]:
    return [event.name for event in told if isinstance(event, CallStarted)]


def test_without_tools_everything_is_as_it_was_generated():
    calling = Calling(None, 1, lambda outcome: None)
    calling.begin(ToolFormat.HERMES, may_retry=True)

    assert say(calling, f"<tool_call>{CALL}</tool_call>", end=None) == [
        Delta(choice=0, text=f"<tool_call>{CALL}</tool_call>")
    ]


def test_log_probabilities_leave_with_their_text_and_those_of_calls_do_not():
    calling, _ = a_calling()
    tokens = ["Well", ".", "<tool_call>", CALL, "</tool_call>"]
    entries = [TokenLogprob(text=each, data=each.encode(), logprob=-1.0) for each in tokens]
    told: list[Spoken] = []
    for entry in entries:
        told += calling.take(Delta(choice=0, text=entry.text, logprobs=(entry,)))
    told += calling.take(ChoiceEnded(choice=0, finish_reason=FinishReason.STOP))

    left = [entry for event in told if isinstance(event, Delta) for entry in event.logprobs]
    assert left == entries[:2]


def test_a_call_comes_whole_once_the_answer_is():
    calling, counted = a_calling()

    assert say(calling, "<tool_call>", CALL, "</tool_call>", end=None) == []
    assert say(calling) == [
        CallStarted(choice=0, call=0, id="call_0", name="now"),
        CallDelta(choice=0, call=0, text="{}"),
        CallEnded(choice=0, call=0),
        ChoiceEnded(choice=0, finish_reason=FinishReason.TOOL_CALLS),
    ]
    assert counted == ["chosen"]


@pytest.mark.parametrize(
    ("format", "answer"),
    [
        (ToolFormat.LLAMA, f"{CALL}; {CALL}"),
        (ToolFormat.MISTRAL, f"[TOOL_CALLS][{CALL}, {CALL}]"),
        (ToolFormat.HERMES, f"<tool_call>{CALL}</tool_call>" * 2),
        (None, f"<tool_call>{CALL}</tool_call>" * 2),
    ],
)
def test_each_format_is_understood_and_llamas_template_takes_one_call(format, answer):
    calling, _ = a_calling(format)

    assert names_in(say(calling, answer)) == ["now"] * (1 if format is ToolFormat.LLAMA else 2)


def test_a_function_that_may_not_be_called_is_malformed_and_not_in_the_schema():
    calling, counted = a_calling(allowed=frozenset({"later"}))

    assert say(calling, f"<tool_call>{CALL}</tool_call>") == []
    assert calling.due() == [0]
    assert calling.due() == []
    assert '"later"' in calling.retry(0)
    assert '"now"' not in calling.retry(0)
    assert counted == ["malformed"]


def test_several_attempts_may_be_several_calls_the_second_time():
    calling, _ = a_calling()
    say(calling, "<tool_call>a</tool_call>" * 3)

    assert '"maxItems": 3' in calling.retry(0)


def test_good_calls_beside_a_malformed_one_are_made_where_there_is_no_second_time():
    calling, counted = a_calling()
    say(calling, f"<tool_call>{CALL}</tool_call><tool_call>a</tool_call>")

    told = calling.give_up(0)

    assert told[0] == Delta(choice=0, text="<tool_call>a</tool_call>")
    assert names_in(told) == ["now"]
    assert told[-1] == ChoiceEnded(choice=0, finish_reason=FinishReason.TOOL_CALLS)
    assert counted == ["malformed", "chosen"]


def test_what_an_engine_says_that_was_held_to_a_schema_and_knows_none_is_text():
    calling, counted = a_calling(required=True)

    assert say(calling, "I can't.") == [
        Delta(choice=0, text="I can't."),
        ChoiceEnded(choice=0, finish_reason=FinishReason.STOP),
    ]
    assert counted == ["malformed"]

"""Tools, calls and results for templates that know nothing of them."""

from antiphon.actors.tools.words import in_words
from antiphon.events import Message
from antiphon.tools import Tool, ToolCall

NOW = Tool(name="now", description="The time.", parameters={"type": "object"})


def says(role: str, content: str) -> Message:
    return Message(role=role, content=content)  # type: ignore[arg-type]


def calls(id: str, arguments: str = "{}") -> Message:
    call = ToolCall(id=id, name="now", arguments=arguments)
    return Message(role="assistant", content="", call=call)


def result(id: str, content: str) -> Message:
    return Message(role="tool", content=content, call_id=id)


def test_where_there_are_no_tools_and_no_calls_nothing_changes():
    messages = (says("system", "s"), says("user", "u"), says("assistant", "a"))

    assert in_words(messages, ()) == messages


def test_tools_are_told_at_the_beginning_after_the_system_prompt_that_is_there():
    alone = in_words([says("user", "u")], [NOW])
    beside = in_words([says("system", "Be kind."), says("user", "u")], [NOW])

    assert [message.role for message in alone] == ["system", "user"]
    assert NOW.text in alone[0].content
    assert [message.role for message in beside] == ["system", "user"]
    assert beside[0].content == f"Be kind.\n\n{alone[0].content}"


def test_calls_go_with_what_was_said_before_them_and_results_go_together():
    told = in_words(
        [
            says("user", "u"),
            says("assistant", "Let me see."),
            calls("a"),
            calls("b", '{"zone": "UTC"}'),
            result("a", "noon"),
            result("b", "night"),
            calls("c"),
        ],
        (),
    )

    assert [message.role for message in told] == ["user", "assistant", "user", "assistant"]
    assert told[1].content == (
        'Let me see.\n<tool_call>{"name": "now", "arguments": {}}</tool_call>\n'
        '<tool_call>{"name": "now", "arguments": {"zone": "UTC"}}</tool_call>'
    )
    assert told[2].content.index("noon") < told[2].content.index("night")
    assert all(message.call is None and message.call_id is None for message in told)


def test_what_is_told_of_a_conversation_begins_as_it_did_before_the_next_message():
    messages = [says("user", "u"), calls("a"), result("a", "noon"), says("assistant", "It's noon.")]

    before = in_words(messages[:3], [NOW])
    after = in_words(messages, [NOW])

    assert after[: len(before)] == before

"""Functions that a request offers, in both APIs, and what comes of them on the wire."""

from typing import Any

import msgspec
import pytest
import trio
from openai.types.chat import ChatCompletion

from antiphon.errors import InvalidRequest
from antiphon.events import Message
from antiphon.http.openai.parse import ParsedRequest, parse_chat
from antiphon.http.openai.responses.parse import ParsedCreate, parse_create
from antiphon.http.openai.tools import check_tools, parse_chat_tools, parse_tools
from antiphon.http.openai.turns import make_turn
from antiphon.ids import RequestId
from antiphon.ports import SamplingDefaults
from antiphon.testing.chat import MODEL, ScriptedChat, scripted_capabilities
from antiphon.tools import CallDelta, CallEnded, CallStarted, Tool, ToolCall
from antiphon.turn_events import ChoiceEnded, FinishReason, TurnEnded, Usage

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def chat_tool(name: str = "f", **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **fields}}


def tool(name: str = "f", **fields: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, **fields}


def chat(**fields: Any) -> ParsedRequest:
    asked = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    return parse_chat(msgspec.json.encode(asked | fields), max_choices=4)


def response(**fields: Any) -> ParsedCreate:
    return parse_create(msgspec.json.encode({"model": MODEL, "input": "hi"} | fields), 1)


def test_both_apis_offer_the_same_functions():
    described = {"description": "d", "parameters": SCHEMA, "strict": True}
    expected = (Tool(name="f", description="d", parameters=SCHEMA),)

    assert chat(tools=[chat_tool(**described)]).given.tools == expected
    assert response(tools=[tool(**described)]).given.tools == expected


def test_a_function_without_parameters_takes_none():
    for given in ({}, {"parameters": None}, {"parameters": {}}):
        parsed = chat(tools=[chat_tool(**given)])
        assert parsed.given.tools == (Tool(name="f", parameters=EMPTY),)
        check_tools(parsed.given)


@pytest.mark.parametrize(
    ("chosen", "flat", "allowed", "required"),
    [
        (None, None, None, False),
        ("auto", "auto", None, False),
        ("required", "required", None, True),
        (chat_tool("g"), tool("g"), {"g"}, True),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [chat_tool("f"), chat_tool("g")]},
            },
            {"type": "allowed_tools", "mode": "auto", "tools": [tool("f"), tool("g")]},
            {"f", "g"},
            False,
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [chat_tool("f")]},
            },
            {"type": "allowed_tools", "mode": "required", "tools": [tool("f")]},
            {"f"},
            True,
        ),
    ],
)
def test_what_may_and_must_be_called_is_said_in_the_words_of_each_api(
    chosen, flat, allowed, required
):
    for given in (
        parse_chat_tools([chat_tool("f"), chat_tool("g")], chosen, None),
        parse_tools([tool("f"), tool("g")], flat, None),
    ):
        assert given.toolbox is not None
        assert (given.toolbox.allowed, given.toolbox.required) == (allowed, required)
        assert len(given.toolbox.tools) == 2


def test_none_is_called_where_none_may_be():
    given = chat(tools=[chat_tool()], tool_choice="none").given

    assert given.toolbox is None
    assert len(given.tools) == 1


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [tool(), {"type": "custom", "name": "c"}]}, "tools[1].type"),
        ({"tools": [{"name": "f"}]}, "tools[0].type"),
        ({"tools": [tool("")]}, "tools[0].name"),
        ({"tools": [tool("a b")]}, "tools[0].name"),
        ({"tools": [tool("f" * 65)]}, "tools[0].name"),
        ({"tools": [tool(), tool()]}, "tools[1]"),
        ({"tools": [tool(f"f{n}") for n in range(129)]}, "tools"),
        ({"tools": [tool(description="d" * 16_385)]}, "tools[0].description"),
        ({"tools": [tool(f"f{n}", description="d" * 16_000) for n in range(9)]}, "tools"),
        ({"tools": [tool(more=1)]}, "tools[0].more"),
        ({"tools": [tool(parameters=[])]}, "tools[0].parameters"),
        ({"tools": [tool(defer_loading=True)]}, "tools[0].defer_loading"),
        ({"tools": [tool(output_schema=SCHEMA)]}, "tools[0].output_schema"),
        ({"tools": [tool()], "tool_choice": "sometimes"}, "tool_choice"),
        ({"tools": [tool()], "tool_choice": tool("g")}, "tool_choice"),
        ({"tools": [tool()], "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"tools": [tool()], "tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"tool_choice": "required"}, "tool_choice"),
        (
            {
                "tools": [tool()],
                "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []},
            },
            "tool_choice.tools",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_no_function_or_no_choice_is_refused_by_its_place(fields, param):
    with pytest.raises(InvalidRequest) as caught:
        response(**fields)

    assert caught.value.param == param
    assert len(str(caught.value)) < 300


def test_a_tool_that_is_refused_is_answered_with_those_that_there_are():
    search = {"type": "web_search"}
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [search]}

    for fields in ({"tools": [search]}, {"tools": [tool()], "tool_choice": allowed}):
        with pytest.raises(InvalidRequest, match="are: 'function' and 'file_search'"):
            response(**fields)
    with pytest.raises(InvalidRequest, match=r"are: 'function'\."):
        chat(tools=[search])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "object", "properties": {"a": {"type": "none"}}},
        {"type": "object", "properties": {"a": {"$ref": "http://x/y"}}},
        {"type": "object", "properties": {"default": {"$ref": "http://x/y"}}},
        {"type": "object", "description": "d" * 70_000},
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_schema_that_is_none_is_refused_before_the_engine_sees_it(schema):
    for given, place in (
        (parse_chat_tools([chat_tool(parameters=schema)], None, None), "tools[0].function"),
        (parse_tools([tool(parameters=schema)], None, None), "tools[0]"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            check_tools(given)
        assert caught.value.param == f"{place}.parameters"
        assert caught.value.code == "invalid_function_parameters"


CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "18"}


def test_calls_and_results_of_a_chat_are_messages_of_their_own():
    said = {"role": "assistant", "content": "Hm.", "tool_calls": [CALL, CALL | {"id": "call_2"}]}
    parsed = chat(messages=[{"role": "user", "content": "hi"}, said, RESULT])

    call = ToolCall(id="call_1", name="f", arguments="{}")
    assert parsed.messages[1:] == (
        Message(role="assistant", content="Hm."),
        Message(role="assistant", content="", call=call),
        Message(role="assistant", content="", call=ToolCall(id="call_2", name="f", arguments="{}")),
        Message(role="tool", content="18", call_id="call_1"),
    )
    turn = make_turn(parsed, RequestId("r"), SamplingDefaults(), None)
    assert turn.continues_tool


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([RESULT], "messages[0].role"),
        ([RESULT, {"role": "assistant", "tool_calls": [CALL]}], "messages[0].role"),
        (
            [{"role": "assistant", "tool_calls": [CALL]}, RESULT | {"tool_call_id": "call_2"}],
            "messages[1].role",
        ),
        (
            [{"role": "assistant", "tool_calls": [CALL | {"type": "custom"}]}],
            "messages[0].tool_calls[0].type",
        ),
        (
            [{"role": "assistant", "tool_calls": [CALL | {"function": {"name": "f"}}]}],
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            [{"role": "assistant", "tool_calls": [CALL | {"id": "c" * 257}]}],
            "messages[0].tool_calls[0].id",
        ),
        (
            [
                {"role": "assistant", "tool_calls": [CALL]},
                RESULT | {"content": [{"type": "image_url", "image_url": {"url": "x"}}]},
            ],
            "messages[1].content[0].type",
        ),
    ],
)
def test_a_call_or_a_result_that_is_none_is_refused_by_its_place(messages, param):
    with pytest.raises(InvalidRequest) as caught:
        chat(messages=messages)

    assert caught.value.param == param


def test_items_of_calls_and_results_are_kept_under_ids_of_their_own():
    parsed = response(
        input=[
            {"type": "function_call", "id": "fc_x", "call_id": "c", "name": "f", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [{"type": "input_text", "text": "18"}],
            },
        ]
    )

    call, result = parsed.input.items
    assert (call.type, call.id[:3], call.id != "fc_x") == ("function_call", "fc_", True)
    assert call.body == {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    assert (result.type, result.id[:4]) == ("function_call_output", "fco_")


@pytest.mark.parametrize(
    ("capabilities", "choice", "refused"),
    [(False, "required", True), (False, "auto", False), (True, "required", False)],
)
def test_a_call_that_must_be_made_needs_an_engine_that_can_be_held_to_it(
    capabilities, choice, refused
):
    engine = scripted_capabilities(json_schema=capabilities)
    parsed = chat(tools=[chat_tool()], tool_choice=choice)
    if not refused:
        assert make_turn(parsed, RequestId("r"), SamplingDefaults(), engine).tools
        return
    with pytest.raises(InvalidRequest) as caught:
        make_turn(parsed, RequestId("r"), SamplingDefaults(), engine)
    assert (caught.value.param, caught.value.code) == ("tool_choice", "unsupported_value")


def test_an_answer_in_json_or_a_call_as_the_model_likes_is_refused():
    parsed = chat(tools=[chat_tool()], response_format={"type": "json_object"})

    with pytest.raises(InvalidRequest) as caught:
        make_turn(parsed, RequestId("r"), SamplingDefaults(), None)
    assert caught.value.param == "response_format"


async def test_a_whole_answer_has_its_calls(client, chat: ScriptedChat):
    answers = []
    async with trio.open_nursery() as nursery:

        async def post() -> None:
            asked = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
            body = asked | {"tools": [chat_tool()], "tool_choice": "required"}
            answers.append(await client.post("chat/completions", json=body))

        nursery.start_soon(post)
        turn = await chat.next_turn()
        assert turn.turn.tools is not None
        assert turn.turn.tools.required
        turn.feed(
            CallStarted(choice=0, call=0, id="call_1", name="f"),
            CallDelta(choice=0, call=0, text='{"a":'),
            CallDelta(choice=0, call=0, text="1}"),
            CallEnded(choice=0, call=0),
            ChoiceEnded(choice=0, finish_reason=FinishReason.TOOL_CALLS),
            TurnEnded(usage=Usage(prompt_tokens=1, completion_tokens=1)),
        )

    [answer] = answers
    choice = answer.json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    function = {"name": "f", "arguments": '{"a":1}'}
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }
    ChatCompletion.model_validate(answer.json(), strict=True)

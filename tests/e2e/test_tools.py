"""Functions through openai-python, unmodified, against the real model, which is held to schemas and
so calls what it must."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import openai
import pytest
from openai.types.responses import ResponseFunctionToolCall

from antiphon.testing.process import ServerProcess

pytestmark = pytest.mark.engine

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 24},
        "unit": {"$ref": "#/$defs/unit"},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
    "$defs": {"unit": {"enum": ["celsius", "fahrenheit"]}},
}
CLOCK = {
    "type": "object",
    "properties": {"zone": {"type": "string", "maxLength": 12}},
    "required": ["zone"],
    "additionalProperties": False,
}
FUNCTIONS: list[dict[str, Any]] = [
    {"name": "get_weather", "description": "The weather of a city", "parameters": WEATHER},
    {"name": "get_time", "description": "The time in a time zone", "parameters": CLOCK},
]
CHAT_TOOLS = [{"type": "function", "function": function} for function in FUNCTIONS]
TOOLS = [{"type": "function", "strict": True, **function} for function in FUNCTIONS]
ASKED = {"role": "user", "content": "What is the weather in Paris?"}
NAMED = {"type": "function", "name": "get_weather"}
CHAT_NAMED = {"type": "function", "function": {"name": "get_weather"}}


@pytest.fixture
def client(server: ServerProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.base_url, api_key="unused", max_retries=0) as client:
        yield client


@pytest.fixture
def model(client: openai.OpenAI) -> str:
    return client.models.list().data[0].id


def check(name: str, arguments: str) -> None:
    schemas = {function["name"]: function["parameters"] for function in FUNCTIONS}
    jsonschema.validate(json.loads(arguments), schemas[name])


@pytest.mark.parametrize("choice", ["required", CHAT_NAMED], ids=["required", "named"])
def test_a_chat_calls_what_it_must_with_arguments_that_fit(
    client: openai.OpenAI, model: str, choice: Any
):
    asked = {"model": model, "messages": [ASKED], "tools": CHAT_TOOLS, "tool_choice": choice}
    answer = client.chat.completions.create(**asked, temperature=0, max_tokens=150)

    [called] = answer.choices
    [call] = called.message.tool_calls
    assert called.finish_reason == "tool_calls"
    assert called.message.content is None
    assert (call.type, call.id[:5]) == ("function", "call_")
    check(call.function.name, call.function.arguments)
    assert choice == "required" or call.function.name == "get_weather"

    with client.chat.completions.stream(**asked, temperature=0, max_tokens=150) as stream:
        deltas = [
            event.arguments_delta
            for event in stream
            if event.type == "tool_calls.function.arguments.delta"
        ]
        [whole] = stream.get_final_completion().choices[0].message.tool_calls
    assert len(deltas) > 3
    assert "".join(deltas) == whole.function.arguments == call.function.arguments


def test_a_chat_goes_on_from_the_result_of_its_call(client: openai.OpenAI, model: str):
    asked = {"model": model, "tools": CHAT_TOOLS, "temperature": 0, "max_tokens": 100}
    first = client.chat.completions.create(messages=[ASKED], tool_choice=CHAT_NAMED, **asked)
    message = first.choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "18 degrees"}

    answer = client.chat.completions.create(
        messages=[ASKED, message, result], tool_choice="none", **asked
    )

    assert answer.choices[0].message.content
    assert answer.choices[0].message.tool_calls is None
    assert answer.usage.prompt_tokens > 20


def test_a_kept_chat_shows_its_calls_again(client: openai.OpenAI, model: str):
    answer = client.chat.completions.create(
        model=model,
        messages=[ASKED],
        tools=CHAT_TOOLS,
        tool_choice=CHAT_NAMED,
        store=True,
        max_tokens=100,
    )

    kept = client.chat.completions.retrieve(answer.id)
    assert kept.choices[0].message.tool_calls == answer.choices[0].message.tool_calls
    assert kept.choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_a_response_calls_what_it_must_whole_and_streamed(
    client: openai.OpenAI, model: str, choice: Any
):
    asked = {"model": model, "input": "What is the weather in Paris?", "tools": TOOLS}
    answer = client.responses.create(**asked, tool_choice=choice, temperature=0)

    [call] = answer.output
    assert isinstance(call, ResponseFunctionToolCall)
    assert (answer.status, call.status, call.id[:3]) == ("completed", "completed", "fc_")
    check(call.name, call.arguments)

    with client.responses.stream(**asked, tool_choice=choice, temperature=0) as stream:
        events = list(stream)
        final = stream.get_final_response()
    deltas = [
        event.delta for event in events if event.type == "response.function_call_arguments.delta"
    ]
    [done] = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert len(deltas) > 3
    assert "".join(deltas) == done.arguments == final.output[0].arguments == call.arguments


@pytest.mark.parametrize("kind", ["conversation", "previous_response_id", "items"])
def test_a_response_goes_on_from_the_result_of_a_call_wherever_that_was(
    client: openai.OpenAI, model: str, kind: str
):
    where = {}
    if kind == "conversation":
        where = {"conversation": client.conversations.create().id}
    first = client.responses.create(
        model=model, input=[ASKED], tools=TOOLS, tool_choice=NAMED, temperature=0, **where
    )
    [call] = first.output
    given: list[Any] = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees, sunny"}
    ]
    if kind == "previous_response_id":
        where = {"previous_response_id": first.id}
    elif kind == "items":
        given = [ASKED, call.to_dict(), *given]

    answer = client.responses.create(
        model=model, input=given, max_output_tokens=40, temperature=0, **where
    )

    assert answer.output[-1].type == "message"
    assert answer.output_text
    if kind == "conversation":
        kinds = [item.type for item in client.conversations.items.list(**_id(where), order="asc")]
        assert kinds == ["message", "function_call", "function_call_output", "message"]


def _id(where: dict[str, str]) -> dict[str, str]:
    return {"conversation_id": where["conversation"]}


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_calls_are_counted(client: openai.OpenAI, server: ServerProcess, model: str, api: str):
    before = server.metric("antiphon_tool_calls_total")

    if api == "chat":
        client.chat.completions.create(
            model=model, messages=[ASKED], tools=CHAT_TOOLS, tool_choice=CHAT_NAMED, max_tokens=150
        )
    else:
        client.responses.create(model=model, input=[ASKED], tools=TOOLS, tool_choice=NAMED)

    assert server.metric("antiphon_tool_calls_total") == before + 1
    assert b'antiphon_tool_calls_total{outcome="required"}' in server.get("/metrics")[1]


def test_a_result_of_no_call_is_refused_and_leaves_nothing(client: openai.OpenAI, model: str):
    conversation = client.conversations.create()
    lost = {"type": "function_call_output", "call_id": "call_x", "output": "18"}

    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=model, input=[lost], conversation=conversation.id)

    assert "No tool call found for function call output with call_id call_x." in str(caught.value)
    assert caught.value.param == "input"
    assert not client.conversations.items.list(conversation.id).data

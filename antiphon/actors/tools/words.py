"""Tools, calls and results as a model is shown them: by its chat template where that knows how, and
else in plain words of ours, in the format of Hermes and Qwen, which many have been trained on.
Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import msgspec

from antiphon.events import Message
from antiphon.tools import Tool, ToolCall

_BEFORE = (
    "You may call functions to help with the user's request. Each line of these describes one, "
    "with the JSON schema of its arguments:\n<tools>\n"
)
_AFTER = (
    "\n</tools>\nTo call one, answer with its name and its arguments as JSON, in this form and "
    'with nothing after it:\n<tool_call>{"name": <name>, "arguments": <object>}</tool_call>\n'
    "Its result comes back as <tool_response>. Answer in plain words when no function is needed."
)


def in_words(messages: Sequence[Message], tools: Sequence[Tool]) -> tuple[Message, ...]:
    """The same for a template that knows nothing of tools: messages without calls and results."""
    if not tools and not any(each.call or each.role == "tool" for each in messages):
        return tuple(messages)
    told = tuple(_told(messages))
    if not tools:
        return told
    words = _BEFORE + "\n".join(tool.text for tool in tools) + _AFTER
    if told and told[0].role in {"system", "developer"}:
        # Many templates have room for one of these, and only in front.
        first = replace(told[0], content=f"{told[0].content}\n\n{words}")
        return (first, *told[1:])
    return (Message(role="system", content=words), *told)


def _told(messages: Sequence[Message]) -> Iterator[Message]:
    for kind, group in groupby(messages, _kind):
        together = tuple(group)
        match kind:
            case "call":
                yield from _with_calls(together)
            case "result":
                # One message of the user's: templates want user and assistant by turns.
                yield Message(role="user", content="\n".join(map(_result, together)))
            case _:
                yield from together


def _kind(message: Message) -> str:
    if message.role == "tool":
        return "result"
    return "call" if message.role == "assistant" else "other"


def _with_calls(messages: Sequence[Message]) -> Iterator[Message]:
    """An assistant's in a row: calls go with what was said before them."""
    said: Message | None = None
    for message in messages:
        if message.call is None:
            if said is not None:
                yield said
            said = message
        else:
            before = "" if said is None or not said.content else f"{said.content}\n"
            base = said or message
            said = replace(base, content=before + _call(message.call), call=None)
    if said is not None:
        yield said


def _call(call: ToolCall) -> str:
    written = f'{{"name": {_json(call.name)}, "arguments": {call.arguments or "{}"}}}'
    return f"<tool_call>{written}</tool_call>"


def _result(message: Message) -> str:
    return f"<tool_response>\n{message.content}\n</tool_response>"


def _json(value: str) -> str:
    return msgspec.json.encode(value).decode()

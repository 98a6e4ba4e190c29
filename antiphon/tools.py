"""Functions that a client has and a model may call: what they are, which of them may be called, and
the calls. Values that rooms exchange."""

import enum
from dataclasses import dataclass, replace
from typing import Any

import msgspec

Parameters = dict[str, Any]
"""A JSON schema of an object."""


class ToolFormat(enum.Enum):
    """How a model was trained to write calls, by what its chat template says."""

    HERMES = "hermes"
    """`<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes, Qwen; and our own words for
    models whose template knows nothing of tools."""
    LLAMA = "llama"
    """The whole answer is `{"name": …, "parameters": {…}}`: Llama 3."""
    MISTRAL = "mistral"
    """`[TOOL_CALLS][{"name": …, "arguments": {…}}]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One function."""

    name: str
    description: str = ""
    parameters: Parameters

    @property
    def text(self) -> str:
        """All of it that a model reads, as JSON."""
        return msgspec.json.encode(self.described()).decode()

    def described(self) -> dict[str, Any]:
        """As models are shown it."""
        description = {"description": self.description} if self.description else {}
        return {"name": self.name, **description, "parameters": self.parameters}

    def reworded(self, text: str) -> "Tool":
        """With what was replaced in `text`. Where that is no description any more, nothing of it
        is shown but the name."""
        try:
            given = msgspec.json.decode(text)
        except msgspec.DecodeError:
            given = None
        match given:
            case {"parameters": dict(parameters)}:
                description = str(given.get("description", ""))
            case _:
                description, parameters = "", {"type": "object"}
        return replace(self, description=description, parameters=parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """What a model is shown in one turn, and what it may do with it. There is none where it may
    call nothing."""

    tools: tuple[Tool, ...]
    allowed: frozenset[str] | None = None
    """The names of those that may be called; None means all."""
    required: bool = False
    """Its answer is a call, and no text."""
    parallel: bool | None = None
    """Whether one answer may hold several calls; None where the client didn't say."""

    @property
    def callable(self) -> tuple[Tool, ...]:
        return tuple(
            each for each in self.tools if self.allowed is None or each.name in self.allowed
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """`arguments` is the text of a JSON object; what a client sends back may be anything."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A choice calls a function. Calls of a choice are numbered from 0; its text, if it has any,
    comes before them all."""

    choice: int
    call: int
    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDelta:
    """More of the call's arguments."""

    choice: int
    call: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """The call is whole: its arguments are a JSON object. One that is cut has no such end."""

    choice: int
    call: int

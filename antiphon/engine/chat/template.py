"""A model's chat template, rendered as `transformers` renders it, since that is what it was written
for.

Knows text only; what of the text may become a special token is the tokenizer's concern.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from antiphon.errors import InvalidRequest
from antiphon.events import Message
from antiphon.tools import Tool, ToolCall, ToolFormat


class ChatTemplate:
    """Compiled once. Raises jinja2.TemplateSyntaxError when the source isn't a template."""

    def __init__(self, source: str, *, special_tokens: Mapping[str, str]) -> None:
        self._template = _ENVIRONMENT.from_string(source)
        self._special_tokens = dict(special_tokens)
        # Only some families were trained with a developer role; to all others it means system.
        self._knows_developer = "developer" in source
        self.tool_format = tool_format(source)
        """None where it knows nothing of tools, or what is not known here."""

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str:
        """The prompt up to where the assistant speaks. Raises InvalidRequest when the template
        refuses."""
        try:
            return self._template.render(
                messages=self._entries(messages),
                tools=[_described(tool) for tool in tools] or None,
                documents=None,
                add_generation_prompt=True,
                **self._special_tokens,
            )
        # A template is a program: an order of roles it does not expect may end in any of these.
        except (
            jinja2.TemplateError,
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            message = f"the model's chat template refuses these messages: {error}"
            raise InvalidRequest(message, "messages") from error

    def _entries(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Calls go into the message before them, if the assistant has spoken there."""
        entries: list[dict[str, Any]] = []
        names: dict[str, str] = {}
        for message in messages:
            if message.call is None:
                entries.append(self._entry(message, names))
                continue
            names[message.call.id] = message.call.name
            if not entries or entries[-1]["role"] != "assistant":
                entries.append({"role": "assistant", "content": ""})
            entries[-1].setdefault("tool_calls", []).append(self._call(message.call))
        return entries

    def _entry(self, message: Message, names: Mapping[str, str]) -> dict[str, Any]:
        role: str = message.role
        if role == "developer" and not self._knows_developer:
            role = "system"
        entry = {"role": role, "content": message.content}
        if message.name is not None:
            entry["name"] = message.name
        if message.call_id is not None:
            entry["tool_call_id"] = self._call_id(message.call_id)
            if message.call_id in names:
                entry["name"] = names[message.call_id]
        return entry

    def _call(self, call: ToolCall) -> dict[str, Any]:
        """Templates write arguments as JSON themselves."""
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            arguments = call.arguments
        function = {"name": call.name, "arguments": arguments}
        return {"id": self._call_id(call.id), "type": "function", "function": function}

    def _call_id(self, id: str) -> str:
        """Mistral's templates refuse all that isn't nine letters and digits."""
        if self.tool_format is ToolFormat.MISTRAL:
            return hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:9]
        return id


def tool_format(source: str) -> ToolFormat | None:
    """Which of the formats that are understood here a template has its model write calls in."""
    if re.search(r"\btools\b", source) is None or "<function=" in source or "[ARGS]" in source:
        return None
    if "<tool_call>" in source:
        return ToolFormat.HERMES
    if "[TOOL_CALLS]" in source:
        return ToolFormat.MISTRAL
    is_llama = "<|python_tag|>" in source or '"parameters": ' in source
    return ToolFormat.LLAMA if is_llama and "ipython" in source else None


def _described(tool: Tool) -> dict[str, Any]:
    """Some templates fail where there is no description."""
    function = {"name": tool.name, "description": "", "parameters": None} | tool.described()
    return {"type": "function", "function": function}


class _Generation(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}` marks training targets; when rendering it is its
    body."""

    tags = {"generation"}

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.now().strftime(pattern)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own filter escapes HTML, which a model was never shown."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _environment() -> jinja2.sandbox.ImmutableSandboxedEnvironment:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_Generation, jinja2.ext.loopcontrols],
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


_ENVIRONMENT = _environment()

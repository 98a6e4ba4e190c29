"""A model's chat template, rendered as `transformers` renders it, since that is what it was written
for.

Knows text only; what of the text may become a special token is the tokenizer's concern.
"""

import json
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


class ChatTemplate:
    """Compiled once. Raises jinja2.TemplateSyntaxError when the source isn't a template."""

    def __init__(self, source: str, *, special_tokens: Mapping[str, str]) -> None:
        self._template = _ENVIRONMENT.from_string(source)
        self._special_tokens = dict(special_tokens)
        # Only some families were trained with a developer role; to all others it means system.
        self._knows_developer = "developer" in source

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt up to where the assistant speaks. Raises InvalidRequest when the template
        refuses."""
        entries = [self._entry(message) for message in messages]
        try:
            return self._template.render(
                messages=entries,
                tools=None,
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

    def _entry(self, message: Message) -> dict[str, str]:
        role: str = message.role
        if role == "developer" and not self._knows_developer:
            role = "system"
        entry = {"role": role, "content": message.content}
        if message.name is not None:
            entry["name"] = message.name
        return entry


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

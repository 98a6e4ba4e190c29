"""The registry of the API's operations, and the OpenAPI 3.1 document made from it.

An operation is declared once: mounting it makes the route, and the same structs that decode its
request and encode its answer describe it. A route without a description can't be made.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, cast

import msgspec
from quart import Quart

from antiphon.http.errors import ErrorBody
from antiphon.records import JsonObject

_REFERENCE = "#/components/schemas/{name}"
_VARIABLE = re.compile(r"<(?:\w+:)?(?P<name>\w+)>")
_REGISTRY = "antiphon.operations"
_ALWAYS = (400, 401, 403, 429, 500, 503)
"""A malformed query, a key, a scope or a suspension, a limit or a brake, a defect, a store or an
engine that is away."""
_WITH_BODY = (408, 413, 415)

ANY_TEXT: JsonObject = {"type": "string"}


@dataclass(frozen=True, slots=True)
class Query:
    """A parameter of the query string; never required, so that a bare URL works."""

    name: str
    type: Any
    description: str
    minimum: int | None = None
    maximum: int | None = None
    longest: int | None = None
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method on one URL rule."""

    method: str
    rule: str
    name: str
    """`operationId`, and the endpoint's name."""
    handler: Callable[..., Awaitable[Any]]
    summary: str
    answer: Any = None
    """What `msgspec` encodes on success, as JSON."""
    media: dict[str, JsonObject] = field(default_factory=dict)
    """Further forms of success, by media type: `{"text/event-stream": ANY_TEXT}`."""
    body: Any = None
    """What `msgspec` decodes."""
    body_required: bool = True
    also: tuple[Any, ...] = ()
    """Types that the body's schema refers to by name, because they are decoded one by one."""
    form: JsonObject | None = None
    """The schema of a multipart body, instead of `body`."""
    query: tuple[Query, ...] = ()
    feeds: dict[str, str] = field(default_factory=dict)
    """Where in the answer variables of other operations are: the document's links, which say how
    to go on and let a fuzzer get somewhere."""
    errors: tuple[int, ...] = ()
    """Statuses beyond those of its kind: 404 comes with a variable, 408, 413 and 415 with a
    body."""

    @property
    def variables(self) -> list[str]:
        return _VARIABLE.findall(self.rule)

    @property
    def statuses(self) -> list[int]:
        """Everything but success."""
        takes_body = self.body is not None or self.form is not None
        found = {*_ALWAYS, *self.errors, *(_WITH_BODY if takes_body else ())}
        return sorted(found | ({404} if self.variables else set()))


def mount(app: Quart, operations: Iterable[Operation]) -> None:
    """Make the routes and remember their descriptions."""
    for operation in operations:
        app.add_url_rule(
            operation.rule,
            endpoint=operation.name,
            view_func=operation.handler,
            methods=[operation.method],
        )
        app.extensions.setdefault(_REGISTRY, []).append(operation)


def mounted(app: Quart) -> tuple[Operation, ...]:
    """Every operation of the application, in the order of mounting."""
    return tuple(cast("list[Operation]", app.extensions.get(_REGISTRY, [])))


def make_document(operations: Iterable[Operation], *, version: str) -> JsonObject:
    """The whole document, as plain JSON."""
    described = tuple(operations)
    types = [
        kind
        for each in described
        for kind in (each.body, each.answer, *each.also)
        if kind is not None
    ]
    schemas, components = msgspec.json.schema_components(
        [*types, ErrorBody], ref_template=_REFERENCE
    )
    by_type = dict(zip(map(_key, [*types, ErrorBody]), schemas, strict=True))
    paths: JsonObject = {}
    for each in described:
        path = _VARIABLE.sub(r"{\g<name>}", each.rule)
        paths.setdefault(path, {})[each.method.lower()] = _operation(each, by_type, described)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Antiphon",
            "version": version,
            "description": "The OpenAI API, with what it lacks: lists, titles, exports, branches.",
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Not needed on this machine until the first key exists.",
                }
            },
        },
    }


def _operation(
    operation: Operation, schemas: dict[str, JsonObject], others: Iterable[Operation]
) -> JsonObject:
    success: JsonObject = {media: {"schema": schema} for media, schema in operation.media.items()}
    if operation.answer is not None:
        success = {"application/json": {"schema": schemas[_key(operation.answer)]}} | success
    error = {"application/json": {"schema": schemas[_key(ErrorBody)]}}
    described: JsonObject = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in operation.variables
            ),
            *map(_query, operation.query),
        ],
        "responses": {
            "200": {
                "description": "Success",
                "content": success,
                "links": {
                    each.name: {
                        "operationId": each.name,
                        "parameters": {name: operation.feeds[name] for name in each.variables},
                    }
                    for each in others
                    if each.variables and set(each.variables) <= set(operation.feeds)
                },
            },
            **{
                str(status): {"description": HTTPStatus(status).phrase, "content": error}
                for status in operation.statuses
            },
        },
    }
    if operation.form is not None:
        content = {"multipart/form-data": {"schema": operation.form}}
        described["requestBody"] = {"required": True, "content": content}
    elif operation.body is not None:
        content = {"application/json": {"schema": schemas[_key(operation.body)]}}
        described["requestBody"] = {"required": operation.body_required, "content": content}
    return described


def _query(query: Query) -> JsonObject:
    bounds = {
        "minimum": query.minimum,
        "maximum": query.maximum,
        "maxLength": query.longest,
        "default": query.default,
    }
    schema = msgspec.json.schema(query.type)
    schema |= {name: value for name, value in bounds.items() if value is not None}
    return {
        "name": query.name,
        "in": "query",
        "required": False,
        "description": query.description,
        "schema": schema,
    }


def _key(kind: Any) -> str:
    """Types such as unions and generics aren't always hashable, but always say what they are."""
    return repr(kind)

"""From what a model wrote to a call that is right."""

import pytest

from antiphon.actors.tools.reading import Call, MalformedCall, read_calls
from antiphon.tools import Tool, Toolbox

ADD = Tool(
    name="add",
    parameters={
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    },
)
NOW = Tool(name="now", parameters={"type": "object"})
BOX = Toolbox(tools=(ADD, NOW))


@pytest.mark.parametrize(
    ("content", "calls"),
    [
        ('{"name": "add", "arguments": {"n": 1}}', [("add", '{"n":1}')]),
        ('{"name": "add", "parameters": {"n": 1}}', [("add", '{"n":1}')]),
        ('{"name": "add", "arguments": "{\\"n\\": 1}"}', [("add", '{"n":1}')]),
        ('{"name": "now"}', [("now", "{}")]),
        ('{"name": "now", "arguments": {"é": "\\u00e9"}}', [("now", '{"é":"é"}')]),
        (
            '[{"name": "now"}, {"name": "add", "arguments": {"n": 2}}]',
            [("now", "{}"), ("add", '{"n":2}')],
        ),
    ],
)
def test_calls_are_read_as_models_write_them(content, calls):
    assert read_calls(content, BOX) == tuple(
        Call(name=name, arguments=arguments) for name, arguments in calls
    )


@pytest.mark.parametrize(
    "content",
    [
        *("", "add(1)", '{"name": "add"', "[1]", '"add"', "{}", '{"name": 1}', "[" * 100_000),
        *('{"name": "sub", "arguments": {}}', '{"name": "add"}', '{"name": "now", "arguments": 1}'),
        *('{"name": "add", "arguments": {"n": "1"}}', '{"name": "add", "arguments": {"n": NaN}}'),
        *('{"name": "now", "arguments": null}', '{"name": "now", "arguments": "{"}'),
        '[{"name": "now"}, {"name": "sub"}]',
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_good_call_is_malformed_and_not_quoted(content):
    with pytest.raises(MalformedCall) as caught:
        read_calls(content, BOX)

    assert "sub" not in str(caught.value)


def test_a_function_that_may_not_be_called_is_none():
    box = Toolbox(tools=(ADD, NOW), allowed=frozenset({"add"}))

    with pytest.raises(MalformedCall):
        read_calls('{"name": "now"}', box)

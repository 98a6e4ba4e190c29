"""What the model says in tests of the chat page: whatever the message asks it to, or, of a real
model, whatever it is given no choice but to say."""

from collections.abc import Iterable
from typing import Any

from antiphon.testing.page_server import endless, words_of

HOSTILE = """\
<script>window.hacked = 1</script> <img src=x onerror="window.hacked = 2">

<iframe srcdoc="<script>parent.hacked = 3</script>"></iframe>

[click](javascript:window.hacked=4) [data](data:text/html,<script>window.hacked=5</script>)
![picture](https://example.invalid/x.png "onload=alert(1)") [good](https://example.com/a?b=1&c="2")

<style>body { display: none }</style>
<a href="javascript:window.hacked=6" onclick="window.hacked=7">x</a>
<svg onload="window.hacked=8"><math><mtext></form><form><mglyph><style></math>
<img src onerror=window.hacked=9>

bell \x07 escape \x1b[31m null \x00 override \u202egnp.exe\u202c end

| a | b |
|---|---|
"""


def dictated(text: str, name: str = "text") -> dict[str, Any]:
    """Fields of a question that a real model answers with nothing but this, in an object."""
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "enum": [text]}},
        "required": [name],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "name": "dictated", "strict": True, "schema": schema}
    return {"temperature": 0, "max_output_tokens": 300, "text": {"format": form}}


def script(text: str) -> Iterable[str] | None:
    """What the model of these tests answers."""
    match text.split():
        case ["say", *_]:
            return words_of(text.removeprefix("say "))
        case ["count", number, *_]:
            return (f"{' ' if i else ''}{i + 1}" for i in range(int(number)))
        case ["endless", *_]:
            return endless()
        case ["hostile", *_]:
            rows = [f"| row {i} | <b>{i}</b> |\n" for i in range(300)]
            return [*words_of(HOSTILE), *rows]
        case ["heron", *_]:
            return words_of("There is a lake, and beside it stands a green heron, and a boat.")
        case _:
            return None

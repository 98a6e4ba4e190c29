"""What end-to-end tests of the stateful API say to a real model, and how they read its answers."""

from collections.abc import Iterable
from typing import Any

QUESTIONS = (
    "What is the capital of France?",
    "My name is Ada. Say hello.",
    "Name one colour.",
    "Count to three.",
    "What is two plus two?",
    "Say goodbye.",
)
"""One a turn."""
SHORT: dict[str, Any] = {"temperature": 0, "max_output_tokens": 16}
"""The same answer every time, and soon."""
_ENDLESS_FORMAT = {
    "type": "json_schema",
    "name": "coins",
    "schema": {"type": "array", "items": {"type": "boolean"}, "minItems": 2000},
}
ENDLESS: dict[str, Any] = {
    "input": "Toss a coin again and again.",
    "temperature": 0,
    "max_output_tokens": 4000,
    "text": {"format": _ENDLESS_FORMAT},
}
"""An answer whose grammar keeps it going for as long as any test needs it, whatever the model would
rather say."""


def text_of(events: Iterable[Any]) -> str:
    """All that a stream of events said."""
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def numbers_of(events: Iterable[Any]) -> list[int]:
    """The sequence numbers, in the order of arrival."""
    return [event.sequence_number for event in events]


def first_words(stream: Iterable[Any], texts: int = 4) -> list[Any]:
    """Events up to the one with that many texts. Raises EOFError when the stream ends before."""
    events: list[Any] = []
    for event in stream:
        events.append(event)
        texts -= event.type == "response.output_text.delta"
        if not texts:
            return events
    raise EOFError(f"the stream ended {texts} texts too early")

"""What prompts are made of, and in which order."""

from typing import Any

import pytest

from antiphon.actors.context.material import MEMORY_HEAD, SUMMARY_HEAD, joined, material, split
from antiphon.context_records import Memory, MemoryOrigin, Summary
from antiphon.events import Message
from antiphon.ids import LOCAL_USER, ConversationId, ItemId, MemoryId
from antiphon.messages import PLACEHOLDER
from antiphon.records import Accepted, Item
from antiphon.views import PieceKind

PROMPT = Message(role="system", content="Be useful.")
RULES = Message(role="system", content="Be short.")


def said(id: str, role: str, text: str, **fields: Any) -> Item:
    body = {"type": "message", "role": role, "content": text, **fields.pop("body", {})}
    return Item(id=ItemId(id), type="message", role=role, body=body, created_ms=1, **fields)


def memory(text: str, item: str | None = None) -> Memory:
    return Memory(
        id=MemoryId("mem_1"),
        user=LOCAL_USER,
        text=text,
        origin=MemoryOrigin.STATED,
        created_ms=1,
        updated_ms=1,
        item=None if item is None else ItemId(item),
    )


SUMMARY = Summary(
    conversation=ConversationId("conv_1"),
    until=ItemId("old"),
    items=12,
    tokens=900,
    text="They spoke of dogs.",
    made_by="extract",
    created_ms=1,
)


def test_everything_has_its_place():
    made = material(
        prompt=PROMPT,
        instructions=[RULES],
        came=Accepted(
            context=(said("a", "user", "hi", tokens=7), said("b", "assistant", "ho")),
            summary=SUMMARY,
            memories=(memory("I have a dog.", "x"), memory("I live in Graz.")),
        ),
        input=(said("c", "user", "and?"),),
    )

    assert [(piece.kind.value, piece.item, piece.tokens) for piece in made.pieces] == [
        ("prompt", None, None),
        ("instructions", None, None),
        ("memory", "x", None),
        ("memory", None, None),
        ("summary", "old", None),
        ("history", "a", 7),
        ("history", "b", None),
        ("input", "c", None),
    ]
    assert made.items == (None, None, None, None, None, "a", "b", "c")
    assert (made.pieces[4].covers, made.pieces[4].covered_tokens) == (12, 900)
    assert joined([(m, p.kind) for m, p in zip(made.messages, made.pieces, strict=True)]) == (
        Message(
            role="system",
            content=f"Be useful.\n\nBe short.\n\n{MEMORY_HEAD}\n- I have a dog.\n- I live in Graz."
            f"\n\n{SUMMARY_HEAD}\nThey spoke of dogs.",
        ),
        *made.messages[5:],
    )


def test_messages_of_the_client_alone_stay_as_they_are():
    shown = [(RULES, PieceKind.INSTRUCTIONS), (RULES, PieceKind.INPUT)]

    assert joined(shown) == (RULES, RULES)


def test_what_a_conversation_begins_with_to_say_how_it_goes_stays():
    made = material(
        came=Accepted(
            context=(
                said("a", "developer", "Speak German."),
                said("b", "user", "hi"),
                said("c", "system", "It is noon."),
            )
        ),
        input=(said("d", "system", "It is one."), said("e", "user", "and?")),
    )

    assert [piece.kind for piece in made.pieces] == [
        PieceKind.INSTRUCTIONS,
        PieceKind.HISTORY,
        PieceKind.HISTORY,
        PieceKind.INPUT,
        PieceKind.INPUT,
    ]


@pytest.mark.parametrize("is_chat", [True, False])
def test_a_whole_conversation_that_is_sent_may_lose_all_but_its_last_turn(is_chat: bool):
    items = (
        said("a", "system", "Be kind."),
        said("b", "user", "one"),
        said("c", "assistant", "two"),
        said("d", "user", "three"),
    )
    made = material(came=Accepted(context=()), input=items, may_split=True)
    pieces = split(made.messages) if is_chat else made.pieces

    assert [piece.kind.value for piece in pieces] == [
        "instructions",
        "history",
        "history",
        "input",
    ]


def test_what_was_blocked_counts_for_what_stands_in_its_place():
    refusal = said("b", "assistant", "No.", body={"withheld": ["a"]})
    made = material(
        came=Accepted(context=(said("a", "user", "a bomb", tokens=500), refusal)),
        input=(said("c", "user", "and?"),),
    )

    assert made.messages[0].content == PLACEHOLDER
    assert made.pieces[0].tokens is not None
    assert made.pieces[0].tokens < 20


def test_memories_that_are_spoken_of_come_first():
    made = material(
        came=Accepted(
            context=(said("a", "user", "My dog is ill."), said("b", "assistant", "Oh.")),
            memories=(memory("I own a dog."), memory("I live in Graz."), memory("I like jazz.")),
        ),
        input=(said("c", "user", "How is the weather in Graz?"),),
    )

    ranks = {
        message.content: piece.rank
        for message, piece in zip(made.messages, made.pieces, strict=True)
    }
    assert [ranks[f"- {text}"] for text in ("I live in Graz.", "I own a dog.", "I like jazz.")] == [
        0,
        1,
        2,
    ]

"""What is shown of files in a prompt: where it stands, what it is part of, and how much of it there
is room for."""

from typing import Any

import pytest

from antiphon.actors.context import attaching
from antiphon.actors.context.attaching import asked_of, attached, named
from antiphon.actors.context.material import joined, with_files
from antiphon.actors.context.parts import Part
from antiphon.actors.context.planning import Budget, plan
from antiphon.context_settings import ContextSettings
from antiphon.events import Message, Sampling, Turn
from antiphon.ids import FileId, ItemId, ModelName, RequestId, UserId
from antiphon.ports import ModelCard
from antiphon.retrieval import FilesAsked, Gathered
from antiphon.views import Piece, PieceKind

FOUND = Message(role="user", content="from a file")
CARD = ModelCard(name=ModelName("m"), created=1, owned_by="x", window=8000)


def said(*pairs: tuple[Any, str]) -> tuple[Message, ...]:
    return tuple(Message(role=role, content=content) for role, content in pairs)


def asked_by(turn: Turn, files: dict[FileId, str]) -> FilesAsked | None:
    return asked_of(turn, user=UserId("u"), files=files, search=None, cards=[CARD], may_cite=True)


def test_what_is_found_stands_right_before_the_last_message_of_the_user():
    messages = said(("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c"))

    made = with_files(messages, (), [(FOUND, 0)])

    assert [message.content for message in made.messages] == ["s", "a", "b", "from a file", "c"]
    assert made.pieces[3] == Piece(kind=PieceKind.RETRIEVED, rank=0)
    assert made.items == (None,) * 5


def test_a_result_of_a_tool_does_not_part_it_from_its_message():
    messages = said(("user", "a"), ("assistant", ""), ("tool", "r"))

    made = with_files(messages, (), [(FOUND, None)])

    assert [message.role for message in made.messages] == ["user", "user", "assistant", "tool"]
    assert made.messages[0] is FOUND


def test_for_a_model_it_is_part_of_that_message():
    shown = [
        (Message(role="system", content="s"), PieceKind.INSTRUCTIONS),
        (Message(role="user", content="a"), PieceKind.HISTORY),
        (Message(role="user", content="one"), PieceKind.RETRIEVED),
        (Message(role="user", content="two"), PieceKind.RETRIEVED),
        (Message(role="user", content="c"), PieceKind.INPUT),
    ]

    messages = joined(shown)

    assert [(each.role, each.content) for each in messages] == [
        ("system", "s"),
        ("user", "a"),
        ("user", "one\n\ntwo\n\nc"),
    ]
    assert joined(shown[2:4])[0].content == "one\n\ntwo"


def parts(*found: int, history: int = 0, input: int = 10) -> list[Part]:
    """`found` are the tokens of what was found, the best first."""
    return [
        *([Part(kind=PieceKind.HISTORY, role="user", tokens=history)] if history else []),
        *(
            Part(kind=PieceKind.RETRIEVED, role="user", tokens=tokens, rank=rank)
            for rank, tokens in enumerate(found)
        ),
        Part(kind=PieceKind.INPUT, role="user", tokens=input, item=ItemId("i")),
    ]


def budget(window: int, **settings: Any) -> Budget:
    return Budget(
        window=window,
        usual_answer=100,
        answer=100,
        truncation="auto",
        settings=ContextSettings(**settings),
    )


def test_as_much_is_shown_as_there_is_room_for_the_best_first():
    planned = plan(parts(300, 300, 300), budget(8000, retrieved_tokens=650))

    assert planned.shown == (True, True, False, True)


def test_what_was_found_never_takes_more_than_half_of_the_room():
    planned = plan(parts(300, 300, 300, input=90), budget(1000))

    assert planned.shown == (True, False, False, True)
    assert planned.tokens <= 1000 - 100


def test_what_has_no_rank_is_always_shown():
    always = [Part(kind=PieceKind.RETRIEVED, role="user", tokens=5000), *parts(10)]

    assert plan(always, budget(6000, retrieved_tokens=1)).shown == (True, False, True)


def a_turn(*messages: Message) -> Turn:
    return Turn(
        request=RequestId("r"), model=ModelName("m"), messages=messages, sampling=Sampling()
    )


def test_a_turn_asks_with_what_its_user_said_last():
    turn = a_turn(
        *said(
            ("user", "at first"),
            ("user", '[Attached file: "a.pdf"]'),
            ("assistant", "yes"),
            ("user", "before"),
            ("assistant", "no"),
            ("user", '[Attached file: "a.pdf"]\nWhat now?'),
        )
    )

    asked = asked_by(turn, {FileId("f"): "a.pdf"})

    assert asked is not None
    assert (asked.question, asked.room) == ("What now?", 2000)
    assert asked.before == ("before", "at first"), "what was said, the latest first"
    assert asked_by(turn, {}) is None


def test_of_a_long_conversation_only_what_may_be_searched_for_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
):
    looked_at = list[str]()

    class Watched:
        def sub(self, _: str, text: str) -> str:
            looked_at.append(text)
            return text

    monkeypatch.setattr(attaching, "_ATTACHED", Watched())
    turn = a_turn(*said(*(("user", f"message {number}") for number in range(300))))

    asked = asked_by(turn, {FileId("f"): "a.pdf"})

    assert asked is not None
    assert asked.before == ("message 298", "message 297")
    assert looked_at == ["message 299", "message 298", "message 297"]


def test_a_turn_without_anything_found_stays_as_it_is():
    turn = a_turn(*said(("user", "hello")))

    assert attached(turn, Gathered()) is turn


def test_files_are_called_by_their_names():
    messages = said(("user", '[Attached file: "file-a"]\nx [Attached file: "file-a"]'))

    [message] = named(messages, {FileId("file-a"): "report.pdf"})

    assert message.content == '[Attached file: "report.pdf"]\nx [Attached file: "file-a"]'

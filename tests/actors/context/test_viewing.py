"""Views by a tokenizer: what is encoded fits exactly, and little is counted twice."""

import threading
from collections.abc import Sequence

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.actors.context.counting import Counts, Text
from antiphon.actors.context.viewing import Means, Viewer
from antiphon.context_settings import ContextSettings
from antiphon.errors import ContextLengthExceeded, InvalidRequest
from antiphon.events import Message, Sampling, Turn
from antiphon.ids import ItemId, ModelName, RequestId
from antiphon.tools import Tool, Toolbox
from antiphon.views import TURNS, Fate, Piece, PieceKind


class Words:
    """A token a word, three around each message and `surprise` more for each after the second."""

    longest_token = 1_000
    tool_format = None

    def __init__(self, surprise: int = 0) -> None:
        self.surprise = surprise
        self.counted: list[str] = []
        self.threads: set[int] = set()

    def count_text(self, text: str) -> int:
        self.counted.append(text)
        self.threads.add(threading.get_ident())
        return len(text.split())

    def encode_chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[int]:
        words = sum(len(message.text.split()) + 3 for message in messages)
        return [1] * (2 + words + self.surprise * max(0, len(messages) - 2))


def words(count: int, word: str = "w") -> str:
    return " ".join(f"{word}{number}" for number in range(count))


def conversation(*sizes: int, new: int = 5, known: bool = False, **fields) -> Turn:
    """Turns of so many words each, half asked and half answered, and a new message."""
    messages, pieces = [], []
    for number, size in enumerate(sizes):
        half = words(size // 2, f"t{number}x")
        tokens = size // 2 if known else None
        for role in ("user", "assistant"):
            messages.append(Message(role=role, content=half))
            item = ItemId(f"{role}{number}")
            pieces.append(Piece(kind=PieceKind.HISTORY, item=item, tokens=tokens))
    messages.append(Message(role="user", content=words(new, "new")))
    pieces.append(Piece(kind=PieceKind.INPUT, item=ItemId("new")))
    return Turn(
        **{
            "request": RequestId("r"),
            "model": ModelName("m"),
            "messages": tuple(messages),
            "pieces": tuple(pieces),
            "truncation": "auto",
            "sampling": Sampling(),
            **fields,
        }
    )


def means(tokenizer: Words, window: int = 200, default: int = 20) -> Means:
    return Means(
        tokenizer=tokenizer,
        window=window,
        default_max_tokens=default,
        threads=trio.CapacityLimiter(1),
    )


async def test_a_turn_without_pieces_is_shown_as_it_is():
    turn = conversation(40, 40, pieces=(), truncation="disabled")

    view = await Viewer().view(turn, means(Words()))

    assert view.messages == turn.messages
    assert view.manifest is None


async def test_the_manifest_accounts_for_the_exact_prompt():
    turn = conversation(40, 40, 40, 40, 40)

    view = await Viewer().view(turn, means(Words()))

    manifest = view.manifest
    assert manifest is not None
    shown = sum(run.shown_tokens for run in manifest.runs)
    assert shown + manifest.template_tokens == manifest.prompt_tokens == len(view.prompt)
    assert manifest.template_tokens == 2 + 3 * len(view.messages)
    assert sum(run.items for run in manifest.runs) == 11
    assert (manifest.worst, manifest.reserved_for_answer) == (Fate.DROPPED, view.max_tokens)


@given(
    st.lists(st.integers(2, 60), max_size=16),
    st.integers(1, 40),
    st.integers(60, 400),
    st.integers(0, 12),
    st.one_of(st.none(), st.integers(1, 50)),
)
@settings(max_examples=60, deadline=None)
def test_templates_that_add_what_nobody_foresaw_fit_too(sizes, new, window, surprise, answer):
    turn = conversation(*sizes, new=new, max_tokens=answer)
    tokenizer = Words(surprise)
    needed = len(tokenizer.encode_chat([turn.messages[-1]]))

    if needed + (answer or 1) > window:
        with pytest.raises(ContextLengthExceeded) as caught:
            trio.run(Viewer().view, turn, means(tokenizer, window))
        assert caught.value.prompt_tokens == needed
        return
    view = trio.run(Viewer().view, turn, means(tokenizer, window))
    assert len(view.prompt) + view.max_tokens <= window
    assert view.messages == turn.messages[-len(view.messages) :]
    assert view.prompt == tokenizer.encode_chat(view.messages)


async def test_what_cannot_be_left_out_is_refused_with_the_numbers():
    with pytest.raises(ContextLengthExceeded) as caught:
        await Viewer().view(conversation(40, 40, new=190, max_tokens=16), means(Words()))

    assert (caught.value.window, caught.value.prompt_tokens) == (200, 2 + 3 + 190)
    assert caught.value.max_tokens == 16


async def test_disabled_is_refused_with_all_of_it():
    turn = conversation(*[40] * 6, truncation="disabled")

    with pytest.raises(ContextLengthExceeded) as caught:
        await Viewer().view(turn, means(Words()))

    assert caught.value.prompt_tokens == 2 + 13 * 3 + 6 * 40 + 5


async def test_an_item_is_counted_once():
    tokenizer, viewer = Words(), Viewer()

    await viewer.view(conversation(10, 10), means(tokenizer))
    first = [text for text in tokenizer.counted if text != "a"]
    tokenizer.counted.clear()
    await viewer.view(conversation(10, 10, 10), means(tokenizer))

    assert len(first) == 5
    assert tokenizer.counted == [words(5, "t2x")] * 2


async def test_what_the_store_knows_is_not_counted_and_what_is_new_is_told():
    tokenizer = Words()

    view = await Viewer().view(conversation(10, 10, known=True), means(tokenizer))

    assert [text for text in tokenizer.counted if text != "a"] == [words(5, "new")]
    assert view.counts == ((ItemId("new"), 5),)


async def test_a_long_history_is_counted_beside_the_event_loop():
    tokenizer = Words()

    await Viewer().view(conversation(*[4_000] * 3), means(tokenizer, window=100))

    assert threading.get_ident() in tokenizer.threads  # the frame, a word
    assert len(tokenizer.threads) == 2


async def test_a_hopeless_text_is_not_counted():
    tokenizer = Words()
    counting = Counts().of(tokenizer, trio.CapacityLimiter(1))

    counts = await counting.count([Text(content="x" * 500_000), Text(content="x")], most=100)

    assert counts == [500, 1]
    assert tokenizer.counted == ["x"]


async def test_a_template_that_will_not_be_tried_is_guessed_at():
    class Strict(Words):
        def encode_chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[int]:
            if len(messages) > 1:
                raise InvalidRequest("one at a time", "messages")
            return super().encode_chat(messages)

    view = await Viewer().view(conversation(), means(Strict()))

    assert len(view.prompt) == 10


def tool_turn(size: int, *, followed: bool) -> Turn:
    text = "\n".join(f"line {number}" for number in range(size))
    entries = [
        (Message(role="user", content="look"), PieceKind.HISTORY),
        (Message(role="tool", content=text), PieceKind.HISTORY),
        (Message(role="assistant", content="seen"), PieceKind.HISTORY),
        (Message(role="user" if followed else "tool", content="and"), PieceKind.INPUT),
    ]
    return Turn(
        request=RequestId("r"),
        model=ModelName("m"),
        messages=tuple(message for message, _ in entries),
        pieces=tuple(
            Piece(kind=kind, item=ItemId(str(place))) for place, (_, kind) in enumerate(entries)
        ),
        truncation="auto",
        sampling=Sampling(),
    )


async def test_a_long_result_loses_its_middle_once_a_turn_has_followed():
    viewer = Viewer(lambda: ContextSettings(tool_output_tokens=20))
    whole = await viewer.view(tool_turn(100, followed=False), means(Words(), window=1000))
    view = await viewer.view(tool_turn(100, followed=True), means(Words(), window=1000))

    assert len(whole.messages[1].content.split()) == 200
    shown = view.messages[1].content
    assert shown.startswith("line 0\nline 1\n")
    assert shown.endswith("…]\nline 96\nline 97\nline 98\nline 99")
    kept = sum(not word.startswith(("[", "…")) for word in shown.split()) - 5
    assert f"\n[… {200 - kept} tokens left out here …]\n" in shown
    assert view.manifest is not None
    [run] = [run for run in view.manifest.runs if run.fate is Fate.TRIMMED]
    assert (run.tokens, run.shown_tokens) == (200, len(shown.split()))


async def test_a_result_is_cut_only_once_for_each_limit():
    tokenizer = Words()
    viewer = Viewer(lambda: ContextSettings(tool_output_tokens=20))
    await viewer.view(tool_turn(100, followed=True), means(tokenizer, window=1000))
    tokenizer.counted.clear()

    await viewer.view(tool_turn(100, followed=True), means(tokenizer, window=1000))

    assert tokenizer.counted == []


async def test_functions_have_a_line_of_their_own():
    tool = Tool(name="look", description=words(9), parameters={"type": "object"})
    turn = conversation(10, tools=Toolbox(tools=(tool,)))

    view = await Viewer().view(turn, means(Words(), window=400))

    assert view.manifest is not None
    assert view.manifest.runs[0].kind is PieceKind.TOOLS
    assert sum(run.items for run in view.manifest.runs if run.kind in TURNS) == 3

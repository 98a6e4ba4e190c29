"""What a turn's prompt may be made of, in order: the operator's prompt, the client's instructions,
memories, a summary, the conversation's items, the new ones. Pure; what of it fits is the planner's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from antiphon.actors.context.recalling import ranks
from antiphon.context_records import Memory, Summary
from antiphon.events import Message
from antiphon.ids import ItemId
from antiphon.messages import shown, withheld_of
from antiphon.records import Accepted, Item
from antiphon.views import Piece, PieceKind

_SETTING = {"system", "developer"}
SUMMARY_HEAD = "What was said in this conversation so far, in short:"
_WITHHELD_TOKENS = 10
"""Of what stands in the place of an item that was blocked: the count of that says nothing of it."""
MEMORY_HEAD = "What the user has said of themselves in earlier conversations:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Messages, each with what it is."""

    messages: tuple[Message, ...]
    pieces: tuple[Piece, ...]

    @property
    def items(self) -> tuple[ItemId | None, ...]:
        """Which item each message is; None for what only tells of some."""
        return items_of(self.pieces)


def material(
    *,
    prompt: Message | None = None,
    instructions: Sequence[Message] = (),
    came: Accepted,
    input: Sequence[Item],
    may_split: bool = False,
) -> Material:
    """`may_split` says that the input is a whole conversation, whose older turns may be left out.

    Raises InvalidRequest for an item that no model here can read.
    """
    items = (*came.context, *input)
    visible = shown(items)
    new = {item.id for item in input}
    kinds = _kinds(
        [message for _, message in visible],
        [item in new for item, _ in visible],
        may_split=may_split,
    )
    withheld = withheld_of(items)
    counted = {item.id: _WITHHELD_TOKENS if item.id in withheld else item.tokens for item in items}
    entries = [
        *([] if prompt is None else [(prompt, Piece(kind=PieceKind.PROMPT))]),
        *((each, Piece(kind=PieceKind.INSTRUCTIONS)) for each in instructions),
        *_memories(came.memories, [message for _, message in visible]),
        *([] if came.summary is None else [_summary(came.summary, came.context[: came.opening])]),
        *(
            (message, Piece(kind=kind, item=item, tokens=counted.get(item), calls=_calls(message)))
            for (item, message), kind in zip(visible, kinds, strict=True)
        ),
    ]
    return Material(
        messages=tuple(message for message, _ in entries),
        pieces=tuple(piece for _, piece in entries),
    )


def items_of(pieces: Sequence[Piece]) -> tuple[ItemId | None, ...]:
    """Which item each of them is; None for what is none, or only tells of some."""
    telling = {PieceKind.MEMORY, PieceKind.SUMMARY}
    return tuple(None if each.kind in telling else each.item for each in pieces)


def split(messages: Sequence[Message]) -> tuple[Piece, ...]:
    """The pieces of a request that brings all its messages and has older ones left out."""
    kinds = _kinds(messages, [True] * len(messages), may_split=True)
    return tuple(
        Piece(kind=kind, calls=_calls(message))
        for message, kind in zip(messages, kinds, strict=True)
    )


def _kinds(messages: Sequence[Message], new: Sequence[bool], *, may_split: bool) -> list[PieceKind]:
    """What a conversation begins with to say how it is to go is there for all of it."""
    kinds = [PieceKind.INPUT if is_new else PieceKind.HISTORY for is_new in new]
    if may_split:
        users = [place for place, message in enumerate(messages) if message.role == "user"]
        last = users[-1] if users else 0
        kinds = [PieceKind.HISTORY] * last + kinds[last:]
    for place, message in enumerate(messages):
        if message.role not in _SETTING:
            break
        if kinds[place] is PieceKind.HISTORY:
            kinds[place] = PieceKind.INSTRUCTIONS
    return kinds


def _calls(message: Message) -> tuple[str, ...]:
    if message.call is not None:
        return (message.call.id,)
    return () if message.call_id is None else (message.call_id,)


def _memories(
    memories: Sequence[Memory], messages: Sequence[Message]
) -> list[tuple[Message, Piece]]:
    said = [message.content for message in messages if message.role == "user"]
    places = ranks([memory.text for memory in memories], said)
    return [
        (
            Message(role="system", content=f"- {memory.text}"),
            Piece(kind=PieceKind.MEMORY, item=memory.item, rank=rank),
        )
        for memory, rank in zip(memories, places, strict=True)
    ]


def _summary(summary: Summary, opening: Sequence[Item]) -> tuple[Message, Piece]:
    """Of what it covers, the `opening` is shown as it is, too."""
    return (
        Message(role="system", content=f"{SUMMARY_HEAD}\n{summary.text}"),
        Piece(
            kind=PieceKind.SUMMARY,
            item=summary.until,
            covers=summary.items - len(opening),
            covered_tokens=max(summary.tokens - sum(item.tokens or 0 for item in opening), 0),
        ),
    )


def with_files(
    messages: Sequence[Message],
    pieces: Sequence[Piece],
    shown: Sequence[tuple[Message, int | None]],
) -> Material:
    """With what is shown of files, each with its rank, right before the last message of a user:
    all before that stays as it was."""
    kinds = pieces or (Piece(kind=PieceKind.INPUT),) * len(messages)
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    at = users[-1] if users else len(messages)
    return Material(
        messages=(*messages[:at], *(message for message, _ in shown), *messages[at:]),
        pieces=(
            *kinds[:at],
            *(Piece(kind=PieceKind.RETRIEVED, rank=rank) for _, rank in shown),
            *kinds[at:],
        ),
    )


def joined(shown: Sequence[tuple[Message, PieceKind]]) -> tuple[Message, ...]:
    """As a template is given them. What the server adds at the beginning is one message with the
    instructions there: many templates know only one that is no turn, or refuse a second. What was
    found in files is part of the message that it is for: many want turns to take turns."""
    ours = {PieceKind.PROMPT, PieceKind.MEMORY, PieceKind.SUMMARY}
    setting = list(takewhile(lambda each: each[0].role == "system", shown))
    rest = _with_found(shown[len(setting) :])
    if not any(kind in ours for _, kind in setting):
        return (*(message for message, _ in setting), *rest)
    texts: list[str] = []
    before: PieceKind | None = None
    for message, kind in setting:
        if kind is not PieceKind.MEMORY:
            texts.append(message.content)
        elif before is PieceKind.MEMORY:
            texts[-1] += f"\n{message.content}"
        else:
            texts.append(f"{MEMORY_HEAD}\n{message.content}")
        before = kind
    return (Message(role="system", content="\n\n".join(texts)), *rest)


def _with_found(shown: Sequence[tuple[Message, PieceKind]]) -> tuple[Message, ...]:
    messages: list[Message] = []
    found: list[str] = []
    for message, kind in shown:
        if kind is PieceKind.RETRIEVED:
            found.append(message.content)
            continue
        if found and message.role == "user":
            before = "\n\n".join([*found, ""])
            lines = before.count("\n")
            images = tuple(replace(each, line=each.line + lines) for each in message.images)
            messages.append(replace(message, content=before + message.content, images=images))
        else:
            messages += [Message(role="user", content="\n\n".join(found))] if found else []
            messages.append(message)
        found = []
    if found:
        messages.append(Message(role="user", content="\n\n".join(found)))
    return tuple(messages)

"""One message, one call or one search of a response as its events make it, and what the store keeps
of it."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from antiphon.events import TokenLogprob
from antiphon.ids import ItemId
from antiphon.messages import SEARCH, WITHHELD
from antiphon.narration import (
    ArgumentsAdded,
    ArgumentsClosed,
    CitationAdded,
    ItemClosed,
    PartClosed,
    PartOpened,
    RefusalAdded,
    RefusalClosed,
    RefusalOpened,
    SearchMoved,
    SearchOpened,
    SearchStage,
    TextAdded,
    TextClosed,
)
from antiphon.records import Item, JsonObject
from antiphon.turn_events import FinishReason

SearchEvent = SearchMoved | ItemClosed
CallEvent = ArgumentsAdded | ArgumentsClosed | ItemClosed
MessageEvent = (
    PartOpened
    | TextAdded
    | CitationAdded
    | TextClosed
    | PartClosed
    | RefusalOpened
    | RefusalAdded
    | RefusalClosed
    | ItemClosed
)


class PartStage(enum.Enum):
    """Where a part of a message stands."""

    ABSENT = "absent"
    OPEN = "open"
    SAID = "said"
    """Its text is done, and the part isn't."""
    CLOSED = "closed"


@dataclass(slots=True)
class Message:
    """Its text comes first, if it has any, and a refusal last."""

    item: ItemId
    pieces: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)
    refusal: str = ""
    withheld: tuple[ItemId, ...] = ()
    text: PartStage = PartStage.ABSENT
    refused: PartStage = PartStage.ABSENT
    closed: bool = False
    finish: FinishReason | None = None

    def apply(self, event: MessageEvent) -> None:
        """What happened to it next."""
        match event:
            case PartOpened():
                self.text = PartStage.OPEN
            case TextAdded(text=text, logprobs=logprobs):
                self.pieces.append(text)
                self.logprobs.extend(logprobs)
            case CitationAdded():
                self.annotations.append(event.annotation)
            case TextClosed():
                self.text = PartStage.SAID
            case PartClosed():
                if self.refused is PartStage.ABSENT:
                    self.text = PartStage.CLOSED
                else:
                    self.refused = PartStage.CLOSED
            case RefusalOpened():
                self.refused = PartStage.OPEN
            case RefusalAdded(text=text, withheld=withheld):
                self.refusal += text
                self.withheld += withheld
            case RefusalClosed():
                self.refused = PartStage.SAID
            case ItemClosed(finish=finish):
                self.closed = True
                self.finish = finish
            case _:
                assert_never(event)

    def closing_text(self, index: int) -> tuple[TextClosed | PartClosed, ...]:
        """What its text part still needs, as it is item `index`."""
        said = (TextClosed(index=index),) if self.text is PartStage.OPEN else ()
        is_open = self.text in {PartStage.OPEN, PartStage.SAID}
        return (*said, *((PartClosed(index=index),) if is_open else ()))

    def closing_refusal(self, index: int) -> tuple[RefusalClosed | PartClosed, ...]:
        """The same of its refusal, which only a crash leaves open."""
        said = (RefusalClosed(index=index),) if self.refused is PartStage.OPEN else ()
        is_open = self.refused in {PartStage.OPEN, PartStage.SAID}
        return (*said, *((PartClosed(index=index),) if is_open else ()))

    def record(self, created_ms: int, of_chat: JsonObject) -> Item:
        """As the store keeps it; `of_chat` is what only a choice of a chat has."""
        withheld = {WITHHELD: list(self.withheld)} if self.withheld else {}
        body = {"type": "message", "role": "assistant", "content": self.parts()}
        return Item(
            id=self.item,
            type="message",
            role="assistant",
            body=body | withheld | of_chat,
            created_ms=created_ms,
            status="completed" if self.finish and self.finish.is_whole else "incomplete",
        )

    def parts(self) -> list[dict[str, Any]]:
        """As the store keeps them, at least one."""
        text = {
            "type": "output_text",
            "text": "".join(self.pieces),
            "annotations": self.annotations,
            "logprobs": [_logprob(logprob) for logprob in self.logprobs],
        }
        if self.refused is PartStage.ABSENT:
            return [text]
        refusal = {"type": "refusal", "refusal": self.refusal}
        return [refusal] if self.text is PartStage.ABSENT else [text, refusal]


@dataclass(slots=True)
class Search:
    """In files, before anything is said."""

    item: ItemId
    queries: tuple[str, ...] = ()
    results: tuple[dict[str, Any], ...] = ()
    is_whole: bool = False
    closed: bool = False
    finish: FinishReason | None = None

    def apply(self, event: SearchEvent) -> None:
        """What happened to it next."""
        match event:
            case SearchMoved(stage=stage, queries=queries, results=results):
                self.is_whole = stage is SearchStage.COMPLETED
                self.queries, self.results = queries, results
            case ItemClosed():
                self.closed = True
            case _:
                assert_never(event)

    def record(self, created_ms: int) -> Item:
        """As the store keeps it."""
        found = {"queries": list(self.queries), "results": list(self.results)}
        return _record(self, SEARCH, found, created_ms)


@dataclass(slots=True)
class Call:
    """`choice` is where it was made."""

    item: ItemId
    id: str
    name: str
    choice: int
    pieces: list[str] = field(default_factory=list)
    is_whole: bool = False
    closed: bool = False
    finish: FinishReason | None = None

    def apply(self, event: CallEvent) -> None:
        """What happened to it next."""
        match event:
            case ArgumentsAdded(text=text):
                self.pieces.append(text)
            case ArgumentsClosed():
                self.is_whole = True
            case ItemClosed(finish=finish):
                self.closed = True
                self.finish = finish
            case _:
                assert_never(event)

    def record(self, created_ms: int) -> Item:
        """As the store keeps it."""
        return _record(self, "function_call", self.body(), created_ms)

    def body(self) -> dict[str, Any]:
        """What it says."""
        arguments = "".join(self.pieces)
        return {"call_id": self.id, "name": self.name, "arguments": arguments}


def told_search(
    index: int, item: ItemId, queries: Sequence[str], results: Sequence[JsonObject]
) -> tuple[SearchOpened | SearchMoved | ItemClosed, ...]:
    """A search from its beginning to its end."""
    return (
        SearchOpened(index=index, item=item),
        SearchMoved(index=index, stage=SearchStage.IN_PROGRESS),
        SearchMoved(index=index, stage=SearchStage.SEARCHING),
        SearchMoved(
            index=index,
            stage=SearchStage.COMPLETED,
            queries=tuple(queries),
            results=tuple(results),
        ),
        ItemClosed(index=index, finish=FinishReason.STOP),
    )


def _record(of: Search | Call, type: str, body: dict[str, Any], created_ms: int) -> Item:
    return Item(
        id=of.item,
        type=type,
        body={"type": type, **body},
        created_ms=created_ms,
        status="completed" if of.is_whole else "incomplete",
    )


def _logprob(logprob: TokenLogprob) -> dict[str, Any]:
    return {
        "token": logprob.text,
        "logprob": logprob.logprob,
        "bytes": list(logprob.data),
        "top_logprobs": [],
    }

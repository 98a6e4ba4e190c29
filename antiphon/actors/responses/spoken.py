"""One message or one call of a response as its events make it, and what the store keeps of it."""

import enum
from dataclasses import dataclass, field
from typing import Any, assert_never

from antiphon.events import TokenLogprob
from antiphon.ids import ItemId
from antiphon.narration import (
    ArgumentsAdded,
    ArgumentsClosed,
    ItemClosed,
    PartClosed,
    PartOpened,
    RefusalAdded,
    RefusalClosed,
    RefusalOpened,
    TextAdded,
    TextClosed,
)
from antiphon.turn_events import FinishReason

CallEvent = ArgumentsAdded | ArgumentsClosed | ItemClosed
MessageEvent = (
    PartOpened
    | TextAdded
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

    def parts(self) -> list[dict[str, Any]]:
        """As the store keeps them, at least one."""
        text = {
            "type": "output_text",
            "text": "".join(self.pieces),
            "annotations": [],
            "logprobs": [_logprob(logprob) for logprob in self.logprobs],
        }
        if self.refused is PartStage.ABSENT:
            return [text]
        refusal = {"type": "refusal", "refusal": self.refusal}
        return [refusal] if self.text is PartStage.ABSENT else [text, refusal]


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

    def body(self) -> dict[str, Any]:
        """As the store keeps it."""
        arguments = "".join(self.pieces)
        return {"call_id": self.id, "name": self.name, "arguments": arguments}


def _logprob(logprob: TokenLogprob) -> dict[str, Any]:
    return {
        "token": logprob.text,
        "logprob": logprob.logprob,
        "bytes": list(logprob.data),
        "top_logprobs": [],
    }

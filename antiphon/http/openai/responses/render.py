"""The events of a response as they go on the wire: a pure state machine from narration to bytes,
for streams as they happen and for streams shown again, which are the same bytes.

The rules that SDKs depend on: an event's number is its place in the narration; `event:` and `data:`
lines and no others; no event type that OpenAI doesn't have; and a terminal event with the whole
response, or else an error that both openai-python and openai-node raise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

import msgspec

from antiphon.errors import AntiphonError
from antiphon.events import TokenLogprob
from antiphon.http.errors import describe_error
from antiphon.http.openai.responses.wire import response_body
from antiphon.ids import ItemId
from antiphon.narration import (
    ArgumentsAdded,
    ArgumentsClosed,
    CallOpened,
    CitationAdded,
    Ended,
    ItemClosed,
    ItemOpened,
    Opened,
    PartClosed,
    PartOpened,
    Queued,
    RefusalAdded,
    RefusalClosed,
    RefusalOpened,
    ResponseEvent,
    SearchMoved,
    SearchOpened,
    SearchStage,
    Started,
    TextAdded,
    TextClosed,
)
from antiphon.records import JsonObject, Response, ResponseStatus

_encode = msgspec.json.Encoder().encode
_ENDS = {
    ResponseStatus.COMPLETED: "response.completed",
    ResponseStatus.INCOMPLETE: "response.incomplete",
    # OpenAI has no event of that name, and openai-node throws at one it doesn't know.
    ResponseStatus.CANCELLED: "response.incomplete",
    ResponseStatus.FAILED: "response.failed",
}

_LATER = frozenset({"judged", "context"})
"""Fields that a response doesn't have when its story begins."""


@dataclass(slots=True)
class _Message:
    id: ItemId
    head: bytes
    """A delta's bytes up to its text, made once: a token is a delta, and there are thousands a
    second."""
    pieces: list[str] = field(default_factory=list)
    logprobs: list[JsonObject] = field(default_factory=list)
    annotations: list[JsonObject] = field(default_factory=list)
    has_text: bool = False
    refusal: str | None = None

    @property
    def part(self) -> int:
        """The number of the part that was opened last."""
        return 1 if self.has_text and self.refusal is not None else 0

    def parts(self) -> list[JsonObject]:
        """The text first; a message has at least one part."""
        refused = [] if self.refusal is None else [_refusal(self.refusal)]
        if refused and not self.has_text:
            return refused
        return [_part("".join(self.pieces), self.logprobs, self.annotations), *refused]


@dataclass(slots=True)
class _Call:
    id: ItemId
    call: str
    name: str
    pieces: list[str] = field(default_factory=list)
    is_whole: bool = False

    def item(self, status: str) -> JsonObject:
        return {
            "id": self.id,
            "type": "function_call",
            "status": status,
            "call_id": self.call,
            "name": self.name,
            "arguments": "".join(self.pieces),
        }


@dataclass(slots=True)
class _Search:
    id: ItemId
    queries: tuple[str, ...] = ()
    results: tuple[JsonObject, ...] | None = None

    def item(self, status: str) -> JsonObject:
        return {
            "id": self.id,
            "type": "file_search_call",
            "status": status,
            "queries": self.queries,
            "results": self.results,
        }


class EventRenderer:
    """One reader's stream. Events up to number `after` are taken in and not shown."""

    def __init__(self, *, with_logprobs: bool, with_results: bool = False, after: int = -1) -> None:
        self._with_logprobs = with_logprobs
        self._with_results = with_results
        self._after = after
        self._number = 0
        self._messages: dict[int, _Message] = {}
        self._calls: dict[int, _Call] = {}
        self._searches: dict[int, _Search] = {}

    def render(self, events: Sequence[ResponseEvent], response: Response) -> bytes:
        """The bytes for the next events; `response` is as it stands after them."""
        return b"".join([self._next(event, response) for event in events])

    def render_error(self, error: AntiphonError) -> bytes:
        """The end of a stream that can't go on: openai-python raises at a nested `error`,
        openai-node at the event's type, other readers want the flat fields."""
        reply = describe_error(error)
        flat = {"code": reply.code, "message": reply.message, "param": reply.param}
        event = {
            "type": "error",
            **flat,
            "sequence_number": self._number,
            "error": {"type": reply.type, **flat},
        }
        return b"event: error\ndata: " + _encode(event) + b"\n\n"

    def _next(self, event: ResponseEvent, response: Response) -> bytes:
        number, is_shown = self._number, self._number > self._after
        self._number += 1
        if isinstance(event, TextAdded):
            self._take(event)
            return self._text(event, number) if is_shown else b""
        self._note(event)
        if not is_shown:
            return b""
        name, fields = self._fields(event, response)
        data = _encode({"type": name, **fields, "sequence_number": number})
        return b"event: " + name.encode("ascii") + b"\ndata: " + data + b"\n\n"

    def _note(self, event: ResponseEvent) -> None:
        """What later events have to say again."""
        match event:
            case ItemOpened(index=index, item=item):
                self._messages[index] = _Message(item, _delta_head(event))
            case PartOpened(index=index):
                self._messages[index].has_text = True
            case RefusalOpened(index=index):
                self._messages[index].refusal = ""
            case RefusalAdded(index=index, text=text):
                message = self._messages[index]
                message.refusal = (message.refusal or "") + text
            case CallOpened(index=index, item=item, call=call, name=name):
                self._calls[index] = _Call(item, call, name)
            case ArgumentsAdded(index=index, text=text):
                self._calls[index].pieces.append(text)
            case ArgumentsClosed(index=index):
                self._calls[index].is_whole = True
            case CitationAdded(index=index):
                self._messages[index].annotations.append(event.annotation)
            case SearchOpened(index=index, item=item):
                self._searches[index] = _Search(item)
            case SearchMoved(index=index, stage=SearchStage.COMPLETED):
                self._searches[index].queries = event.queries
                if self._with_results:
                    self._searches[index].results = event.results
            case _:
                pass

    def _take(self, event: TextAdded) -> None:
        message = self._messages[event.index]
        message.pieces.append(event.text)
        if self._with_logprobs:
            message.logprobs.extend(map(_logprob, event.logprobs))

    def _text(self, event: TextAdded, number: int) -> bytes:
        logprobs = b"[]"
        if event.logprobs and self._with_logprobs:
            logprobs = _encode([_logprob(entry) for entry in event.logprobs])
        return b'%s%s,"logprobs":%s,"sequence_number":%d}\n\n' % (
            self._messages[event.index].head,
            _encode(event.text),
            logprobs,
            number,
        )

    def _fields(self, event: ResponseEvent, response: Response) -> tuple[str, dict[str, Any]]:
        match event:
            case Opened(status=status):
                return "response.created", self._snapshot(response, status)
            case Queued():
                return "response.queued", self._snapshot(response, ResponseStatus.QUEUED)
            case Started():
                return "response.in_progress", self._snapshot(response, ResponseStatus.IN_PROGRESS)
            case ItemOpened(index=index):
                item = self._item(index, "in_progress", [])
                return "response.output_item.added", {"output_index": index, "item": item}
            case PartOpened(index=index):
                part = {"part": _part("", [], [])}
                return "response.content_part.added", self._place(index) | part
            case TextAdded():
                raise AssertionError("text has a way of its own")
            case TextClosed(index=index):
                message = self._messages[index]
                whole = {"text": "".join(message.pieces), "logprobs": message.logprobs}
                return "response.output_text.done", self._place(index) | whole
            case RefusalOpened(index=index):
                part = {"part": _refusal("")}
                return "response.content_part.added", self._place(index) | part
            case RefusalAdded(index=index, text=delta):
                return "response.refusal.delta", self._place(index) | {"delta": delta}
            case RefusalClosed(index=index):
                said = {"refusal": self._messages[index].refusal or ""}
                return "response.refusal.done", self._place(index) | said
            case PartClosed(index=index):
                part = {"part": self._messages[index].parts()[-1]}
                return "response.content_part.done", self._place(index) | part
            case CallOpened(index=index):
                called = self._calls[index].item("in_progress") | {"arguments": ""}
                return "response.output_item.added", {"output_index": index, "item": called}
            case ArgumentsAdded(index=index, text=delta):
                return "response.function_call_arguments.delta", {
                    "item_id": self._calls[index].id,
                    "output_index": index,
                    "delta": delta,
                }
            case ArgumentsClosed(index=index):
                call = self._calls[index].item("completed")
                return "response.function_call_arguments.done", {
                    "item_id": call["id"],
                    "output_index": index,
                    "name": call["name"],
                    "arguments": call["arguments"],
                }
            case CitationAdded(index=index):
                annotations = self._messages[index].annotations
                return "response.output_text.annotation.added", self._place(index) | {
                    "annotation_index": len(annotations) - 1,
                    "annotation": annotations[-1],
                }
            case SearchOpened(index=index):
                searching = self._searches[index].item("in_progress")
                return "response.output_item.added", {"output_index": index, "item": searching}
            case SearchMoved(index=index, stage=stage):
                return f"response.file_search_call.{stage}", {
                    "item_id": self._searches[index].id,
                    "output_index": index,
                }
            case ItemClosed(index=index, finish=finish) if index in self._searches:
                searched = self._searches[index].item("completed" if finish else "incomplete")
                return "response.output_item.done", {"output_index": index, "item": searched}
            case ItemClosed(index=index) if index in self._calls:
                is_whole = self._calls[index].is_whole
                called = self._calls[index].item("completed" if is_whole else "incomplete")
                return "response.output_item.done", {"output_index": index, "item": called}
            case ItemClosed(index=index, finish=finish):
                is_complete = finish is not None and finish.is_whole
                content = self._messages[index].parts()
                item = self._item(index, "completed" if is_complete else "incomplete", content)
                return "response.output_item.done", {"output_index": index, "item": item}
            case Ended(status=status):
                body = response_body(
                    # Nobody had an opinion of it when this was told first.
                    replace(response, feedback=None),
                    with_logprobs=self._with_logprobs,
                    with_results=self._with_results,
                )
                return _ENDS[status], {"response": body}
            case _:
                assert_never(event)

    def _snapshot(self, response: Response, status: ResponseStatus) -> dict[str, Any]:
        """The response before its first item, whatever became of it since."""
        before = replace(
            response,
            status=status,
            completed_ms=None,
            error=None,
            incomplete_reason=None,
            usage=None,
            output=(),
            feedback=None,
            request={name: each for name, each in response.request.items() if name not in _LATER},
        )
        return {"response": response_body(before, with_logprobs=False)}

    def _place(self, index: int) -> dict[str, Any]:
        return {
            "item_id": self._messages[index].id,
            "output_index": index,
            "content_index": self._messages[index].part,
        }

    def _item(self, index: int, status: str, content: list[JsonObject]) -> JsonObject:
        return {
            "id": self._messages[index].id,
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": content,
        }


def _delta_head(event: ItemOpened) -> bytes:
    name = b"response.output_text.delta"
    return (
        b'event: %s\ndata: {"type":"%s","item_id":%s,"output_index":%d,"content_index":0,"delta":'
        % (name, name, _encode(event.item), event.index)
    )


def _part(text: str, logprobs: list[JsonObject], annotations: list[JsonObject]) -> JsonObject:
    return {
        "type": "output_text",
        "text": text,
        "annotations": annotations,
        "logprobs": logprobs,
    }


def _refusal(text: str) -> JsonObject:
    return {"type": "refusal", "refusal": text}


def _logprob(entry: TokenLogprob) -> JsonObject:
    return {
        "token": entry.text,
        "logprob": entry.logprob,
        "bytes": list(entry.data),
        "top_logprobs": [],
    }

"""The events of a response that has ended, as far as its output tells them: for one whose log is
gone. Pure."""

from typing import Any

from antiphon.actors.responses.spoken import told_search
from antiphon.messages import CALLS, SEARCH
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
    RefusalAdded,
    RefusalClosed,
    RefusalOpened,
    ResponseEvent,
    Started,
    TextAdded,
    TextClosed,
)
from antiphon.records import Item, Response, ResponseStatus
from antiphon.turn_events import FinishReason


def told(response: Response) -> tuple[ResponseEvent, ...]:
    """From the first one to the last."""
    events: list[ResponseEvent] = [Opened(status=ResponseStatus.IN_PROGRESS), Started()]
    after = len(response.output)
    for index, item in enumerate(response.output):
        if item.type == "function_call":
            events += _told_call(index, item, item.body)
        elif item.type == SEARCH:
            found = item.body["results"] or ()
            events += told_search(index, item.id, item.body["queries"], found)
        else:
            calls = item.body.get(CALLS, ())
            events += _told_message(index, item, calls, after)
            after += len(calls)
    return (*events, Ended(status=response.status))


def _told_message(
    index: int, item: Item, calls: list[dict[str, Any]], first: int
) -> list[ResponseEvent]:
    """With the calls of a choice, whose numbers begin at `first`."""
    events: list[ResponseEvent] = [ItemOpened(index=index, item=item.id)]
    for part in item.body.get("content", []):
        events += _told_part(index, part)
    for number, call in enumerate(calls, first):
        events += _told_call(number, item, call, choice=index)
    finish = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    return [*events, _closed(index, item, finish)]


def _told_call(
    index: int, item: Item, body: dict[str, Any], *, choice: int = 0
) -> list[ResponseEvent]:
    arguments = body["arguments"]
    return [
        CallOpened(
            index=index, item=item.id, call=body["call_id"], name=body["name"], choice=choice
        ),
        *([ArgumentsAdded(index=index, text=arguments)] if arguments else []),
        *([ArgumentsClosed(index=index)] if item.status == "completed" else []),
        _closed(index, item, FinishReason.TOOL_CALLS),
    ]


def _closed(index: int, item: Item, finish: FinishReason) -> ItemClosed:
    return ItemClosed(index=index, finish=finish if item.status == "completed" else None)


def _told_part(index: int, part: dict[str, Any]) -> tuple[ResponseEvent, ...]:
    if part.get("type") == "refusal":
        return (
            RefusalOpened(index=index),
            RefusalAdded(index=index, text=str(part.get("refusal", ""))),
            RefusalClosed(index=index),
            PartClosed(index=index),
        )
    text = str(part.get("text", ""))
    said = (TextAdded(index=index, text=text),) if text else ()
    cited = [
        CitationAdded(
            index=index, at=each["index"], file=each["file_id"], filename=each["filename"]
        )
        for each in part.get("annotations", ())
    ]
    closed = (TextClosed(index=index), PartClosed(index=index))
    return (PartOpened(index=index), *said, *cited, *closed)

"""The pure core of a response: what each piece of a turn adds to its story, and how it stands.

Turn events in, response events out; and the same events in again rebuild it, which is how a
response whose server died gets its true end. Knows no store and no clock.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from antiphon.events import (
    ChoiceEnded,
    Delta,
    FinishReason,
    TokenLogprob,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnPlaced,
)
from antiphon.ids import ItemId, new_item_id
from antiphon.narration import (
    Ended,
    ItemClosed,
    ItemOpened,
    Opened,
    PartClosed,
    PartOpened,
    Queued,
    ResponseEvent,
    Started,
    TextAdded,
    TextClosed,
)
from antiphon.records import (
    Item,
    Response,
    ResponseError,
    ResponseKind,
    ResponseStatus,
    TokenUsage,
)

_INCOMPLETE = {
    FinishReason.LENGTH: "max_output_tokens",
    FinishReason.CONTENT_FILTER: "content_filter",
}


@dataclass(slots=True)
class _Message:
    item: ItemId
    pieces: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    text_closed: bool = False
    part_closed: bool = False
    closed: bool = False
    finish: FinishReason | None = None


class Script:
    """One response, from its first event to its last. Every event it returns is part of it."""

    def __init__(self, response: Response, *, new_item: Callable[[], ItemId] = new_item_id) -> None:
        self._response = response
        self._new_item = new_item
        self._messages: dict[int, _Message] = {}
        self._opened = self._started = self._ended = False
        self._usage = TokenUsage()

    @classmethod
    def resumed(cls, response: Response, events: Iterable[ResponseEvent]) -> "Script":
        """As it stood after these events, the first ones it returned."""
        script = cls(response)
        script._usage = response.usage or TokenUsage()
        for event in events:
            script._apply(event)
        return script

    @property
    def opened(self) -> bool:
        """Whether anything was said about it."""
        return self._opened

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def placed(self) -> Response:
        """The response with the model and the tier that it has by now."""
        return self._response

    def queue(self) -> tuple[ResponseEvent, ...]:
        """It is accepted, and waits."""
        if self._opened:
            return ()
        return self._play(Opened(status=ResponseStatus.QUEUED), Queued())

    def on_turn(self, event: TurnEvent) -> tuple[ResponseEvent, ...]:
        """What the event adds. The end of the turn is not the end of the response: see `end`."""
        match event:
            case TurnPlaced(model=model, tier=tier):
                self._response = replace(
                    self._response,
                    model=model,
                    request=self._response.request | {"service_tier": tier},
                )
                return ()
            case Delta(choice=choice, text=text, logprobs=logprobs):
                added = TextAdded(index=choice, text=text, logprobs=logprobs)
                return (*self._open_item(choice), *self._play(added))
            case ChoiceEnded(choice=choice, finish_reason=reason):
                return (*self._open_item(choice), *self._close_item(choice, reason))
            case TurnEnded(usage=usage) | TurnFailed(usage=usage):
                self._usage = TokenUsage(input=usage.prompt_tokens, output=usage.completion_tokens)
                return ()
            case _:
                assert_never(event)

    def outcome(self) -> ResponseStatus:
        """The status of a turn that ended by itself."""
        return ResponseStatus.COMPLETED if self._reason() is None else ResponseStatus.INCOMPLETE

    def end(self, status: ResponseStatus) -> tuple[ResponseEvent, ...]:
        """The last events. What was still open is closed as it stands."""
        if self._ended:
            return ()
        begun: tuple[ResponseEvent, ...] = () if self._opened else self._start()
        closed = [
            event
            for index, message in self._messages.items()
            if not message.closed
            for event in self._close_item(index, None)
        ]
        return (*begun, *closed, *self._play(Ended(status=status)))

    def response(
        self,
        status: ResponseStatus,
        completed_ms: int,
        error: ResponseError | None = None,
    ) -> Response:
        """The response as it ended with that status."""
        reason = self._reason() if status is ResponseStatus.INCOMPLETE else None
        return replace(
            self._response,
            status=status,
            completed_ms=completed_ms,
            error=error,
            incomplete_reason=reason,
            usage=self._usage,
            output=self.output(completed_ms),
        )

    def output(self, created_ms: int) -> tuple[Item, ...]:
        """Its items so far, unfinished ones marked incomplete."""
        return tuple(
            self._item(self._messages[index], created_ms) for index in sorted(self._messages)
        )

    def _open_item(self, index: int) -> tuple[ResponseEvent, ...]:
        started = () if self._started else self._start()
        if index in self._messages:
            return started
        opened = self._play(ItemOpened(index=index, item=self._new_item()), PartOpened(index=index))
        return (*started, *opened)

    def _start(self) -> tuple[ResponseEvent, ...]:
        if self._opened:
            return self._play(Started())
        return self._play(Opened(status=ResponseStatus.IN_PROGRESS), Started())

    def _close_item(self, index: int, finish: FinishReason | None) -> tuple[ResponseEvent, ...]:
        message = self._messages[index]
        events: list[ResponseEvent] = []
        if not message.text_closed:
            events.append(TextClosed(index=index))
        if not message.part_closed:
            events.append(PartClosed(index=index))
        events.append(ItemClosed(index=index, finish=finish))
        return self._play(*events)

    def _play(self, *events: ResponseEvent) -> tuple[ResponseEvent, ...]:
        for event in events:
            self._apply(event)
        return events

    def _apply(self, event: ResponseEvent) -> None:
        match event:
            case Opened():
                self._opened = True
            case Queued():
                pass
            case Started():
                self._started = True
            case ItemOpened(index=index, item=item):
                self._messages[index] = _Message(item)
            case PartOpened():
                pass
            case TextAdded(index=index, text=text, logprobs=logprobs):
                self._messages[index].pieces.append(text)
                self._messages[index].logprobs.extend(logprobs)
            case TextClosed(index=index):
                self._messages[index].text_closed = True
            case PartClosed(index=index):
                self._messages[index].part_closed = True
            case ItemClosed(index=index, finish=finish):
                self._messages[index].closed = True
                self._messages[index].finish = finish
            case Ended():
                self._ended = True
            case _:
                assert_never(event)

    def _reason(self) -> str | None:
        if self._response.kind is ResponseKind.CHAT:  # there each choice says so for itself
            return None
        reasons = [_INCOMPLETE.get(m.finish) for m in self._messages.values() if m.finish]
        return next((reason for reason in reasons if reason), None)

    def _item(self, message: _Message, created_ms: int) -> Item:
        complete = message.finish is FinishReason.STOP
        part: dict[str, Any] = {
            "type": "output_text",
            "text": "".join(message.pieces),
            "annotations": [],
            "logprobs": [_logprob(logprob) for logprob in message.logprobs],
        }
        body: dict[str, Any] = {"type": "message", "role": "assistant", "content": [part]}
        if self._response.kind is ResponseKind.CHAT:
            body["finish_reason"] = message.finish
        return Item(
            id=message.item,
            type="message",
            role="assistant",
            body=body,
            created_ms=created_ms,
            status="completed" if complete else "incomplete",
        )


def told(response: Response) -> tuple[ResponseEvent, ...]:
    """The events of a response that has ended, as far as its output tells them: for one whose log
    is gone."""
    events: list[ResponseEvent] = [Opened(status=ResponseStatus.IN_PROGRESS), Started()]
    for index, item in enumerate(response.output):
        events += [ItemOpened(index=index, item=item.id), PartOpened(index=index)]
        text = "".join(str(part.get("text", "")) for part in item.body.get("content", []))
        if text:
            events.append(TextAdded(index=index, text=text))
        finish = FinishReason.STOP if item.status == "completed" else None
        events += [
            TextClosed(index=index),
            PartClosed(index=index),
            ItemClosed(index=index, finish=finish),
        ]
    return (*events, Ended(status=response.status))


def _logprob(logprob: TokenLogprob) -> dict[str, Any]:
    return {
        "token": logprob.text,
        "logprob": logprob.logprob,
        "bytes": list(logprob.data),
        "top_logprobs": [],
    }

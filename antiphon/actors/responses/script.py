"""The pure core of a response: what each piece of a turn adds to its story, and how it stands.

Turn events in, response events out; and the same events in again rebuild it, which is how a
response whose server died gets its true end. Knows no store and no clock.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, assert_never

from antiphon.actors.responses.spoken import Message, PartStage
from antiphon.events import (
    ChoiceEnded,
    Delta,
    FinishReason,
    Refused,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnPlaced,
)
from antiphon.ids import ItemId, new_item_id
from antiphon.judged import judged_json
from antiphon.messages import WITHHELD
from antiphon.narration import (
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
from antiphon.verdicts import Judged

_INCOMPLETE = {
    FinishReason.LENGTH: "max_output_tokens",
    FinishReason.CONTENT_FILTER: "content_filter",
}


class Script:
    """One response, from its first event to its last. Every event it returns is part of it."""

    def __init__(
        self,
        response: Response,
        *,
        shows_judged: bool = False,
        new_item: Callable[[], ItemId] = new_item_id,
    ) -> None:
        """`shows_judged` says that its client asked to see what its texts were judged to be."""
        self._response = response
        self._shows_judged = shows_judged
        self._new_item = new_item
        self._shown: Sequence[ItemId | None] = ()
        self._messages: dict[int, Message] = {}
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

    def show(self, items: Sequence[ItemId | None]) -> None:
        """Which item each of the turn's messages is; None for one that is none."""
        self._shown = items

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
                return (*self._open_text(choice), *self._play(added))
            case Refused(choice=choice, text=text, messages=places):
                return (*self._open_item(choice), *self._refuse(choice, text, places))
            case ChoiceEnded(choice=choice, finish_reason=reason):
                # A message without any part would be none.
                opened = () if self._is_refused(choice) else self._open_text(choice)
                return (*opened, *self._close_item(choice, reason))
            case TurnEnded(usage=usage, judged=judged):
                self._usage = TokenUsage(input=usage.prompt_tokens, output=usage.completion_tokens)
                self._keep(judged)
                return ()
            case TurnFailed(usage=usage):
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

    def _keep(self, judged: Judged | None) -> None:
        """Where its client asked for it, or must learn why there is no more of it."""
        if judged is None:
            return
        is_response = self._response.kind is ResponseKind.RESPONSE
        if self._shows_judged or (is_response and any(m.refusal for m in self._messages.values())):
            request = self._response.request | {"judged": judged_json(judged)}
            self._response = replace(self._response, request=request)

    def _open_item(self, index: int) -> tuple[ResponseEvent, ...]:
        started = () if self._started else self._start()
        if index in self._messages:
            return started
        return (*started, *self._play(ItemOpened(index=index, item=self._new_item())))

    def _open_text(self, index: int) -> tuple[ResponseEvent, ...]:
        opened = self._open_item(index)
        if self._messages[index].text is not PartStage.ABSENT:
            return opened
        return (*opened, *self._play(PartOpened(index=index)))

    def _is_refused(self, index: int) -> bool:
        message = self._messages.get(index)
        return message is not None and message.refused is not PartStage.ABSENT

    def _refuse(self, index: int, text: str, places: Sequence[int]) -> tuple[ResponseEvent, ...]:
        items = (self._shown[place] for place in places if place < len(self._shown))
        withheld = tuple(item for item in items if item is not None)
        return self._play(
            *self._messages[index].closing_text(index),
            RefusalOpened(index=index),
            RefusalAdded(index=index, text=text, withheld=withheld),
            RefusalClosed(index=index),
            PartClosed(index=index),
        )

    def _start(self) -> tuple[ResponseEvent, ...]:
        if self._opened:
            return self._play(Started())
        return self._play(Opened(status=ResponseStatus.IN_PROGRESS), Started())

    def _close_item(self, index: int, finish: FinishReason | None) -> tuple[ResponseEvent, ...]:
        """As it stands: also of one that a crash has left between two events."""
        message = self._messages[index]
        return self._play(
            *message.closing_text(index),
            *message.closing_refusal(index),
            ItemClosed(index=index, finish=finish),
        )

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
                self._messages[index] = Message(item)
            case (
                PartOpened()
                | TextAdded()
                | TextClosed()
                | PartClosed()
                | RefusalOpened()
                | RefusalAdded()
                | RefusalClosed()
                | ItemClosed()
            ):
                self._messages[event.index].apply(event)
            case Ended():
                self._ended = True
            case _:
                assert_never(event)

    def _reason(self) -> str | None:
        if self._response.kind is ResponseKind.CHAT:  # there each choice says so for itself
            return None
        reasons = [_INCOMPLETE.get(m.finish) for m in self._messages.values() if m.finish]
        return next((reason for reason in reasons if reason), None)

    def _item(self, message: Message, created_ms: int) -> Item:
        complete = message.finish is FinishReason.STOP
        body: dict[str, Any] = {"type": "message", "role": "assistant", "content": message.parts()}
        if message.withheld:
            body[WITHHELD] = list(message.withheld)
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
        events.append(ItemOpened(index=index, item=item.id))
        for part in item.body.get("content", []):
            events += _told_part(index, part)
        finish = FinishReason.STOP if item.status == "completed" else None
        events.append(ItemClosed(index=index, finish=finish))
    return (*events, Ended(status=response.status))


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
    return (PartOpened(index=index), *said, TextClosed(index=index), PartClosed(index=index))

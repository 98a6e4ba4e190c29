"""The pure core of a response: what each piece of a turn adds to its story, and how it stands.

Turn events in, response events out; and the same events in again rebuild it, which is how a
response whose server died gets its true end. Knows no store and no clock.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import assert_never

import msgspec

from antiphon.actors.responses.spoken import Call, Message, PartStage, Search, told_search
from antiphon.ids import ItemId, new_item_id
from antiphon.judged import judged_json
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
    Queued,
    RefusalAdded,
    RefusalClosed,
    RefusalOpened,
    ResponseEvent,
    SearchMoved,
    SearchOpened,
    Started,
    TextAdded,
)
from antiphon.records import (
    Item,
    JsonObject,
    Response,
    ResponseError,
    ResponseKind,
    ResponseStatus,
    TokenUsage,
)
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.turn_events import (
    ChoiceEnded,
    Cited,
    Delta,
    FinishReason,
    Refused,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnPlaced,
    Usage,
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
        choices: int = 1,
        new_item: Callable[[], ItemId] = new_item_id,
    ) -> None:
        """`shows_judged` says that its client asked to see what its texts were judged to be."""
        self._response = response
        self._shows_judged = shows_judged
        self._new_item = new_item
        self._shown: Sequence[ItemId | None] = ()
        self._choices = choices
        self._items: dict[int, Message | Call | Search] = {}
        self._places: dict[int, int] = {}
        """By choice: which item its message is."""
        self._searched: tuple[Sequence[str], Sequence[JsonObject]] | None = None
        self._opened = self._started = self._ended = False
        self._usage = TokenUsage()
        self.counts: dict[ItemId, int] = {}
        """Tokens of items that came before the answer, where they had not been counted."""

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

    def search(self, queries: Sequence[str], results: Sequence[JsonObject]) -> None:
        """Files were searched, with these questions and results. It is told once there is anything
        to tell: until then the turn may be refused, and never was."""
        self._searched = (queries, results)

    def queue(self) -> tuple[ResponseEvent, ...]:
        """It is accepted, and waits."""
        if self._opened:
            return ()
        return self._play(Opened(status=ResponseStatus.QUEUED), Queued())

    def on_turn(self, event: TurnEvent) -> tuple[ResponseEvent, ...]:
        """What the event adds. The end of the turn is not the end of the response: see `end`."""
        match event:
            case TurnPlaced():
                self._place(event)
                return ()
            case Delta(choice=choice, text=text, logprobs=logprobs):
                opened = self._open_text(choice)
                index = self._places[choice]
                added = TextAdded(index=index, text=text, logprobs=logprobs)
                return (*opened, *self._play(added))
            case Cited(choice=choice, at=at, file=file, filename=filename):
                opened = self._open_text(choice)
                index = self._places[choice]
                cited = CitationAdded(index=index, at=at, file=file, filename=filename)
                return (*opened, *self._play(cited))
            case CallStarted():
                return self._open_call(event)
            case CallDelta(choice=choice, call=call, text=text):
                index, _ = self._calls(choice)[call]
                return self._play(ArgumentsAdded(index=index, text=text))
            case CallEnded(choice=choice, call=call):
                index, _ = self._calls(choice)[call]
                return self._play(ArgumentsClosed(index=index))
            case Refused(choice=choice, text=text, messages=places):
                closed = self._close_calls(choice, FinishReason.CONTENT_FILTER)
                return (*closed, *self._open_item(choice), *self._refuse(choice, text, places))
            case ChoiceEnded(choice=choice, finish_reason=reason):
                closed = self._close_calls(choice, reason)
                # A message without any part would be none.
                is_said = self._is_refused(choice) or bool(self._calls(choice))
                opened = () if is_said else self._open_text(choice)
                return (*closed, *opened, *self._close_message(choice, reason))
            case TurnEnded(usage=usage, judged=judged):
                self._usage = _counted(usage)
                self._keep(judged)
                return ()
            case TurnFailed(usage=usage):
                self._usage = _counted(usage)
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
            for index, item in self._items.items()
            if not item.closed
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
        items = tuple(
            self._item(index, item, created_ms)
            for index, item in sorted(self._items.items())
            if isinstance(item, Message) or not self._is_chat
        )
        *before, last = items or (None,)
        is_all = all(each is None or each.type == SEARCH for each in before)
        if last is not None and is_all and self._usage.output:
            # All that was generated, but for the token that says that it is over.
            ending = last.status == "completed"
            items = (*items[:-1], replace(last, tokens=max(1, self._usage.output - ending)))
        return items

    def _place(self, placed: TurnPlaced) -> None:
        shown: JsonObject = {"service_tier": placed.tier}
        if placed.manifest is not None and self._response.kind is ResponseKind.RESPONSE:
            shown["context"] = msgspec.to_builtins(placed.manifest)
        self._response = replace(
            self._response, model=placed.model, request=self._response.request | shown
        )
        self.counts = dict(placed.counts)

    def _keep(self, judged: Judged | None) -> None:
        """Where its client asked for it, or must learn why there is no more of it."""
        if judged is None:
            return
        is_response = self._response.kind is ResponseKind.RESPONSE
        if self._shows_judged or (is_response and self._has_refused):
            request = self._response.request | {"judged": judged_json(judged)}
            self._response = replace(self._response, request=request)

    @property
    def _is_chat(self) -> bool:
        """There a choice is one message with all its calls, numbered as it is."""
        return self._response.kind is ResponseKind.CHAT

    @property
    def _has_refused(self) -> bool:
        return any(isinstance(each, Message) and each.refusal for each in self._items.values())

    def _calls(self, choice: int) -> list[tuple[int, Call]]:
        """With their numbers as items."""
        return [
            (index, item)
            for index, item in self._items.items()
            if isinstance(item, Call) and item.choice == choice
        ]

    def _message(self, choice: int) -> Message | None:
        item = self._items.get(self._places.get(choice, -1))
        return item if isinstance(item, Message) else None

    @property
    def _next_index(self) -> int:
        return max(self._items, default=-1) + 1

    def _open_item(self, choice: int) -> tuple[ResponseEvent, ...]:
        """The choice's message; a new one, where calls have followed the last."""
        started = () if self._started else self._start()
        message = self._message(choice)
        if message is not None and not message.closed:
            return started
        index = choice if self._is_chat else self._next_index
        self._places[choice] = index
        return (*started, *self._play(ItemOpened(index=index, item=self._new_item())))

    def _open_text(self, choice: int) -> tuple[ResponseEvent, ...]:
        opened = self._open_item(choice)
        message = self._message(choice)
        if message is None or message.text is not PartStage.ABSENT:
            return opened
        return (*opened, *self._play(PartOpened(index=self._places[choice])))

    def _open_call(self, started: CallStarted) -> tuple[ResponseEvent, ...]:
        choice = started.choice
        if self._is_chat:
            before = self._open_item(choice)
        else:
            begun = () if self._started else self._start()
            before = (*begun, *self._close_message(choice, FinishReason.STOP))
        before = (*before, *self._close_calls(choice, FinishReason.TOOL_CALLS))
        index = max(self._next_index, self._choices if self._is_chat else 0)
        item = new_item_id("fc_")
        opened = CallOpened(
            index=index, item=item, call=started.id, name=started.name, choice=choice
        )
        return (*before, *self._play(opened))

    def _close_calls(self, choice: int, finish: FinishReason) -> tuple[ResponseEvent, ...]:
        return tuple(
            event
            for index, call in self._calls(choice)
            if not call.closed
            for event in self._close_item(index, finish)
        )

    def _close_message(self, choice: int, finish: FinishReason) -> tuple[ResponseEvent, ...]:
        message = self._message(choice)
        if message is None or message.closed:
            return ()
        return self._close_item(self._places[choice], finish)

    def _is_refused(self, choice: int) -> bool:
        message = self._message(choice)
        return message is not None and message.refused is not PartStage.ABSENT

    def _refuse(self, choice: int, text: str, places: Sequence[int]) -> tuple[ResponseEvent, ...]:
        items = (self._shown[place] for place in places if place < len(self._shown))
        withheld = tuple(item for item in items if item is not None)
        index, message = self._places[choice], self._message(choice)
        return self._play(
            *(message.closing_text(index) if message else ()),
            RefusalOpened(index=index),
            RefusalAdded(index=index, text=text, withheld=withheld),
            RefusalClosed(index=index),
            PartClosed(index=index),
        )

    def _start(self) -> tuple[ResponseEvent, ...]:
        opened = () if self._opened else (Opened(status=ResponseStatus.IN_PROGRESS),)
        searched, self._searched = self._searched, None
        told = () if searched is None else told_search(0, new_item_id("fs_"), *searched)
        return self._play(*opened, Started(), *told)

    def _close_item(self, index: int, finish: FinishReason | None) -> tuple[ResponseEvent, ...]:
        """As it stands: also of one that a crash has left between two events."""
        item, closed = self._items[index], ItemClosed(index=index, finish=finish)
        if not isinstance(item, Message):
            return self._play(closed)
        return self._play(*item.closing_text(index), *item.closing_refusal(index), closed)

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
                self._items[index] = Message(item)
            case CallOpened(index=index, item=item, call=call, name=name, choice=choice):
                self._items[index] = Call(item, call, name, choice)
            case ArgumentsAdded() | ArgumentsClosed():
                called = self._items[event.index]
                assert isinstance(called, Call)
                called.apply(event)
            case SearchOpened(index=index, item=item):
                self._items[index] = Search(item)
            case SearchMoved():
                searched = self._items[event.index]
                assert isinstance(searched, Search)
                searched.apply(event)
            case ItemClosed():
                self._items[event.index].apply(event)
            case Ended():
                self._ended = True
            case _:
                message = self._items[event.index]
                assert isinstance(message, Message)
                message.apply(event)

    def _reason(self) -> str | None:
        if self._is_chat:  # there each choice says so for itself
            return None
        reasons = [_INCOMPLETE.get(each.finish) for each in self._items.values() if each.finish]
        return next((reason for reason in reasons if reason), None)

    def _item(self, index: int, item: Message | Call | Search, created_ms: int) -> Item:
        if not isinstance(item, Message):
            return item.record(created_ms)
        of_chat: JsonObject = {}
        if self._is_chat:
            of_chat["finish_reason"] = item.finish
            if calls := [call.body() for _, call in self._calls(index)]:
                of_chat[CALLS] = calls
        return item.record(created_ms, of_chat)


def _counted(usage: Usage) -> TokenUsage:
    return TokenUsage(
        input=usage.prompt_tokens, cached=usage.cached_tokens, output=usage.completion_tokens
    )

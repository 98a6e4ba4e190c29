"""Kept answers whose every event is played by the test, and a shelf of records that stands for the
store: what the HTTP room needs of both, and nothing behind it."""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import trio

from antiphon.errors import AntiphonError, RecordNotFound, UnknownCursor
from antiphon.events import CancelCause
from antiphon.ids import ConversationId, ItemId, ModelName, ResponseId, UserId
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
from antiphon.ports import NewAnswer
from antiphon.records import (
    Accepted,
    Feedback,
    Item,
    Page,
    Receipt,
    Response,
    ResponseKind,
    ResponseStatus,
    TokenUsage,
)
from antiphon.storage import Store
from antiphon.turn_events import FinishReason, TurnPlaced

R = TypeVar("R")
T = TypeVar("T", Item, Response)


class ScriptedWatcher:
    """One reader's view of a response: the test feeds events, the server reads them."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.error: AntiphonError | None = None
        self.placed: TurnPlaced | None = None
        self.cancels: list[CancelCause] = []
        self.cancelled = trio.Event()
        self.waiting = trio.Event()
        """Set once the server has asked for events that weren't there."""
        self._sender, self._receiver = trio.open_memory_channel[
            Sequence[ResponseEvent] | AntiphonError
        ](math.inf)

    def feed(self, *events: ResponseEvent) -> None:
        """What the next call returns."""
        self._sender.send_nowait(events)

    def refuse(self, error: AntiphonError) -> None:
        """What the next call raises."""
        self._sender.send_nowait(error)

    def end(self, response: Response, *events: ResponseEvent) -> None:
        """The last events, and the response as it is after them."""
        self._sender.send_nowait((*events, Ended(status=response.status)))
        self.response = response

    async def next_events(self) -> Sequence[ResponseEvent]:
        try:
            news = self._receiver.receive_nowait()
        except trio.WouldBlock:
            self.waiting.set()
            news = await self._receiver.receive()
        else:
            await trio.lowlevel.checkpoint()
        if isinstance(news, AntiphonError):
            raise news
        return news

    def cancel(self, cause: CancelCause) -> None:
        self.cancels.append(cause)
        self.cancelled.set()


class ScriptedResponses:
    """Makes ScriptedWatchers. With `text` each answer is played to its end at once; without, by
    the test."""

    def __init__(self, shelf: "ResponseShelf") -> None:
        self.shelf = shelf
        self.text: Sequence[str] | None = None
        self.refusal: AntiphonError | None = None
        self.created: list[NewAnswer] = []
        self.watchers: list[ScriptedWatcher] = []
        self._sender, self._receiver = trio.open_memory_channel[ScriptedWatcher](math.inf)

    async def next_watcher(self) -> ScriptedWatcher:
        """The next one that a request makes."""
        return await self._receiver.receive()

    async def create(self, new: NewAnswer) -> ScriptedWatcher:
        await trio.lowlevel.checkpoint()
        if self.refusal is not None:
            raise self.refusal
        self.created.append(new)
        return self._opened(new.response, new.input)

    async def watch(self, user: UserId, id: ResponseId) -> ScriptedWatcher:
        found = await self.shelf.response(user, id)
        if found is None:
            raise RecordNotFound("response", id, "response_id")
        return self._opened(found, ())

    async def cancel(self, user: UserId, id: ResponseId) -> Response:
        found = await self.shelf.response(user, id)
        if found is None:
            raise RecordNotFound("response", id, "response_id")
        if not found.status.is_final:
            found = replace(found, status=ResponseStatus.CANCELLED)
            self.shelf.put(found)
        return found

    def _opened(self, response: Response, given: tuple[Item, ...]) -> ScriptedWatcher:
        watcher = ScriptedWatcher(response)
        self.watchers.append(watcher)
        self._sender.send_nowait(watcher)
        if self.text is not None:
            ended = answered(response, *self.text)
            self.shelf.put(ended, given)
            watcher.feed(*story(*self.text))
            watcher.end(ended)
        return watcher


class ResponseShelf:
    """A `StoreAccess` over responses and their input items, in the order they were put there."""

    def __init__(self) -> None:
        self.responses_by_id: dict[ResponseId, Response] = {}
        self.inputs: dict[ResponseId, tuple[Item, ...]] = {}
        self.feedback: list[Feedback] = []
        self.before: tuple[Item, ...] = ()
        """What `context` gives."""
        self.error: AntiphonError | None = None

    def put(self, response: Response, given: tuple[Item, ...] | None = None) -> None:
        self.responses_by_id[response.id] = response
        if given is not None:
            self.inputs[response.id] = given

    async def run(self, work: Callable[[Store], Awaitable[R]]) -> R:
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        return await work(cast("Store", self))

    async def response(self, user: UserId, id: ResponseId) -> Response | None:
        found = self.responses_by_id.get(id)
        return found if found is not None and found.user == user else None

    async def responses(
        self,
        user: UserId,
        page: Page,
        *,
        kind: ResponseKind,
        conversation: ConversationId | None = None,
        model: ModelName | None = None,
        metadata: dict[str, str] | None = None,
    ) -> tuple[Response, ...]:
        wanted = (metadata or {}).items()
        return _paged(
            [
                each
                for each in self.responses_by_id.values()
                if each.user == user
                and each.kind is kind
                and conversation in {None, each.conversation}
                and model in {None, each.model}
                and wanted <= each.metadata.items()
            ],
            page,
        )

    async def input_items(
        self, user: UserId, id: ResponseId, page: Page
    ) -> tuple[Item, ...] | None:
        if await self.response(user, id) is None:
            return None
        return _paged(list(self.inputs.get(id, ())), page)

    async def update_response_metadata(
        self, user: UserId, id: ResponseId, metadata: dict[str, str]
    ) -> Response | None:
        found = await self.response(user, id)
        if found is not None:
            self.put(replace(found, metadata=metadata))
        return await self.response(user, id)

    async def delete_response(self, user: UserId, id: ResponseId, now_ms: int) -> Receipt | None:
        if await self.response(user, id) is None:
            return None
        del self.responses_by_id[id]
        return Receipt(id="receipt_1", subject=id, deleted_ms=now_ms, rows={"responses": 1})

    async def set_feedback(self, user: UserId, feedback: Feedback) -> bool:
        found = await self.response(user, feedback.response)
        if found is None:
            return False
        self.feedback.append(feedback)
        self.put(replace(found, feedback=feedback))
        return True

    async def find_items(self, user: UserId, ids: Sequence[ItemId]) -> tuple[Item, ...]:
        return tuple(
            item
            for each in self.responses_by_id.values()
            if each.user == user
            for item in (*self.inputs.get(each.id, ()), *each.output)
            if item.id in ids
        )

    async def context(self, user: UserId, **where: Any) -> Accepted:
        return Accepted(context=self.before)


def story(*texts: str, item: str = "msg_1", index: int = 0) -> tuple[ResponseEvent, ...]:
    """Everything but the end of a response with one message."""
    return (
        Opened(status=ResponseStatus.QUEUED),
        Queued(),
        Started(),
        *message_events(*texts, item=item, index=index),
    )


def message_events(
    *texts: str,
    item: str = "msg_1",
    index: int = 0,
    finish: FinishReason | None = FinishReason.STOP,
) -> tuple[ResponseEvent, ...]:
    """One message from its beginning to its end."""
    return (
        ItemOpened(index=index, item=ItemId(item)),
        PartOpened(index=index),
        *(TextAdded(index=index, text=text) for text in texts),
        TextClosed(index=index),
        PartClosed(index=index),
        ItemClosed(index=index, finish=finish),
    )


def answered(
    response: Response,
    *texts: str,
    item: str = "msg_1",
    status: ResponseStatus = ResponseStatus.COMPLETED,
) -> Response:
    """The response as it is kept once it has said that."""
    part = {"type": "output_text", "text": "".join(texts), "annotations": [], "logprobs": []}
    return replace(
        response,
        status=status,
        completed_ms=response.created_ms + 1000,
        usage=TokenUsage(input=3, output=len(texts)),
        output=(
            Item(
                id=ItemId(item),
                type="message",
                role="assistant",
                body={"type": "message", "role": "assistant", "content": [part]},
                created_ms=response.created_ms,
            ),
        ),
    )


def _paged(records: list[T], page: Page) -> tuple[T, ...]:
    ordered = records[::-1] if page.newest_first else records
    if page.after is not None:
        ids: list[str] = [each.id for each in ordered]
        if page.after not in ids:
            raise UnknownCursor(page.after)
        ordered = ordered[ids.index(page.after) + 1 :]
    return tuple(ordered[: page.limit])

"""A chat that is kept (`store: true`), as an answer that the rest of the server keeps, and its
events as those of a turn: so that a kept chat is written to the client exactly as any other."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from antiphon.errors import AntiphonError, TurnInterrupted
from antiphon.events import CancelCause, Message, Turn
from antiphon.http.openai.parse import ParsedRequest
from antiphon.http.openai.responses.items import chat_item
from antiphon.http.openai.responses.retries import Sending
from antiphon.ids import ModelName, ResponseId, UserId
from antiphon.judged import judged_of
from antiphon.messages import CALLS
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
    TextClosed,
    Watcher,
)
from antiphon.ports import NewAnswer
from antiphon.records import Item, JsonObject, Response, ResponseKind, ResponseStatus, TokenUsage
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.turn_events import (
    ChoiceEnded,
    Delta,
    Refused,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnPlaced,
    Usage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What every chunk of a completion says again."""

    response: ResponseId
    model: ModelName
    created_ms: int
    fingerprint: str
    is_kept: bool = False

    @property
    def created(self) -> int:
        """In seconds, as the API has it."""
        return self.created_ms // 1000


def heading_of(response: Response) -> Heading:
    """Of a completion that is kept."""
    return Heading(
        response=response.id,
        model=response.model,
        created_ms=response.created_ms,
        fingerprint=str(response.request["system_fingerprint"]),
        is_kept=True,
    )


def kept_answer(
    parsed: ParsedRequest, turn: Turn, sending: Sending, heading: Heading, user: UserId
) -> NewAnswer:
    """The chat as an answer: its messages are the items of its input."""
    now_ms = heading.created_ms
    response = Response(
        id=heading.response,
        user=user,
        kind=ResponseKind.CHAT,
        model=turn.model,
        status=ResponseStatus.IN_PROGRESS,
        created_ms=now_ms,
        request=_echo(turn, heading.fingerprint),
        metadata=parsed.body.metadata or {},
        streamed=bool(parsed.body.stream),
    )
    return NewAnswer(
        response=response,
        input=tuple(_items(turn.messages, now_ms)),
        turn=replace(turn, messages=(), stored=True),
        claim=sending.claim,
        retry_fingerprint=sending.retry_fingerprint,
        is_retry=sending.is_retry,
    )


def _items(messages: Sequence[Message], now_ms: int) -> Iterator[Item]:
    """One for each message of the request: calls belong to what was said before them."""
    waiting: Item | None = None
    for message in messages:
        if message.call is None:
            if waiting is not None:
                yield waiting
            waiting = chat_item(message, now_ms)
            continue
        if waiting is None or waiting.role != "assistant":
            if waiting is not None:
                yield waiting
            waiting = chat_item(Message(role="assistant", content=""), now_ms)
        call = message.call
        made = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        calls = [*waiting.body.get(CALLS, ()), made]
        waiting = replace(waiting, body=waiting.body | {CALLS: calls})
    if waiting is not None:
        yield waiting


def _echo(turn: Turn, fingerprint: str) -> JsonObject:
    """What a kept chat shows of its request."""
    sampling = turn.sampling
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "seed": sampling.seed,
        "logprobs": sampling.logprobs,
        "system_fingerprint": fingerprint,
    }


class KeptTurn:
    """A watcher, read as a turn."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._waiting: deque[TurnEvent] = deque()
        self._placed: TurnPlaced | None = None
        self._calls: dict[int, tuple[int, int]] = {}
        """By their numbers as items: whose they are, and which of its calls."""

    async def next_event(self) -> TurnEvent:
        """The next event; a refusal is one, too."""
        while not self._waiting:
            try:
                events = await self._watcher.next_events()
            except AntiphonError as error:
                return TurnFailed(error=error)
            placed = self._watcher.placed
            if placed is not None and placed is not self._placed:
                self._waiting.append(placed)
                self._placed = placed
            # Its log may have no end, though the response has.
            for event in events or (Ended(status=self._watcher.response.status),):
                self._take(event)
        return self._waiting.popleft()

    def cancel(self, cause: CancelCause) -> None:
        self._watcher.cancel(cause)

    def _take(self, event: ResponseEvent) -> None:
        match event:
            case TextAdded(index=index, text=text, logprobs=logprobs):
                self._waiting.append(Delta(choice=index, text=text, logprobs=logprobs))
            case RefusalAdded(index=index, text=text):
                self._waiting.append(Refused(choice=index, text=text))
            case ItemClosed(index=index, finish=finish):
                if finish is not None and index not in self._calls:
                    self._waiting.append(ChoiceEnded(choice=index, finish_reason=finish))
            case Ended(status=status):
                self._waiting.append(self._end(status))
            case CallOpened(index=index, call=call, name=name, choice=choice):
                number = sum(of == choice for of, _ in self._calls.values())
                self._calls[index] = choice, number
                started = CallStarted(choice=choice, call=number, id=call, name=name)
                self._waiting.append(started)
            case ArgumentsAdded(index=index, text=text):
                choice, number = self._calls[index]
                self._waiting.append(CallDelta(choice=choice, call=number, text=text))
            case ArgumentsClosed(index=index):
                choice, number = self._calls[index]
                self._waiting.append(CallEnded(choice=choice, call=number))
            case Opened() | Queued() | Started() | ItemOpened() | PartOpened():
                pass
            case TextClosed() | PartClosed() | RefusalOpened() | RefusalClosed():
                pass
            case SearchOpened() | SearchMoved() | CitationAdded():
                pass  # chats have none
            case _:
                assert_never(event)

    def _end(self, status: ResponseStatus) -> TurnEnded | TurnFailed:
        counted = self._watcher.response.usage or TokenUsage()
        usage = Usage(
            prompt_tokens=counted.input,
            completion_tokens=counted.output,
            cached_tokens=counted.cached,
        )
        if status in {ResponseStatus.COMPLETED, ResponseStatus.INCOMPLETE}:
            kept = self._watcher.response.request.get("judged")
            return TurnEnded(usage=usage, judged=None if kept is None else judged_of(kept))
        error = self._watcher.error or TurnInterrupted(f"it ended as {status}")
        return TurnFailed(error=error, usage=usage)

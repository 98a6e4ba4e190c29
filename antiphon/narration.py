"""What happens to a response, one event after another: what is logged, replayed and shown.

Each is one event of the Responses API, without what the events before it tell; its number in the
log is its `sequence_number`.
"""

import enum
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from antiphon.errors import AntiphonError, StoreFailed
from antiphon.events import CancelCause, TokenLogprob
from antiphon.ids import FileId, ItemId
from antiphon.records import Response, ResponseStatus
from antiphon.turn_events import FinishReason, TurnPlaced


class Opened(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="opened"):
    """The response exists: `response.created`. It is queued or in progress."""

    status: ResponseStatus


class Queued(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="queued"):
    """It waits for its turn: `response.queued`."""


class Started(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="started"):
    """`response.in_progress`."""


class ItemOpened(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="item"):
    """An assistant's message begins: `response.output_item.added`. Items are numbered as choices
    are, from 0."""

    index: int
    item: ItemId


class PartOpened(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="part"):
    """Its text part begins: `response.content_part.added`. It has one, unless it was refused before
    there was any text."""

    index: int


class TextAdded(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="text"):
    """`response.output_text.delta`."""

    index: int
    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


class TextClosed(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="text_done"):
    """`response.output_text.done`."""

    index: int


class PartClosed(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="part_done"):
    """`response.content_part.done`, of the part that was opened last."""

    index: int


class RefusalOpened(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="refusal_part"):
    """Its last part begins, which tells what isn't told: `response.content_part.added`."""

    index: int


class RefusalAdded(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="refusal"):
    """`response.refusal.delta`. The items that are to blame are not shown to a model again."""

    index: int
    text: str
    withheld: tuple[ItemId, ...] = ()


class RefusalClosed(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="refusal_done"):
    """`response.refusal.done`."""

    index: int


class CallOpened(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="call"):
    """A call of a function begins: `response.output_item.added`. It is an item of its own, numbered
    on from those before it; `choice` is the message that it belongs to in a chat."""

    index: int
    item: ItemId
    call: str
    name: str
    choice: int = 0


class ArgumentsAdded(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="arguments"):
    """`response.function_call_arguments.delta`."""

    index: int
    text: str


class ArgumentsClosed(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="arguments_done"
):
    """`response.function_call_arguments.done`: they are whole."""

    index: int


class CitationAdded(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="citation"):
    """`response.output_text.annotation.added`: after `at` of its characters the text has something
    from a file."""

    index: int
    at: int
    file: FileId
    filename: str

    @property
    def annotation(self) -> dict[str, Any]:
        """As the API has it."""
        return {
            "type": "file_citation",
            "file_id": self.file,
            "filename": self.filename,
            "index": self.at,
        }


class SearchOpened(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="search"):
    """A search in files begins: `response.output_item.added`. It is an item of its own, before the
    message that it is for."""

    index: int
    item: ItemId


class SearchStage(enum.StrEnum):
    """How far a search is."""

    IN_PROGRESS = "in_progress"
    SEARCHING = "searching"
    COMPLETED = "completed"


class SearchMoved(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="search_moved"):
    """`response.file_search_call.in_progress` and so on. The last one says what was asked and what
    was found, as the API has it."""

    index: int
    stage: SearchStage
    queries: tuple[str, ...] = ()
    results: tuple[dict[str, Any], ...] = ()


class ItemClosed(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="item_done"):
    """`response.output_item.done`. The item is complete, or it isn't and `finish` says why; None
    when the response was cancelled or failed."""

    index: int
    finish: FinishReason | None


class Ended(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="ended"):
    """The last event: `response.completed`, `.incomplete` (also when cancelled) or `.failed`. The
    response it shows is the stored one."""

    status: ResponseStatus


ResponseEvent = (
    Opened
    | Queued
    | Started
    | ItemOpened
    | PartOpened
    | TextAdded
    | TextClosed
    | PartClosed
    | RefusalOpened
    | RefusalAdded
    | RefusalClosed
    | CallOpened
    | ArgumentsAdded
    | ArgumentsClosed
    | CitationAdded
    | SearchOpened
    | SearchMoved
    | ItemClosed
    | Ended
)


class Watcher(Protocol):
    """One reader of a response's events, from the first one."""

    @property
    def response(self) -> Response:
        """As it is now; after Ended was returned, as it ended."""

    @property
    def placed(self) -> TurnPlaced | None:
        """Which model answers, where this server has placed it; known before the first event that
        tells of a text or of an end."""

    @property
    def error(self) -> AntiphonError | None:
        """What a response failed of, where this server saw it fail."""

    async def next_events(self) -> Sequence[ResponseEvent]:
        """The next events, at least one; none at all after Ended. Cancelling the call loses none.

        A refusal before any work (queue full, no engine) is raised, and the response then never
        was. Raises StoreUnavailable.
        """

    def cancel(self, cause: CancelCause) -> None:
        """The reader leaves. When it was the last one, and the response isn't a background one,
        that ends the response. Never blocks, idempotent."""


def encode_events(events: Sequence[ResponseEvent]) -> bytes:
    """A batch for the log."""
    return _ENCODER.encode(events)


def decode_events(body: bytes) -> list[ResponseEvent]:
    """Raises StoreFailed for a batch that is damaged, or was written by a newer program."""
    try:
        return _DECODER.decode(body)
    except msgspec.DecodeError as error:
        raise StoreFailed(f"events can't be read: {error}") from error


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(list[ResponseEvent])

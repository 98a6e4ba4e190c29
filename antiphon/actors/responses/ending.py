"""How the end of a response gets into the store, and how a failure is shown."""

from collections.abc import Mapping
from types import MappingProxyType

from antiphon.actors.responses.log import EventLog
from antiphon.actors.routing.rules import DEFAULT
from antiphon.errors import AntiphonError, RateLimited, RequestError
from antiphon.ids import ItemId, NodeId
from antiphon.narration import ResponseEvent
from antiphon.records import (
    EventBatch,
    FinalState,
    JsonObject,
    Response,
    ResponseError,
    TokenUsage,
    Trace,
)
from antiphon.storage import StoreAccess


async def write_end(
    store: StoreAccess,
    events: EventLog,
    ended: Response,
    last: tuple[ResponseEvent, ...],
    *,
    owner: NodeId,
    trace: Trace | None = None,
    counts: Mapping[ItemId, int] = MappingProxyType({}),
) -> bool:
    """Store a response as ended, with its `last` events; False when it isn't the owner's any more.
    Safe to repeat. Raises StoreUnavailable, StoreFailed."""
    events.close()
    id = ended.id
    if (batch := events.unconfirmed) is not None:
        await store.run(lambda store: store.append_events(owner, [(id, batch)]))
        events.stored(batch)
    final = final_state(ended, owner, events.tail(last), trace, counts)
    return await store.run(lambda store: store.finish_response(final))


def shown(error: AntiphonError) -> ResponseError:
    """What the API says about a failure; what went wrong inside stays inside."""
    if isinstance(error, RateLimited):
        return ResponseError(code="rate_limit_exceeded", message=str(error))
    if isinstance(error, RequestError):
        return ResponseError(code="server_error", message=str(error))
    message = "The server failed while it worked on this response."
    return ResponseError(code="server_error", message=message)


def final_state(
    ended: Response,
    owner: NodeId,
    events: EventBatch | None,
    trace: Trace | None = None,
    counts: Mapping[ItemId, int] = MappingProxyType({}),
) -> FinalState:
    """What the store is told about the end of a response."""
    assert ended.completed_ms is not None
    return FinalState(
        response=ended.id,
        owner=owner,
        status=ended.status,
        completed_ms=ended.completed_ms,
        output=ended.output,
        usage=ended.usage or TokenUsage(),
        error=ended.error,
        incomplete_reason=ended.incomplete_reason,
        model=ended.model,
        request=ended.request if _has_changed(ended.request) else None,
        trace=trace,
        events=events,
        counts=dict(counts),
    )


def _has_changed(request: JsonObject) -> bool:
    """As accepted, every response is of the default tier, nothing was judged, and nobody knew what
    would be shown."""
    is_placed = "judged" in request or "context" in request
    return is_placed or request.get("service_tier", DEFAULT) != DEFAULT

"""By which key a response's system prompt is chosen among several versions: the same for all of a
conversation, however its turns are held together."""

from antiphon.actors.routing.route import conversation_key
from antiphon.events import Message
from antiphon.http.openai.prompting import KEY
from antiphon.http.openai.responses.parse import ParsedInput
from antiphon.ids import ResponseId, UserId
from antiphon.messages import messages_of
from antiphon.records import Item
from antiphon.storage import StoreAccess


async def arm_key(
    store: StoreAccess,
    user: UserId,
    given: ParsedInput,
    items: tuple[Item, ...],
    cache_key: str | None,
) -> str:
    """The conversation's, or that of the response that this one follows; else by what the client
    says begins alike, or by what was said first. Raises StoreError, InvalidRequest for an item that
    no model can read."""
    if given.conversation is not None:
        return conversation_key(user, given.conversation, ())
    if given.previous is not None:
        return await _of_chain(store, user, given.previous)
    return conversation_key(user, cache_key or "", _first_said(items))


async def _of_chain(store: StoreAccess, user: UserId, previous: ResponseId) -> str:
    """Each response keeps the key of the one before it. One that had no choice has none: what
    follows it is a conversation that begins with it."""
    found = await store.run(lambda store: store.response(user, previous))
    kept = None if found is None else found.request.get(KEY)
    return str(kept) if kept else conversation_key(user, previous, ())


def _first_said(items: tuple[Item, ...]) -> tuple[Message, ...]:
    said = (item for item in items if item.type == "message" and item.role == "user")
    first = next(said, None)
    return () if first is None else messages_of((first,))

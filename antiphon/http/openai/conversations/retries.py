"""The same request sent again: items that a client puts into a conversation are there once.

With an `Idempotency-Key` ids follow from it, so that what is there already is recognised by its
id. Without one, an SDK says when it sends something again, and the conversation's end shows whether
the first try had succeeded.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from quart import request

from antiphon.errors import IdempotencyMismatch, InvalidRequest
from antiphon.ids import ConversationId, ItemId, UserId
from antiphon.records import Conversation, Item, Page
from antiphon.storage import StoreAccess

_MAX_KEY = 255
_RECENT_MS = 600_000
"""SDKs give up after two tries of ten minutes at most; later, the same words are said again."""


def idempotency_key() -> str | None:
    """Raises InvalidRequest."""
    key = request.headers.get("idempotency-key") or None
    if key is not None and len(key) > _MAX_KEY:
        raise InvalidRequest(f"The idempotency key is longer than {_MAX_KEY} characters.")
    return key


def keyed(conversation: Conversation, key: str | None) -> Conversation:
    """The same conversation for the same key."""
    if key is None:
        return conversation
    digest = _digest(conversation.user, "conversation", key)
    return replace(conversation, id=ConversationId(f"conv_{digest}"))


def keyed_items(
    items: Sequence[Item], user: UserId, conversation: ConversationId, key: str | None
) -> tuple[Item, ...]:
    """The same items for the same key."""
    if key is None:
        return tuple(items)
    return tuple(
        replace(
            item,
            id=ItemId(
                f"{item.id.partition('_')[0]}_{_digest(user, conversation, key, str(index))}"
            ),
        )
        for index, item in enumerate(items)
    )


async def added_before(
    store: StoreAccess,
    user: UserId,
    conversation: ConversationId,
    items: Sequence[Item],
    key: str | None,
) -> tuple[Item, ...] | None:
    """The items as an earlier try of this request had added them, if one had. Raises
    IdempotencyMismatch, StoreError."""
    if key is not None:
        first = await store.run(lambda store: store.item(user, conversation, items[0].id))
        if first is None:
            return None
        # The key's others follow the first one, and nothing was ever put between.
        page = Page(limit=len(items), after=first.id, newest_first=False)
        found = await store.run(lambda store: store.items(user, conversation, page))
        earlier = (first, *(found or ()))[: len(items)]
        if [item.body for item in earlier] != [item.body for item in items]:
            raise IdempotencyMismatch(key)
        return earlier
    if not _is_retry():
        return None
    found = await store.run(lambda store: store.items(user, conversation, Page(limit=len(items))))
    earlier = tuple(reversed(found or ()))
    is_same = [item.body for item in earlier] == [item.body for item in items]
    is_recent = all(
        new.created_ms - _RECENT_MS < old.created_ms
        for old, new in zip(earlier, items, strict=False)
    )
    return earlier if is_same and is_recent else None


def _is_retry() -> bool:
    """Stainless SDKs count from 0."""
    return request.headers.get("x-stainless-retry-count", "0") not in {"", "0"}


def keyed_id(prefix: str, *words: str) -> str:
    """The same id for the same words, of which the first should be the user and the last the
    key."""
    return f"{prefix}{_digest(*words)}"


def _digest(*words: str) -> str:
    return hashlib.sha256("\x00".join(words).encode()).hexdigest()[:32]

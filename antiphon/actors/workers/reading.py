"""What a worker reads of a conversation. Each call is a unit of work of its own: it may take its
time, and holds nothing up."""

from functools import partial

from antiphon.errors import UnknownCursor
from antiphon.ids import ConversationId, ItemId, ModelName, UserId
from antiphon.records import Item, Page, ResponseKind, User
from antiphon.storage import Store, StoreAccess

_PAGE = 500
_MOST = 10_000
"""Items; a turn in a longer conversation is refused."""


class ConversationReader:
    """Of one conversation of one user."""

    def __init__(self, store: StoreAccess, user: UserId, id: ConversationId) -> None:
        self._store = store
        self._user = user
        self._id = id

    async def user(self) -> User | None:
        return await self._store.run(lambda store: store.user(self._user))

    async def first(self, count: int) -> tuple[Item, ...]:
        return await self._page(Page(limit=count, newest_first=False))

    async def last(self) -> Item | None:
        return next(iter(await self._page(Page(limit=1))), None)

    async def after(self, item: ItemId | None) -> tuple[Item, ...]:
        """All that follow it, or all there are where it isn't there."""
        items: list[Item] = []
        while len(items) < _MOST:
            try:
                page = await self._page(Page(limit=_PAGE, after=item, newest_first=False))
            except UnknownCursor:
                if items:
                    break  # the last one was deleted meanwhile
                item = None
                continue
            items += page
            if len(page) < _PAGE:
                break
            item = page[-1].id
        return tuple(items)

    async def model(self) -> ModelName | None:
        """Which has answered last in it."""
        page, kind = Page(limit=1), ResponseKind.RESPONSE
        found = await self._store.run(
            lambda store: store.responses(self._user, page, kind=kind, conversation=self._id)
        )
        return found[0].model if found else None

    async def _page(self, page: Page) -> tuple[Item, ...]:
        return await self._store.run(partial(_items, self._user, self._id, page)) or ()


async def _items(
    user: UserId, id: ConversationId, page: Page, store: Store
) -> tuple[Item, ...] | None:
    return await store.items(user, id, page)

"""Reading conversations for the routes: what isn't the caller's is not found."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from antiphon.errors import RecordNotFound
from antiphon.http.openai.body import checked_id
from antiphon.http.openai.conversations.items import file_references
from antiphon.http.openai.files.images import first_image
from antiphon.http.openai.files.inline import MessageFiles
from antiphon.http.openai.refusals import unsupported_value
from antiphon.ids import ConversationId, FileId, ItemId, UserId, new_item_id
from antiphon.messages import IMAGE, WITHHELD
from antiphon.records import Conversation, File, Item, Page
from antiphon.storage import Store, StoreAccess

ITEMS_AT_ONCE = 200
"""A long conversation is read in pages, so that neither memory nor the store's time is its own."""


async def find_conversation(store: StoreAccess, user: UserId, text: str) -> Conversation:
    """Raises RecordNotFound, StoreError."""
    id_ = ConversationId(checked_id("conversation", text, "conversation_id"))
    found = await store.run(lambda store: store.conversation(user, id_))
    if found is None:
        raise RecordNotFound("conversation", text, "conversation_id")
    return found


async def find_item(
    store: StoreAccess, user: UserId, conversation: ConversationId, text: str, param: str
) -> Item:
    """Raises RecordNotFound, StoreError."""
    id_ = ItemId(checked_id("item", text, param))
    found = await store.run(lambda store: store.item(user, conversation, id_))
    if found is None:
        raise RecordNotFound("item", text, param)
    return found


async def items_after(
    store: StoreAccess, user: UserId, conversation: ConversationId, after: ItemId | None
) -> tuple[Item, ...]:
    """The next items, oldest first; none at the end. Raises RecordNotFound when the conversation
    is deleted meanwhile, UnknownCursor when the item is, StoreError."""
    page = Page(limit=ITEMS_AT_ONCE, after=after, newest_first=False)
    found = await store.run(lambda store: store.items(user, conversation, page))
    if found is None:
        raise RecordNotFound("conversation", conversation, "conversation_id")
    return found


async def copied_items(
    store: StoreAccess, user: UserId, conversation: ConversationId, last: str | None
) -> list[Item]:
    """Copies, under ids of their own, of all items up to `last`. Raises as `items_after`, and
    RecordNotFound when `last` isn't among them."""
    if last is not None:  # before anything is copied
        await find_item(store, user, conversation, last, "after_item")
    copies: list[Item] = []
    renamed: dict[str, str] = {}
    after: ItemId | None = None
    while page := await items_after(store, user, conversation, after):
        for item in page:
            prefix = item.id.partition("_")[0]
            copies.append(replace(item, id=new_item_id(f"{prefix}_")))
            renamed[item.id] = copies[-1].id
            if item.id == last:
                return _still_withheld(copies, renamed)
        after = page[-1].id
    if last is not None:
        raise RecordNotFound("item", last, "after_item")
    return _still_withheld(copies, renamed)


def _still_withheld(copies: list[Item], renamed: dict[str, str]) -> list[Item]:
    """A refusal names what it was for: in the copy, the copy of that."""
    return [
        replace(item, body=item.body | {WITHHELD: [renamed[id] for id in ids if id in renamed]})
        if (ids := item.body.get(WITHHELD))
        else item
        for item in copies
    ]


async def with_images(
    files: MessageFiles | None, user: UserId, items: Sequence[Item]
) -> tuple[Item, ...]:
    """The items, whose images are some, and are kept. Raises InvalidRequest, RecordNotFound,
    StoreError."""
    if files is not None:
        return await files.with_images(user, items)
    if first_image(items, "items") is not None:
        raise unsupported_value("items", IMAGE, "'input_text'")
    return tuple(items)


async def check_files(store: StoreAccess, user: UserId, items: Sequence[Item]) -> None:
    """Raises RecordNotFound for a file that isn't the caller's, StoreError."""
    for file, param in file_references(tuple(items)):
        checked_id("file", file, param)
        if await store.run(partial(_file, user, file)) is None:
            raise RecordNotFound("file", file, param)


async def _file(user: UserId, file: FileId, store: Store) -> File | None:
    return await store.file(user, file)

"""Conversations and their items, on both databases."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.errors import InvalidRequest, StoreFailed, UnknownCursor
from antiphon.ids import new_conversation_id, new_item_id, new_user_id
from antiphon.persistence.bridge import open_store
from antiphon.persistence.store import SqlStore
from antiphon.records import Conversation, Page
from antiphon.testing.specimens import Writer, an_item, text_of


async def test_a_conversation_comes_back_as_it_was(store: SqlStore, writer: Writer):
    record = Conversation(
        id=new_conversation_id(),
        user=writer.user,
        created_ms=1,
        updated_ms=2,
        title="Straße ☃",
        metadata={"a": 'quote " and \\', "ü": ""},
        archived_ms=3,
    )
    items = [an_item(), an_item("x", role="assistant", tokens=7, status=None)]

    await store.create_conversation(record, items)

    assert await store.conversation(writer.user, record.id) == record
    assert await store.items(writer.user, record.id, Page(newest_first=False)) == tuple(items)
    assert await store.item(writer.user, record.id, items[1].id) == items[1]
    assert await store.item(writer.user, record.id, new_item_id()) is None
    with pytest.raises(StoreFailed):
        await store.create_conversation(record)


async def test_an_update_replaces_what_may_change(store: SqlStore, writer: Writer):
    id = await writer.conversation(title="old")
    old = await store.conversation(writer.user, id)
    assert old is not None
    new = replace(old, title="new", metadata={"k": "v"}, archived_ms=9, updated_ms=8)

    assert await store.update_conversation(new) == new

    assert await store.conversation(writer.user, id) == new
    assert await store.conversations(writer.user, Page(), search="old", archived=True) == ()
    assert await store.update_conversation(replace(new, id=new_conversation_id())) is None


async def test_the_list_is_by_last_change_without_the_archived(store: SqlStore, writer: Writer):
    ids = [await writer.conversation(title=f"{n}") for n in range(4)]
    archived = await writer.conversation(title="9", archived_ms=1)
    await writer.answered("Hi", "Ho", conversation=ids[1])

    async def listed(page: Page, **fields: bool) -> list[str]:
        found = await store.conversations(writer.user, page, **fields)
        return [conversation.id for conversation in found]

    assert await listed(Page()) == [ids[1], ids[3], ids[2], ids[0]]
    assert await listed(Page(newest_first=False)) == [ids[0], ids[2], ids[3], ids[1]]
    assert await listed(Page(limit=2, after=ids[3])) == [ids[2], ids[0]]
    assert await listed(Page(), archived=True) == [archived]
    assert await listed(Page(limit=0)) == []
    with pytest.raises(UnknownCursor):
        await listed(Page(after=new_conversation_id()))


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("recipe", {"Recipes for Čevapi", "RECIPE"}),
        ("ČEVAPI", {"Recipes for Čevapi"}),
        ("strasse", {"Große Straße"}),
        ("100%", {"100% sure_"}),
        ("%", {"100% sure_"}),
        ("e_", {"100% sure_"}),
        ("\\", {"back\\slash"}),
        ("", {"Recipes for Čevapi", "RECIPE", "Große Straße", "100% sure_", "back\\slash", None}),
    ],
)
async def test_a_search_finds_part_of_a_title_in_any_case(
    store: SqlStore, writer: Writer, search: str, found: set[str | None]
):
    for title in (
        "Recipes for Čevapi",
        "RECIPE",
        "Große Straße",
        "100% sure_",
        "back\\slash",
        None,
    ):
        await writer.conversation(title=title)

    listed = await store.conversations(writer.user, Page(limit=100), search=search)

    assert {conversation.title for conversation in listed} == found


@given(data=st.data())
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_pages_are_slices_of_the_list(url: str, tmp_path: Path, data: st.DataObject):
    times = data.draw(st.lists(st.integers(0, 3), max_size=8))
    newest_first = data.draw(st.booleans())
    limit = data.draw(st.integers(1, 4))
    async with open_store(url=url, data_dir=tmp_path) as store:
        writer = await Writer.new(store)
        for time in times:
            await writer.conversation(updated_ms=time)
        whole = await store.conversations(writer.user, Page(limit=99, newest_first=newest_first))

        pages, after = [], None
        while page := await store.conversations(
            writer.user, Page(limit=limit, after=after, newest_first=newest_first)
        ):
            pages += page
            after = page[-1].id

    assert tuple(pages) == whole
    assert len(whole) == len(times)
    ordered = [conversation.updated_ms for conversation in whole]
    assert ordered == sorted(times, reverse=newest_first)


async def test_pages_of_items_are_slices_of_the_conversation(store: SqlStore, writer: Writer):
    items = [an_item(str(n)) for n in range(7)]
    id = await writer.conversation(*items[:5])
    assert await store.add_items(writer.user, id, items[5:], writer.tick())

    async def texts(**page: object) -> str:
        found = await store.items(writer.user, id, Page(**page))
        assert found is not None
        return "".join(map(text_of, found))

    assert await texts() == "6543210"
    assert await texts(limit=3, newest_first=False) == "012"
    assert await texts(limit=3, after=items[2].id, newest_first=False) == "345"
    assert await texts(limit=3, after=items[2].id) == "10"
    with pytest.raises(UnknownCursor):
        await texts(after=new_item_id())


async def test_added_items_are_the_latest_change(store: SqlStore, writer: Writer):
    id = await writer.conversation()

    assert await store.add_items(writer.user, id, [an_item()], 9_000_000)

    record = await store.conversation(writer.user, id)
    assert record is not None
    assert record.updated_ms == 9_000_000
    assert not await store.add_items(writer.user, new_conversation_id(), [an_item()], 1)
    assert not await store.add_items(new_user_id(), id, [an_item()], 1)


async def test_two_who_append_at_once_both_do(store: SqlStore, writer: Writer):
    id = await writer.conversation()

    async def append(n: int) -> None:
        assert await store.add_items(writer.user, id, [an_item(f"{n}a"), an_item(f"{n}b")], n)

    async with trio.open_nursery() as nursery:
        for n in range(8):
            nursery.start_soon(append, n)

    found = await store.items(writer.user, id, Page(limit=99, newest_first=False))
    assert found is not None
    texts = list(map(text_of, found))
    assert sorted(texts) == sorted(f"{n}{letter}" for n in range(8) for letter in "ab")
    assert all(one[0] == two[0] for one, two in zip(texts[::2], texts[1::2], strict=True))


async def test_text_with_a_nul_byte_survives_and_titles_show_that_there_was_one(
    store: SqlStore, writer: Writer
):
    id = await writer.conversation(an_item("a\0b"), title="a\0b", metadata={"k\0": "v\0"})

    record = await store.conversation(writer.user, id)
    assert record is not None
    assert (record.title, record.metadata) == ("a\ufffdb", {"k\0": "v\0"})
    found = await store.items(writer.user, id, Page())
    assert found is not None
    assert text_of(found[0]) == "a\0b"
    assert len(await store.conversations(writer.user, Page(), search="a\0b")) == 1


async def test_lone_surrogates_are_refused_by_name(store: SqlStore, writer: Writer):
    with pytest.raises(InvalidRequest):
        await writer.conversation(title="half \ud83d")
    with pytest.raises(InvalidRequest):
        await writer.conversation(an_item("half \ud83d"))
    with pytest.raises(InvalidRequest):
        await store.accept_turn(writer.turn("half \ud83d"))
    with pytest.raises(InvalidRequest):
        await store.conversations(writer.user, Page(), search="\udc00")

    assert await store.conversations(writer.user, Page()) == ()
    assert await store.usage(writer.user) == ()


async def test_an_item_of_ten_megabytes_and_one_of_many_letters_come_back(
    store: SqlStore, writer: Writer
):
    large = "Ä" * 5_000_000
    id = await writer.conversation(an_item(large))

    (item,) = (await store.context(writer.user, conversation=id)).context

    assert text_of(item) == large


async def test_a_conversation_of_five_thousand_items_is_opened_and_continued(
    store: SqlStore, writer: Writer
):
    id = await writer.conversation(*(an_item(str(n)) for n in range(5_000)))

    seen = await writer.accept(writer.turn("and now?", conversation=id))
    page = await store.items(writer.user, id, Page(limit=2))

    assert seen == tuple(map(str, range(5_000)))
    assert page is not None
    assert list(map(text_of, page)) == ["and now?", "4999"]


async def test_items_are_found_by_their_ids_wherever_they_lie(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    inside = await writer.answered("Hi", "Ho", conversation=conversation)
    outside = await writer.answered("Yes?", "No")
    found = [await store.response(writer.user, id) for id in (inside, outside)]
    items = [item for each in found if each is not None for item in each.output]
    ids = [item.id for item in items]
    stranger = await Writer.new(store)

    assert sorted(await store.find_items(writer.user, [*ids, new_item_id()]), key=str) == sorted(
        items, key=str
    )
    assert await store.find_items(stranger.user, ids) == ()
    assert await store.find_items(writer.user, []) == ()

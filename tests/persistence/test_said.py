"""Searching in what was said, on both databases."""

from dataclasses import replace

import pytest

from antiphon.errors import InvalidRequest, UnknownCursor
from antiphon.finding import FoundPage
from antiphon.ids import new_conversation_id
from antiphon.messages import WITHHELD
from antiphon.persistence import said
from antiphon.persistence.store import SqlStore
from antiphon.records import Item
from antiphon.testing.specimens import Writer, an_item


def refusal(*withheld: Item) -> Item:
    body = {
        "content": [{"type": "refusal", "refusal": "No."}],
        WITHHELD: [item.id for item in withheld],
    }
    return an_item(role="assistant", body=body)


def ids(page: FoundPage) -> list[str]:
    return [each.conversation.id for each in page.found]


async def test_a_message_is_found_with_what_stands_around_it(store: SqlStore, writer: Writer):
    before, after = "once upon a time " * 20, " and so on" * 40
    asked = an_item("Where is it?")
    told = an_item(f"{before}there was\n a Lighthouse{after}", role="assistant")
    id = await writer.conversation(asked, told, title="Stories")

    (found,) = (await store.find_said(writer.user, "lighthouse")).found

    assert found.conversation == await store.conversation(writer.user, id)
    assert found.message is not None
    assert (found.message.item, found.message.role) == (told.id, "assistant")
    excerpt = found.message.excerpt
    assert excerpt.startswith("…once upon a time once upon a time there was a Lighthouse and so on")
    assert excerpt.endswith("and so on and so…")
    assert len(excerpt) < 170


async def test_a_title_is_found_without_a_message(store: SqlStore, writer: Writer):
    id = await writer.conversation(an_item("about ducks"), title="All about ducks")

    (found,) = (await store.find_said(writer.user, "DUCKS about")).found

    assert found.conversation.id == id
    assert found.message is None


async def test_of_several_messages_the_newest_is_shown(store: SqlStore, writer: Writer):
    items = [an_item("duck one"), an_item("duck two", role="assistant"), an_item("goose")]
    await writer.conversation(*items)

    (found,) = (await store.find_said(writer.user, "duck")).found

    assert found.message is not None
    assert found.message.excerpt == "duck two"


SAID = (
    "Recipes for Čevapi",
    "plain RECIPE",
    "Große Straße",
    "STRASSE in letters",
    "100% sure_",
    "1000 sure",
    "back\\slash",
    'a "quoted" word',
    "two\nlines",
    "лодка у реки",
    "京都の天気",
    "İstanbul",
)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("recipe", {"Recipes for Čevapi", "plain RECIPE"}),
        ("ČEVAPI", {"Recipes for Čevapi"}),
        ("for recipes", {"Recipes for Čevapi"}),
        ("recipe straße", set()),
        ("strasse", {"Große Straße", "STRASSE in letters"}),
        ("straße", {"Große Straße", "STRASSE in letters"}),
        ("ЛОДКА", {"лодка у реки"}),
        ("の天", {"京都の天気"}),
        ("i̇stanbul", {"İstanbul"}),
        ("100%", {"100% sure_"}),
        ("%", {"100% sure_"}),
        ("e_", {"100% sure_"}),
        ("\\", {"back\\slash"}),
        ('"quoted"', {'a "quoted" word'}),
        ("two lines", {"two\nlines"}),
        # What a body has besides its text.
        ("input_text", set()),
        ("content", set()),
        ("  ", set()),
        ("", set()),
    ],
)
async def test_all_words_are_found_in_any_case_and_taken_as_they_are(
    store: SqlStore, writer: Writer, query: str, found: set[str]
):
    conversations = {await writer.conversation(an_item(text)): text for text in SAID}

    page = await store.find_said(writer.user, query)

    assert {conversations[each.conversation.id] for each in page.found} == found
    assert not page.has_more


async def test_the_archive_is_searched_too_in_the_order_of_the_last_change(
    store: SqlStore, writer: Writer
):
    made = [
        await writer.conversation(an_item("a duck"), archived_ms=7 if n % 2 else None)
        for n in range(4)
    ]

    page = await store.find_said(writer.user, "duck")

    assert ids(page) == made[::-1]
    assert [each.conversation.archived_ms for each in page.found] == [7, None, 7, None]


async def test_nobody_finds_what_others_said(store: SqlStore, writer: Writer):
    await writer.conversation(an_item("a duck"), title="duck")
    stranger = await Writer.new(store)

    assert await store.find_said(stranger.user, "duck") == FoundPage()


async def test_what_was_deleted_is_not_found(store: SqlStore, writer: Writer):
    gone = await writer.conversation(an_item("a duck"))
    item = an_item("a duck")
    kept = await writer.conversation(item, an_item("a goose"))
    await store.delete_conversation(writer.user, gone, writer.tick())
    assert ids(await store.find_said(writer.user, "duck")) == [kept]

    await store.delete_item(writer.user, kept, item.id, writer.tick())

    assert ids(await store.find_said(writer.user, "duck")) == []
    assert ids(await store.find_said(writer.user, "goose")) == [kept]


async def test_what_the_policy_has_blocked_is_not_found(store: SqlStore, writer: Writer):
    fine, blocked = an_item("a duck"), an_item("a forbidden duck")
    id = await writer.conversation(fine, an_item("yes"), blocked, refusal(blocked))
    await writer.conversation(blocked_alone := an_item("forbidden"), refusal(blocked_alone))

    (found,) = (await store.find_said(writer.user, "duck")).found

    assert found.conversation.id == id
    assert found.message is not None
    assert found.message.item == fine.id
    assert (await store.find_said(writer.user, "forbidden")).found == ()


async def test_only_what_people_and_models_said_is_looked_at(store: SqlStore, writer: Writer):
    await writer.conversation(
        an_item("a duck", role="system"),
        an_item("a duck", role="developer"),
        an_item(type="function_call", role=None, body={"arguments": "a duck"}),
        an_item(type="message", body={"content": [{"type": "input_file", "filename": "duck"}]}),
    )
    plain = await writer.conversation(an_item(body={"content": "a duck"}))

    assert ids(await store.find_said(writer.user, "duck")) == [plain]


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_pages_are_slices_of_what_is_found(store: SqlStore, writer: Writer, limit: int):
    for text in ("duck", "goose", "duck", "duck", "goose"):
        await writer.conversation(an_item(text), title="drake" if text == "goose" else None)
    whole = (await store.find_said(writer.user, "d")).found

    pages, after = [], None
    while True:
        page = await store.find_said(writer.user, "d", after=after, limit=limit)
        pages += page.found
        assert len(page.found) <= limit
        if not page.has_more:
            break
        after = page.last

    assert tuple(pages) == whole
    assert len(whole) == 5
    with pytest.raises(UnknownCursor):
        await store.find_said(writer.user, "d", after=new_conversation_id())


async def test_a_search_looks_at_so_many_items_and_says_where_it_has_stopped(
    store: SqlStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(said, "MOST_ITEMS", 6)
    monkeypatch.setattr(said, "_ITEMS_AT_ONCE", 2)
    monkeypatch.setattr(said, "_POSITIONS", 1)
    monkeypatch.setattr(said, "_CONVERSATIONS_AT_ONCE", 3)
    oldest = await writer.conversation(an_item("a duck"))
    others = [await writer.conversation(an_item("a goose"), an_item()) for _ in range(4)]

    first = await store.find_said(writer.user, "duck")
    then = await store.find_said(writer.user, "duck", after=first.last)

    assert (first.found, first.last, first.has_more) == ((), others[1], True)
    assert ids(then) == [oldest]
    assert not then.has_more


async def test_a_search_ends_when_its_time_is_over(
    store: SqlStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(said, "MOST_S", 0.0)
    monkeypatch.setattr(said, "_ITEMS_AT_ONCE", 1)
    monkeypatch.setattr(said, "_POSITIONS", 1)
    made = [await writer.conversation(an_item("a duck")) for _ in range(2)]

    page = await store.find_said(writer.user, "duck")

    assert (ids(page), page.last, page.has_more) == ([made[1]], made[1], True)


async def test_of_a_long_conversation_the_newest_items_are_looked_at(
    store: SqlStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(said, "MOST_OF_ONE", 5)
    monkeypatch.setattr(said, "_ITEMS_AT_ONCE", 2)
    monkeypatch.setattr(said, "_POSITIONS", 1)
    items = [an_item(f"number{n}") for n in range(9)]
    id = await writer.conversation(*items, refusal(items[7], items[5]))

    async def finds(text: str) -> bool:
        return ids(await store.find_said(writer.user, text)) == [id]

    assert [n for n in range(9) if await finds(f"number{n}")] == [6, 8]


async def test_the_first_of_many_turns_is_found(store: SqlStore, writer: Writer):
    """Each turn leaves room for its answer between positions."""
    id = await writer.conversation()
    await writer.answered("a duck", "a drake", conversation=id)
    for n in range(12):
        await writer.answered(f"{n}", "goose", conversation=id)

    assert ids(await store.find_said(writer.user, "DUCK")) == [id]
    assert ids(await store.find_said(writer.user, "drake")) == [id]


async def test_half_a_character_is_refused_by_name(store: SqlStore, writer: Writer):
    await writer.conversation(an_item("a duck"))

    with pytest.raises(InvalidRequest):
        await store.find_said(writer.user, "\udc00")


async def test_a_title_that_was_made_is_known_from_one_that_was_written(
    store: SqlStore, writer: Writer
):
    id = await writer.conversation(an_item("a duck"))
    await store.give_title(writer.user, id, "Ducks")

    made = await store.conversation(writer.user, id)
    assert made is not None
    assert made.title_made
    copy = replace(made, id=new_conversation_id())
    await store.create_conversation(copy)
    assert await store.conversation(writer.user, copy.id) == copy
    written = await store.update_conversation(replace(made, title="My ducks"))
    assert written is not None
    assert not written.title_made

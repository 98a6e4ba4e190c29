"""What background workers have to do: marked, taken by one, finished; on both databases."""

from dataclasses import replace
from functools import partial

import pytest
import trio

from antiphon.ids import NodeId, new_conversation_id, new_item_id, new_node_id
from antiphon.persistence.leases import ORPHAN_LEASE_MS
from antiphon.persistence.store import SqlStore
from antiphon.records import Page, PendingWork, ResponseStatus
from antiphon.testing.specimens import LEASE_MS, Writer, an_item

ME, OTHER = new_node_id(), new_node_id()


async def taken(
    writer: Writer, owner: NodeId = ME, *, lease_ms: int = 0, limit: int = 8
) -> tuple[PendingWork, ...]:
    now = writer.tick()
    until = now + (lease_ms or LEASE_MS)
    return await writer.store.take_work(owner, now, lease_ms=until, limit=limit)


async def test_a_turn_that_ends_in_a_conversation_marks_it(store: SqlStore, writer: Writer):
    quiet = await writer.conversation(an_item())
    spoken = await writer.conversation()
    await writer.answered("alone", "nothing to do")
    await writer.answered("Hi", "Ho", conversation=spoken)
    running = writer.turn("Hi", conversation=quiet)
    await writer.accept(running)

    (work,) = await taken(writer)

    assert work == PendingWork(
        conversation=await _found(store, writer, spoken),
        mark=1,
        attempts=0,
        summary=None,
        remembered=None,
    )


async def _found(store: SqlStore, writer: Writer, id):
    found = await store.conversation(writer.user, id)
    assert found is not None
    return found


@pytest.mark.parametrize("status", [ResponseStatus.FAILED, ResponseStatus.CANCELLED])
async def test_whatever_its_end_is_it_marks(
    store: SqlStore, writer: Writer, status: ResponseStatus
):
    turn = writer.turn("Hi", conversation=await writer.conversation())
    await writer.accept(turn)
    final = writer.final(turn.response.id, status=status)

    assert await store.finish_response(final)
    assert await store.finish_response(final)

    (work,) = await taken(writer)
    assert work.mark == 1


async def test_a_reaped_turn_marks_too(store: SqlStore, writer: Writer):
    turn = writer.turn("Hi", conversation=await writer.conversation())
    await writer.accept(turn)
    writer.now_ms = turn.lease_ms + ORPHAN_LEASE_MS
    await store.orphans(writer.now_ms, owner=OTHER)

    final = writer.final(turn.response.id, owner=OTHER, status=ResponseStatus.FAILED)
    assert await store.finish_response(final)

    assert len(await taken(writer)) == 1


async def test_the_oldest_mark_comes_first_and_only_so_many(writer: Writer):
    ids = [await writer.conversation() for _ in range(4)]
    for id in (2, 0, 3, 1, 2):
        await writer.answered("Hi", "Ho", conversation=ids[id])

    first = await taken(writer, limit=3)
    rest = await taken(writer, limit=3)

    assert [work.conversation.id for work in first] == [ids[2], ids[0], ids[3]]
    assert [work.mark for work in first] == [2, 1, 1]
    assert [work.conversation.id for work in rest] == [ids[1]]
    assert await taken(writer) == ()


async def test_what_is_held_is_offered_again_only_when_the_lease_has_passed(
    store: SqlStore, writer: Writer
):
    await writer.answered("Hi", "Ho", conversation=await writer.conversation())
    (work,) = await taken(writer)

    assert await taken(writer, OTHER) == ()
    writer.now_ms += LEASE_MS
    assert await taken(writer, OTHER) == (work,)

    assert not await store.finish_work(work, ME)
    assert await store.finish_work(work, OTHER)
    assert not await store.finish_work(work, OTHER)
    assert await taken(writer) == ()


async def test_who_holds_it_may_hold_it_longer(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    await writer.answered("Hi", "Ho", conversation=conversation)
    (work,) = await taken(writer)

    assert await store.renew_work(work, ME, lease_ms=writer.now_ms + 3 * LEASE_MS)
    assert not await store.renew_work(work, OTHER, lease_ms=0)

    writer.now_ms += 2 * LEASE_MS
    assert await taken(writer, OTHER) == ()
    writer.now_ms += LEASE_MS
    assert await taken(writer, OTHER) == (work,)
    assert not await store.renew_work(work, ME, lease_ms=0)
    await store.delete_conversation(writer.user, conversation, writer.tick())
    assert not await store.renew_work(work, OTHER, lease_ms=0)


async def test_turns_that_end_meanwhile_are_work_again_after_all_others(
    store: SqlStore, writer: Writer
):
    busy, other = await writer.conversation(), await writer.conversation()
    await writer.answered("1", "one", conversation=busy)
    (work,) = await taken(writer)
    await writer.answered("x", "y", conversation=other)
    await writer.answered("2", "two", conversation=busy)

    assert await store.finish_work(work, ME)

    first, again = await taken(writer)
    assert first.conversation.id == other
    assert (again.conversation.id, again.mark, again.attempts) == (busy, 2, 0)
    assert await store.finish_work(again, ME)
    assert await taken(writer) == ()


async def test_what_failed_waits_for_its_time_and_counts(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    await writer.answered("Hi", "Ho", conversation=conversation)
    for attempts in range(3):
        (work,) = await taken(writer)
        assert work.attempts == attempts
        assert await store.finish_work(work, ME, again_ms=writer.now_ms + 1_000)
        assert await taken(writer) == ()
        if attempts == 0:  # a turn in the meantime doesn't shorten the wait
            await writer.answered("Hi", "Ho", conversation=conversation)
            assert await taken(writer) == ()
        writer.now_ms += 1_000

    (work,) = await taken(writer)
    assert await store.finish_work(work, ME)
    await writer.answered("Hi", "Ho", conversation=conversation)
    (work,) = await taken(writer)
    assert (work.attempts, work.mark) == (0, 3)


async def test_what_was_looked_at_is_known_the_next_time(store: SqlStore, writer: Writer):
    conversation = await writer.conversation(*(an_item(str(n)) for n in range(3)))

    async def next_time() -> PendingWork:
        await writer.answered("Hi", "Ho", conversation=conversation)
        (work,) = await taken(writer)
        return work

    items = await store.items(writer.user, conversation, Page(newest_first=False))
    assert items is not None
    assert await store.finish_work(await next_time(), ME, remembered=items[1].id)
    assert await store.finish_work(await next_time(), ME)
    assert await store.finish_work(await next_time(), ME, remembered=new_item_id())
    work = await next_time()
    assert work.remembered == items[1].id
    assert await store.finish_work(work, ME)

    # The one before it stands for it when it is gone.
    await store.delete_item(writer.user, conversation, items[1].id, writer.tick())
    work = await next_time()
    assert work.remembered == items[0].id
    assert await store.finish_work(work, ME)
    await store.delete_item(writer.user, conversation, items[0].id, writer.tick())
    assert (await next_time()).remembered is None


async def test_the_work_comes_with_the_summary(writer: Writer):
    conversation = await writer.conversation(an_item(), title="Hello", memory=True)
    summary = await writer.summarised(conversation, 1)
    await writer.answered("Hi", "Ho", conversation=conversation)

    (work,) = await taken(writer)

    assert work.summary == summary
    assert (work.conversation.title, work.conversation.memory) == ("Hello", True)


async def test_work_goes_with_its_conversation(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    await writer.answered("Hi", "Ho", conversation=conversation)
    (work,) = await taken(writer)

    receipt = await store.delete_conversation(writer.user, conversation, writer.tick())

    assert receipt is not None
    assert receipt.rows["context_work"] == 1
    assert not await store.finish_work(work, ME, again_ms=0)


async def test_of_two_servers_each_takes_other_work(
    store: SqlStore, other: SqlStore, writer: Writer
):
    conversations = {await writer.conversation() for _ in range(24)}
    for id in conversations:
        await writer.answered("Hi", "Ho", conversation=id)
    found: list[str] = []

    async def take(server: SqlStore, owner: NodeId) -> None:
        now = writer.tick()
        work = await server.take_work(owner, now, lease_ms=now + LEASE_MS, limit=5)
        found.extend(each.conversation.id for each in work)

    for _ in range(5):
        async with trio.open_nursery() as nursery:
            for server, owner in ((store, ME), (other, OTHER), (store, OTHER), (other, ME)):
                nursery.start_soon(take, server, owner)

    assert len(found) == len(set(found))
    assert set(found) == conversations


async def test_a_title_is_given_where_there_is_none(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    before = await _found(store, writer, conversation)
    stranger = await Writer.new(store)

    assert not await store.give_title(stranger.user, conversation, "Theirs")
    assert not await store.give_title(writer.user, new_conversation_id(), "Nobody's")
    assert await store.give_title(writer.user, conversation, "Straße")
    assert not await store.give_title(writer.user, conversation, "Another")

    after = await _found(store, writer, conversation)
    assert (after.title, after.updated_ms) == ("Straße", before.updated_ms)
    assert await store.conversations(writer.user, Page(), search="STRASSE") == (after,)


async def test_a_title_that_was_made_of_what_was_said_goes_with_it(store: SqlStore, writer: Writer):
    made, own = [await writer.conversation(*(an_item() for _ in range(3))) for _ in range(2)]
    assert await store.give_title(writer.user, made, "About a secret")
    written = await store.conversation(writer.user, own)
    assert written is not None
    await store.update_conversation(replace(written, title="Mine"))
    kept = await store.conversation(writer.user, made)
    assert kept is not None
    await store.update_conversation(replace(kept, metadata={"a": "b"}))

    for conversation in (made, own):
        page = await store.items(writer.user, conversation, Page())
        assert page
        await store.delete_item(writer.user, conversation, page[0].id, writer.tick())

    titles = [await store.conversation(writer.user, each) for each in (made, own)]
    assert [each and each.title for each in titles] == [None, "Mine"]
    (work,) = await taken(writer)
    assert work.conversation.id == made


async def test_no_title_is_given_of_an_item_that_has_gone_meanwhile(
    store: SqlStore, other: SqlStore, writer: Writer
):
    for n in range(8):
        items = [an_item(str(number)) for number in range(3)]
        conversation = await writer.conversation(*items)
        of = [item.id for item in items]
        async with trio.open_nursery() as nursery:
            give = partial(other.give_title, writer.user, conversation, "Secret", of=of)
            delete = partial(
                store.delete_item, writer.user, conversation, items[0].id, writer.tick()
            )
            for job in (give, delete) if n % 2 else (delete, give):
                nursery.start_soon(job)

        found = await store.conversation(writer.user, conversation)
        assert found is not None
        assert found.title is None
        assert not await store.give_title(writer.user, conversation, "Secret", of=of)
        assert await store.give_title(writer.user, conversation, "Other", of=of[1:])

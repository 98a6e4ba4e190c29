"""Several servers on one database: who owns what, and what becomes of it."""

from dataclasses import replace

import pytest
import trio

from antiphon.errors import ConversationLocked
from antiphon.ids import new_node_id
from antiphon.persistence.leases import ORPHAN_LEASE_MS
from antiphon.persistence.port import Statement
from antiphon.persistence.store import SqlStore
from antiphon.records import Accepted, Claim, EventBatch, Repeated, ResponseStatus
from antiphon.testing.specimens import LEASE_MS, Writer


async def test_of_two_servers_one_gets_the_conversation(
    store: SqlStore, other: SqlStore, writer: Writer
):
    conversation = await writer.conversation()
    for _ in range(5):
        accepted: list[str] = []
        turns = [
            (server, writer.turn("Hi", conversation=conversation)) for server in (store, other) * 2
        ]

        async def accept(server: SqlStore, turn, accepted: list[str] = accepted) -> None:
            try:
                await server.accept_turn(turn)
            except ConversationLocked:
                return
            accepted.append(turn.response.id)

        async with trio.open_nursery() as nursery:
            for server, turn in turns:
                nursery.start_soon(accept, server, turn)

        assert len(accepted) == 1
        assert await store.finish_response(writer.final(accepted[0], "Ho"))


async def test_of_two_servers_one_accepts_a_claim(store: SqlStore, other: SqlStore, writer: Writer):
    results: list[Accepted | Repeated] = []

    async def accept(server: SqlStore, n: int) -> None:
        claim = Claim(key=f"key {n}", fingerprint="same")
        results.append(await server.accept_turn(writer.turn("Hi", claim=claim)))

    for n in range(5):
        results.clear()
        async with trio.open_nursery() as nursery:
            for server in (store, other) * 2:
                nursery.start_soon(accept, server, n)

        assert (
            sorted(type(result).__name__ for result in results) == ["Accepted"] + ["Repeated"] * 3
        )
        assert len({result for result in results if isinstance(result, Repeated)}) == 1


async def test_an_orphan_is_taken_by_one_server_with_all_that_is_needed_to_end_it(
    store: SqlStore, other: SqlStore, writer: Writer
):
    conversation = await writer.conversation()
    turns = [writer.turn("Hi", conversation=conversation)] + [writer.turn("x") for _ in range(9)]
    for turn in turns:
        await writer.accept(turn)
    batch = EventBatch(first=0, last=3, body=b"so far")
    await store.append_events(writer.node, [(turns[0].response.id, batch)])
    now = writer.now_ms + LEASE_MS
    reapers = {new_node_id(): store, new_node_id(): other}
    taken = {}

    async def reap(node, server: SqlStore) -> None:
        taken[node] = await server.orphans(now, owner=node, limit=6)

    async with trio.open_nursery() as nursery:
        for node, server in reapers.items():
            nursery.start_soon(reap, node, server)

    ids = [orphan.response.id for orphans in taken.values() for orphan in orphans]
    assert len(ids) == len(set(ids))
    assert len(ids) >= 6
    for node, orphans in taken.items():
        for orphan in orphans:
            final = writer.final(orphan.response.id, owner=node, status=ResponseStatus.FAILED)
            assert await store.finish_response(final)
            if orphan.response.id == turns[0].response.id:
                assert orphan.events == (batch,)
                assert orphan.response == turns[0].response
    assert not await store.finish_response(writer.final(turns[0].response.id, "late"))
    assert await writer.accept(writer.turn("Again", conversation=conversation)) == ("Hi",)


async def test_only_what_is_past_its_lease_is_an_orphan(store: SqlStore, writer: Writer):
    turn = writer.turn("Hi")
    await writer.accept(turn)
    ended = await writer.answered("1", "one")
    reaper = new_node_id()

    assert await store.orphans(turn.lease_ms - 1, owner=reaper) == ()
    (orphan,) = await store.orphans(turn.lease_ms + LEASE_MS, owner=reaper)
    assert orphan.response.id == turn.response.id
    assert orphan.response.id != ended


async def test_alone_no_lease_of_anybody_else_means_anything(store: SqlStore, writer: Writer):
    """It may have been given while the clock stood in the future."""
    turn = writer.turn("Hi", lease_ms=writer.now_ms + 3_600_000)
    await writer.accept(turn)
    reaper, now = new_node_id(), writer.now_ms

    assert await store.orphans(now, owner=reaper) == ()
    assert await store.orphans(now, owner=writer.node, alone=True) == ()
    assert len(await store.orphans(now, owner=reaper, alone=True)) == 1
    assert await store.orphans(now, owner=reaper, alone=True) == ()
    assert len(await store.orphans(now + ORPHAN_LEASE_MS, owner=reaper, alone=True)) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE response_bodies SET request = 'not JSON' WHERE response_id = $1",
        "UPDATE responses SET kind = 'of a newer program' WHERE id = $1",
    ],
)
async def test_an_orphan_that_cannot_be_read_costs_only_itself(
    store: SqlStore, writer: Writer, damage: str
):
    conversation = await writer.conversation()
    damaged = writer.turn("Hi", conversation=conversation)
    good = writer.turn("Ho")
    await writer.accept(damaged)
    await writer.accept(good)
    spoil = Statement("test", damage)
    await store.database.write(lambda tx: tx.execute(spoil, damaged.response.id))
    writer.now_ms = good.lease_ms

    orphans = await store.orphans(writer.now_ms, owner=new_node_id())

    assert [orphan.response.id for orphan in orphans] == [good.response.id]
    await writer.accept(writer.turn("Again", conversation=conversation))


async def test_an_orphan_that_is_not_ended_is_offered_again_also_to_the_same(
    store: SqlStore, writer: Writer
):
    turn = writer.turn("Hi")
    await writer.accept(turn)
    reaper, now = new_node_id(), turn.lease_ms
    assert len(await store.orphans(now, owner=reaper)) == 1

    assert await store.renew_leases(reaper, now + 10 * ORPHAN_LEASE_MS) == 0
    assert await store.orphans(now + ORPHAN_LEASE_MS - 1, owner=reaper) == ()
    assert len(await store.orphans(now + ORPHAN_LEASE_MS, owner=reaper)) == 1


async def test_a_server_that_slept_does_not_take_its_own_turns_for_orphans(
    store: SqlStore, writer: Writer
):
    turn = writer.turn("Hi")
    await writer.accept(turn)

    assert await store.orphans(turn.lease_ms + 1, owner=writer.node) == ()
    assert await store.start_response(turn.response.id, writer.node)


async def test_renewed_leases_keep_responses_and_their_conversations(
    store: SqlStore, writer: Writer
):
    conversation = await writer.conversation()
    await writer.accept(writer.turn("Hi", conversation=conversation))
    await writer.accept(writer.turn("alone"))
    await writer.answered("1", "one")
    until = writer.now_ms + 5 * LEASE_MS

    assert await store.renew_leases(writer.node, until) == 2
    assert await store.renew_leases(new_node_id(), until) == 0

    writer.now_ms += 4 * LEASE_MS
    with pytest.raises(ConversationLocked):
        await store.accept_turn(writer.turn("Two", conversation=conversation))
    assert await store.orphans(writer.now_ms, owner=new_node_id()) == ()
    writer.now_ms = until
    await writer.accept(writer.turn("Two", conversation=conversation))


async def test_a_taken_orphan_keeps_its_conversation_locked_until_it_is_ended(
    store: SqlStore, writer: Writer
):
    conversation = await writer.conversation()
    turn = writer.turn("Hi", conversation=conversation)
    await writer.accept(turn)
    reaper = new_node_id()
    writer.now_ms = turn.lease_ms
    await store.orphans(writer.now_ms, owner=reaper)

    with pytest.raises(ConversationLocked):
        await store.accept_turn(writer.turn("Two", conversation=conversation))

    final = replace(writer.final(turn.response.id), owner=reaper, status=ResponseStatus.FAILED)
    assert await store.finish_response(final)
    await writer.accept(writer.turn("Two", conversation=conversation))

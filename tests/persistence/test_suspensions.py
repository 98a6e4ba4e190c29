"""Suspensions that the server makes and ends itself, beside those of operators."""

import pytest

from antiphon.ids import UserId
from antiphon.persistence.store import SqlStore
from antiphon.testing.specimens import Writer

UNTIL_MS = 10_000


async def test_a_suspension_by_the_server_has_an_end_and_can_be_made_longer(
    store: SqlStore, writer: Writer
):
    first = await store.suspend_until(writer.user, "blocked prompts", UNTIL_MS)
    second = await store.suspend_until(writer.user, "again", 2 * UNTIL_MS)
    found = await store.user(writer.user)

    assert first is not None
    assert (first.suspended, first.suspended_until_ms) == ("blocked prompts", UNTIL_MS)
    assert found == second
    assert found is not None
    assert found.suspension(2 * UNTIL_MS - 1) == "again"
    assert found.suspension(2 * UNTIL_MS) is None


async def test_an_operators_suspension_is_neither_replaced_nor_lifted_by_the_server(
    store: SqlStore, writer: Writer
):
    await store.suspend_user(writer.user, "unpaid bill")

    assert await store.suspend_until(writer.user, "blocked prompts", UNTIL_MS) is None
    assert await store.lift_suspension(writer.user) is None
    found = await store.user(writer.user)
    assert found is not None
    assert (found.suspended, found.suspended_until_ms) == ("unpaid bill", None)
    assert found.suspension(10**15) == "unpaid bill"


async def test_an_operator_replaces_and_lifts_the_servers(store: SqlStore, writer: Writer):
    await store.suspend_until(writer.user, "blocked prompts", UNTIL_MS)
    kept = await store.suspend_user(writer.user, "for good")
    await store.suspend_user(writer.user, None)
    lifted = await store.user(writer.user)

    assert kept is not None
    assert (kept.suspended, kept.suspended_until_ms) == ("for good", None)
    assert lifted is not None
    assert (lifted.suspended, lifted.suspended_until_ms) == (None, None)


async def test_the_server_lifts_its_own(store: SqlStore, writer: Writer):
    await store.suspend_until(writer.user, "blocked prompts", UNTIL_MS)

    lifted = await store.lift_suspension(writer.user)

    assert lifted is not None
    assert (lifted.suspended, lifted.suspended_until_ms) == (None, None)
    assert await store.lift_suspension(writer.user) is None
    assert await store.suspend_until(UserId("user_nobody"), "x", UNTIL_MS) is None


async def test_those_that_are_not_over_are_listed_and_the_others_removed(
    store: SqlStore, writer: Writer
):
    other = await Writer.new(store)
    await store.suspend_until(writer.user, "blocked prompts", UNTIL_MS)
    await store.suspend_until(other.user, "blocked prompts", 2 * UNTIL_MS)
    await store.suspend_user((await Writer.new(store)).user, "by hand")

    listed = [user.id for user in await store.suspended_users(0)]
    later = [user.id for user in await store.suspended_users(UNTIL_MS)]
    await store.expire(UNTIL_MS)
    expired, running = await store.user(writer.user), await store.user(other.user)

    assert (listed, later) == ([writer.user, other.user], [other.user])
    assert expired is not None
    assert running is not None
    assert (expired.suspended, running.suspended) == (None, "blocked prompts")


@pytest.mark.parametrize("limit", [1, 2])
async def test_the_list_is_bounded(store: SqlStore, limit: int):
    for _ in range(3):
        await store.suspend_until((await Writer.new(store)).user, "x", UNTIL_MS)

    assert len(await store.suspended_users(0, limit=limit)) == limit

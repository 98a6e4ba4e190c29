"""Versions of system prompts, and which are in force; on both databases."""

import pytest
import trio

from antiphon.context_records import PromptActivation, PromptVersion
from antiphon.errors import RecordNotFound
from antiphon.persistence.port import STATEMENTS, Statement
from antiphon.persistence.store import SqlStore


async def test_versions_are_numbered_by_name(store: SqlStore):
    first = await store.add_prompt("kind", "Be kind, {{name}}.", "first", 1)
    brief = await store.add_prompt("brief", "Be brief. ☃", "", 2)
    second = await store.add_prompt("kind", "Be kinder.", "second", 3)

    assert first == PromptVersion(
        name="kind", version=1, text="Be kind, {{name}}.", note="first", created_ms=1
    )
    assert [brief.version, second.version] == [1, 2]
    assert await store.prompt_versions() == (brief, first, second)
    assert await store.prompt_versions("kind") == (first, second)
    assert await store.prompt_versions("none") == ()


async def test_an_activation_is_in_force_until_the_next(store: SqlStore):
    for text in ("a", "b"):
        await store.add_prompt("kind", text, "", 1)
    await store.add_prompt("brief", "c", "", 1)

    first = await store.activate_prompt("kind", {1: 1.0}, 5)
    other = await store.activate_prompt("brief", {1: 1.0}, 6)
    second = await store.activate_prompt("kind", {1: 0.9, 2: 0.1}, 7)

    assert second == PromptActivation(name="kind", number=2, arms={1: 0.9, 2: 0.1}, created_ms=7)
    assert await store.prompt_activations("kind") == (second, first)
    assert await store.prompt_activations() == (other, second, first)
    assert await store.prompt_activations("none") == ()


async def test_only_what_is_there_is_activated(store: SqlStore):
    await store.add_prompt("kind", "a", "", 1)
    await store.add_prompt("other", "a", "", 1)
    await store.add_prompt("other", "b", "", 1)

    for name, arms in (("kind", {1: 0.5, 2: 0.5}), ("none", {1: 1.0})):
        with pytest.raises(RecordNotFound) as caught:
            await store.activate_prompt(name, arms, 2)
        assert name in caught.value.id

    assert await store.prompt_activations() == ()


async def test_of_two_servers_that_write_at_once_each_gets_its_own_number(
    store: SqlStore, other: SqlStore
):
    async def write(server: SqlStore, text: str) -> None:
        made = await server.add_prompt("kind", text, "", 1)
        await server.activate_prompt("kind", {made.version: 1.0}, 2)

    async with trio.open_nursery() as nursery:
        for n in range(8):
            nursery.start_soon(write, (store, other)[n % 2], str(n))

    versions = await store.prompt_versions("kind")
    assert [version.version for version in versions] == list(range(1, 9))
    assert sorted(version.text for version in versions) == [str(n) for n in range(8)]
    activations = await store.prompt_activations("kind")
    assert [each.number for each in activations] == list(range(8, 0, -1))
    assert sorted(version for each in activations for version in each.arms) == list(range(1, 9))


def test_a_version_never_changes():
    """No statement would do it."""

    def changes(sql: Statement) -> bool:
        return sql.text.startswith(("UPDATE prompt", "DELETE FROM prompt"))

    assert not [name for name, sql in STATEMENTS.items() if changes(sql)]

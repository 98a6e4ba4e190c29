"""Prompts in force, over a store that knows them alone and a clock that jumps."""

import pytest
import trio
import trio.testing

from antiphon.actors.prompts.prompts import FRESH_S, LOOK_S, SystemPrompts
from antiphon.errors import StoreUnavailable
from antiphon.supervision.spec import ChildSpec, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Tree
from antiphon.testing.prompts import PromptStore

Clock = trio.testing.MockClock


class Desk:
    def __init__(self, *named: str) -> None:
        self.store = PromptStore()
        self.named = frozenset(named)
        self.prompts = self.another()

    def another(self) -> SystemPrompts:
        """Of another server on the same database."""
        return SystemPrompts(self.store, lambda: self.named)

    def lose_the_store(self) -> None:
        async def fail() -> None:
            raise StoreUnavailable("gone")

        self.store.before = fail

    def hang_the_store(self) -> None:
        self.store.before = trio.sleep_forever


async def in_force(prompts: SystemPrompts, name: str = "guide") -> set[int]:
    found = await prompts.activation(name)
    return set() if found is None else set(found.arms)


async def test_a_version_is_in_force_once_it_is_activated(autojump_clock: Clock):
    desk = Desk()
    desk.store.add("guide", "Be kind.")

    assert await in_force(desk.prompts) == set()
    desk.store.activate("guide", v1=1.0)
    await trio.sleep(FRESH_S + 0.1)

    assert await in_force(desk.prompts) == {1}
    found = await desk.prompts.version("guide", 1)
    assert found is not None
    assert found.text == "Be kind."


async def test_two_servers_see_an_activation_within_seconds(autojump_clock: Clock):
    desk = Desk()
    other = desk.another()
    for text in ("one", "two"):
        desk.store.add("guide", text)
    desk.store.activate("guide", v1=1.0)
    assert await in_force(desk.prompts) == await in_force(other) == {1}

    desk.store.activate("guide", v2=1.0)
    await trio.sleep(FRESH_S + 0.1)

    assert await in_force(desk.prompts) == await in_force(other) == {2}


async def test_a_thousand_turns_are_one_look_and_versions_are_read_once(autojump_clock: Clock):
    desk = Desk()
    desk.store.add("guide", "Be kind.")
    desk.store.activate("guide", v1=1.0)

    async with trio.open_nursery() as nursery:
        for _ in range(1000):
            nursery.start_soon(in_force, desk.prompts)
    assert desk.store.asked == ["activations", "versions"]
    for _ in range(5):
        await trio.sleep(FRESH_S + 0.1)
        await in_force(desk.prompts)
        await desk.prompts.version("guide", 1)

    assert desk.store.asked == ["activations", "versions", *["activations"] * 5]


async def test_what_is_unknown_is_not_asked_for_at_every_turn(autojump_clock: Clock):
    desk = Desk()

    for _ in range(100):
        assert await in_force(desk.prompts, "nothing") == set()
        assert await desk.prompts.version("nothing", 1) is None

    assert len(desk.store.asked) == 2


async def test_a_version_that_is_added_later_is_found(autojump_clock: Clock):
    desk = Desk()
    assert await desk.prompts.version("guide", 1) is None

    desk.store.add("guide", "Be kind.")
    await trio.sleep(FRESH_S + 0.1)

    assert await desk.prompts.version("guide", 1) is not None


@pytest.mark.parametrize("lose", [Desk.lose_the_store, Desk.hang_the_store])
async def test_while_the_store_is_away_the_last_known_prompt_counts(lose, autojump_clock: Clock):
    desk = Desk()
    desk.store.add("guide", "Be kind.")
    desk.store.activate("guide", v1=1.0)
    await in_force(desk.prompts)
    lose(desk)

    for _ in range(3):
        await trio.sleep(3600)
        with trio.fail_after(2):
            assert await in_force(desk.prompts) == {1}
            assert await desk.prompts.version("guide", 1) is not None


async def test_without_the_store_nobody_is_told_that_there_is_no_prompt(autojump_clock: Clock):
    desk = Desk()
    assert await in_force(desk.prompts) == set()
    desk.lose_the_store()
    await trio.sleep(FRESH_S + 0.1)

    with pytest.raises(StoreUnavailable):
        await desk.prompts.activation("guide")
    with pytest.raises(StoreUnavailable):
        await desk.prompts.version("guide", 1)


async def test_a_look_that_is_cancelled_with_its_turn_is_made_by_another(autojump_clock: Clock):
    desk = Desk()
    desk.store.add("guide", "Be kind.")
    desk.store.activate("guide", v1=1.0)
    desk.hang_the_store()

    async with trio.open_nursery() as nursery:
        first = trio.CancelScope()

        async def leave() -> None:
            with first:
                await in_force(desk.prompts)

        nursery.start_soon(leave)
        await trio.testing.wait_all_tasks_blocked()
        desk.store.before = None
        nursery.start_soon(in_force, desk.prompts)
        await trio.testing.wait_all_tasks_blocked()
        first.cancel()

    assert await in_force(desk.prompts) == {1}


def tree_of(desk: Desk) -> Tree:
    return Tree(Supervisor(SupervisorSpec(), [ChildSpec(id="prompts", start=desk.prompts.run)]))


async def test_those_of_the_settings_are_there_before_anybody_asks(autojump_clock: Clock):
    desk = Desk("guide")
    desk.store.add("guide", "Be kind.")
    desk.store.activate("guide", v1=1.0)

    tree = tree_of(desk)
    async with trio.open_nursery() as nursery:
        await tree.begin(nursery)
        await trio.sleep(0.1)
        desk.lose_the_store()
        assert await in_force(desk.prompts) == {1}
        assert [each.name for each in desk.prompts.in_force()] == ["guide"]
        assert desk.prompts.concern() is None
        await tree.end()


async def test_what_the_settings_name_in_vain_is_said_to_operators(autojump_clock: Clock):
    desk = Desk("guide")
    desk.store.add("guide", "Be kind to {{name}}.")

    tree = tree_of(desk)
    async with trio.open_nursery() as nursery:
        await tree.begin(nursery)
        await trio.sleep(0.1)
        assert "no version of prompt 'guide'" in (desk.prompts.concern() or "")

        desk.store.activate("guide", v1=1.0)
        await trio.sleep(LOOK_S)
        assert "has variables" in (desk.prompts.concern() or "")

        desk.store.add("guide", "Be kind.")
        desk.store.activate("guide", v2=1.0)
        await trio.sleep(LOOK_S)
        assert desk.prompts.concern() is None

        desk.store.activate("guide", v1=1.0)
        await trio.sleep(LOOK_S)
        desk.named = frozenset()
        await trio.sleep(LOOK_S)
        assert desk.prompts.concern() is None
        assert desk.prompts.in_force() == ()
        await tree.end()


async def test_it_stops_at_once_also_while_the_store_hangs(autojump_clock: Clock):
    desk = Desk("guide")
    desk.hang_the_store()
    tree = tree_of(desk)

    async with trio.open_nursery() as nursery:
        await tree.begin(nursery)
        await trio.sleep(0.1)
        with trio.fail_after(0.1):
            await tree.end()

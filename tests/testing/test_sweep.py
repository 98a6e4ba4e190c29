import pytest
import trio

from antiphon.testing.sweep import Fuse, Struck, crash, sweep


async def in_three_steps(fuse: Fuse, scope: trio.CancelScope, then: list[str]) -> None:
    """A checkpoint stands between the acquisition and the try: a leak at one step only."""

    async def victim() -> None:
        with scope:
            then.append("acquired")
            await trio.lowlevel.checkpoint()
            try:
                await trio.lowlevel.checkpoint()
            finally:
                then.append("released")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(victim, name="victim")


def test_a_leak_at_one_step_is_found():
    async def scenario(fuse: Fuse) -> None:
        scope, then = trio.CancelScope(), list[str]()

        def strike(task: trio.lowlevel.Task) -> bool:
            scope.cancel()
            return True

        fuse.arm(strike)
        await in_three_steps(fuse, scope, then)
        assert then == ["acquired", "released"]

    with pytest.raises(AssertionError) as caught:
        sweep(scenario, victim="victim")

    assert caught.value.__notes__ == ["struck at step 1 of 3"]


def test_every_await_can_be_made_to_raise():
    raised = []

    async def scenario(fuse: Fuse) -> None:
        fuse.arm(crash)
        try:
            await in_three_steps(fuse, trio.CancelScope(), [])
        except* Struck as group:
            raised.append(len(group.exceptions))

    # The first step starts the task, so the strike falls on the second one, as on itself.
    assert sweep(scenario, victim="victim") == 3
    assert raised == [1, 1, 1]


def test_steps_count_only_while_the_fuse_is_armed():
    async def scenario(fuse: Fuse) -> None:
        await in_three_steps(fuse, trio.CancelScope(), [])

    assert sweep(scenario, victim="victim") == 0

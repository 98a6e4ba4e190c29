"""Restarts on command, and the operator who gives them by path."""

import pytest
import trio
import trio.testing

from antiphon.errors import (
    ActorStopped,
    AlreadyPresent,
    CommandRefused,
    NoActor,
    SpecError,
    StartFailed,
)
from antiphon.ids import ActorPath
from antiphon.supervision.exits import Ignored
from antiphon.supervision.operator import Operator, owner_of
from antiphon.supervision.spec import NO_BACKOFF, Restart, Strategy, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.supervision.tree import node_at
from antiphon.testing.probes import Puppet, Tree, asleep


def puppets(names: str) -> tuple[list[str], list[Puppet]]:
    story: list[str] = []
    return story, [Puppet(name, story) for name in names]


def strict(strategy: Strategy) -> SupervisorSpec:
    """Would give up at the first restart that counts."""
    return SupervisorSpec(strategy=strategy, intensity=0)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Strategy.ONE_FOR_ONE, ["-b1", "+b2"]),
        (Strategy.REST_FOR_ONE, ["-c1", "-b1", "+b2", "+c2"]),
        (Strategy.ONE_FOR_ALL, ["-c1", "-b1", "-a1", "+a2", "+b2", "+c2"]),
    ],
)
async def test_a_recycled_child_takes_its_siblings_along_as_a_failed_one_would(
    nursery, autojump_clock, strategy, expected
) -> None:
    story, children = puppets("abc")
    supervisor = Supervisor(strict(strategy), [child.spec() for child in children])
    await Tree(supervisor).begin(nursery)
    story.clear()

    assert await supervisor.recycle_child("b")
    await trio.testing.wait_all_tasks_blocked()

    assert story == expected
    assert supervisor.snapshot().restarts_in_window == 0


async def test_a_recycled_child_that_is_down_starts_and_its_dependants_begin_anew(
    nursery, autojump_clock
) -> None:
    story, (a, b) = puppets("ab")
    supervisor = Supervisor(strict(Strategy.REST_FOR_ONE), [a.spec(), b.spec()])
    await Tree(supervisor).begin(nursery)
    await supervisor.terminate_child("a")
    story.clear()

    assert await supervisor.recycle_child("a")
    await trio.testing.wait_all_tasks_blocked()

    assert story == ["-b1", "+a2", "+b2"]


async def test_a_recycled_child_that_waits_for_its_restart_starts_at_once(
    nursery, autojump_clock
) -> None:
    _, (a,) = puppets("a")
    supervisor = Supervisor(SupervisorSpec(), [a.spec()])
    await Tree(supervisor).begin(nursery)
    a.crash()
    await a.up(2)
    a.crash()
    await trio.testing.wait_all_tasks_blocked()
    assert supervisor.which_children()[0][1].value == "waiting"
    began = trio.current_time()

    await supervisor.recycle_child("a")

    assert trio.current_time() == began


async def test_the_answer_waits_for_attempts_that_follow_a_failed_one(
    nursery, autojump_clock
) -> None:
    _, (a,) = puppets("a")
    supervisor = Supervisor(SupervisorSpec(), [a.spec(backoff=NO_BACKOFF)])
    await Tree(supervisor).begin(nursery)

    async def fail_once(context) -> None:
        if context.incarnation == 2:
            raise RuntimeError

    a.init = fail_once

    assert await supervisor.recycle_child("a")
    assert supervisor.snapshot().children[0].incarnation == 3


async def test_a_recycled_child_that_declines_answers_false(nursery, autojump_clock) -> None:
    _, (a,) = puppets("a")
    supervisor = Supervisor(SupervisorSpec(), [a.spec()])
    await Tree(supervisor).begin(nursery)

    async def decline(context) -> Ignored:
        return Ignored()

    a.init = decline

    assert not await supervisor.recycle_child("a")


async def test_a_supervisor_that_gives_up_answers_the_command(nursery, autojump_clock) -> None:
    _, (a,) = puppets("a")
    below = Supervisor(SupervisorSpec(intensity=1), [a.spec(backoff=NO_BACKOFF)])
    root = Supervisor(SupervisorSpec(), [below.child("below", restart=Restart.TEMPORARY)])
    await Tree(root).begin(nursery)

    async def fail(context) -> None:
        raise RuntimeError

    a.init = fail

    with pytest.raises(StartFailed):
        await below.recycle_child("a")


async def test_a_temporary_child_is_not_recycled_and_goes_on(nursery, autojump_clock) -> None:
    story, (a,) = puppets("a")
    supervisor = Supervisor(SupervisorSpec(), [a.spec(restart=Restart.TEMPORARY)])
    await Tree(supervisor).begin(nursery)

    with pytest.raises(SpecError):
        await supervisor.recycle_child("a")

    assert story == ["+a1"]


@pytest.fixture
async def nested(nursery, autojump_clock):
    """root > pool > driver, scheduler; and root > door, which takes no commands."""
    story, (driver, scheduler, door) = puppets("dsx")
    pool = Supervisor(strict(Strategy.REST_FOR_ONE), [driver.spec(), scheduler.spec()])
    root = Supervisor(strict(Strategy.ONE_FOR_ONE), [pool.child("pool"), door.spec()])
    tree = await Tree(root).begin(nursery)
    operator = Operator(lambda: root, {ActorPath("root/x"): "it is the door"})
    story.clear()
    yield operator, root, story
    await tree.end()


async def test_an_operator_finds_children_at_any_depth(nested) -> None:
    operator, root, story = nested

    await operator.restart(ActorPath("root/pool/d"))
    await trio.testing.wait_all_tasks_blocked()
    assert story == ["-s1", "-d1", "+d2", "+s2"]
    story.clear()

    await operator.restart(ActorPath("root/pool"))
    assert story == ["-s2", "-d2", "+d1", "+s1"]
    assert node_at(root.snapshot(), "root/pool").incarnation == 2


async def test_what_is_stopped_stays_down_until_it_is_started(nested) -> None:
    operator, root, story = nested
    path = ActorPath("root/pool/s")

    await operator.stop(path)
    await trio.testing.wait_all_tasks_blocked()
    assert node_at(root.snapshot(), path).state == "down"
    await operator.start(path)

    assert story == ["-s1", "+s2"]
    with pytest.raises(AlreadyPresent):
        await operator.start(path)


@pytest.mark.parametrize("command", ["restart", "stop", "start"])
async def test_root_and_what_is_untouchable_take_no_commands(nested, command) -> None:
    operator, _, story = nested

    for path in ("root", "root/x"):
        with pytest.raises(CommandRefused):
            await getattr(operator, command)(ActorPath(path))

    assert story == []


@pytest.mark.parametrize(
    "path", ["", "pool", "/root", "root/", "root/pool/", "root/y", "root/pool/y", "root/pool/s/t"]
)
async def test_a_path_that_leads_nowhere_is_nobody(nested, path) -> None:
    operator, root, _ = nested

    with pytest.raises(NoActor):
        await operator.restart(ActorPath(path))
    with pytest.raises(NoActor):
        owner_of(root, ActorPath(path))
    assert node_at(root.snapshot(), path) is None


async def test_a_supervisor_that_is_down_says_so(nested) -> None:
    operator, _, _ = nested
    await operator.stop(ActorPath("root/pool"))

    with pytest.raises(ActorStopped):
        await operator.restart(ActorPath("root/pool/d"))


async def test_giving_up_the_wait_takes_nothing_back(nursery, autojump_clock) -> None:
    story, (a,) = puppets("a")
    supervisor = Supervisor(SupervisorSpec(), [a.spec(init_timeout_s=100.0)])
    await Tree(supervisor).begin(nursery)
    a.init = asleep

    with trio.move_on_after(1.0):
        await supervisor.recycle_child("a")
    a.init = None
    await a.up(3)

    assert story == ["+a1", "-a1", "+a2", "-a2", "+a3"]

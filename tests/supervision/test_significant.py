import pytest
import trio
import trio.testing

from antiphon.errors import SpecError
from antiphon.supervision.exits import Crashed, Ignored, Stopped
from antiphon.supervision.spec import (
    NO_BACKOFF,
    AutoShutdown,
    Restart,
    Strategy,
    SupervisorSpec,
)
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Puppet, Tree

ANY = SupervisorSpec(auto_shutdown=AutoShutdown.ANY, intensity=100)
ALL = SupervisorSpec(auto_shutdown=AutoShutdown.ALL, intensity=100)
ENDING = {"restart": Restart.TRANSIENT, "significant": True}


def puppets(names: str) -> tuple[list[str], list[Puppet]]:
    story: list[str] = []
    return story, [Puppet(name, story) for name in names]


async def quiet() -> None:
    await trio.testing.wait_all_tasks_blocked()


def test_a_permanent_child_is_not_significant() -> None:
    with pytest.raises(SpecError, match="permanent"):
        Puppet("a").spec(significant=True)


async def test_a_significant_child_needs_a_supervisor_that_minds(nursery, autojump_clock) -> None:
    significant = Puppet("a").spec(**ENDING)
    with pytest.raises(SpecError, match="auto_shutdown"):
        Supervisor(SupervisorSpec(), [significant])
    supervisor = Supervisor(SupervisorSpec(dynamic=True))
    await Tree(supervisor).begin(nursery)

    with pytest.raises(SpecError):
        await supervisor.start_child(significant)
    with pytest.raises(SpecError):
        supervisor.start_child_nowait(significant)

    assert supervisor.count_children() == 0


def test_a_supervisor_that_ends_itself_is_no_permanent_child() -> None:
    supervisor = Supervisor(ANY)

    with pytest.raises(SpecError, match="for ever"):
        supervisor.child("s")
    assert supervisor.child("s", restart=Restart.TRANSIENT).restart is Restart.TRANSIENT


@pytest.mark.parametrize("restart", [Restart.TRANSIENT, Restart.TEMPORARY])
async def test_any_ends_the_supervisor_in_order_when_one_significant_child_has_ended(
    restart, nursery, autojump_clock
) -> None:
    story, (a, b, c) = puppets("abc")
    children = [a.spec(), b.spec(restart=restart, significant=True), c.spec(**ENDING)]
    tree = await Tree(Supervisor(ANY, children)).begin(nursery)

    b.finish()
    outcome = await tree.over()

    assert story[3:] == ["-b1", "-c1", "-a1"]
    assert outcome.exit == Stopped()


async def test_the_parent_takes_it_for_a_quiet_end_and_restarts_nothing(
    nursery, autojump_clock
) -> None:
    story, (a, b) = puppets("ab")
    inner = Supervisor(ANY, [a.spec(**ENDING)])
    root = Supervisor(SupervisorSpec(), [inner.child("s", restart=Restart.TRANSIENT), b.spec()])
    tree = await Tree(root).begin(nursery)

    a.finish()
    await quiet()

    (node, _) = root.snapshot().children
    assert (node.state, node.last_exit.kind) == ("down", "stopped")
    assert story == ["+a1", "+b1", "-a1"]
    assert not tree.ended.is_set()


async def test_a_crash_of_a_transient_child_is_a_restart_and_of_a_temporary_one_an_end(
    nursery, autojump_clock
) -> None:
    _, (a, b) = puppets("ab")
    children = [a.spec(**ENDING), b.spec(restart=Restart.TEMPORARY, significant=True)]
    tree = await Tree(Supervisor(ANY, children)).begin(nursery)

    a.crash()
    await a.up(2)
    assert not tree.ended.is_set()
    b.crash()

    assert (await tree.over()).exit == Stopped()


async def test_insignificant_children_may_end_as_they_like(nursery, autojump_clock) -> None:
    _, (a, b) = puppets("ab")
    supervisor = Supervisor(ANY, [a.spec(restart=Restart.TRANSIENT), b.spec(**ENDING)])
    tree = await Tree(supervisor).begin(nursery)

    a.finish()
    await quiet()

    assert not tree.ended.is_set()


@pytest.mark.parametrize("strategy", [Strategy.ONE_FOR_ALL, Strategy.REST_FOR_ONE])
async def test_an_end_for_a_siblings_sake_does_not_count(strategy, nursery, autojump_clock) -> None:
    _, (a, b) = puppets("ab")
    spec = SupervisorSpec(strategy=strategy, auto_shutdown=AutoShutdown.ANY)
    children = [a.spec(), b.spec(restart=Restart.TEMPORARY, significant=True)]
    supervisor = Supervisor(spec, children)
    tree = await Tree(supervisor).begin(nursery)

    a.crash()
    await a.up(2)
    await quiet()

    assert not tree.ended.is_set()
    assert supervisor.count_children() == 1


async def test_an_end_on_command_does_not_count(nursery, autojump_clock) -> None:
    _, (a,) = puppets("a")
    supervisor = Supervisor(ANY, [a.spec(**ENDING)])
    tree = await Tree(supervisor).begin(nursery)

    await supervisor.terminate_child("a")
    await quiet()
    assert not tree.ended.is_set()
    await supervisor.restart_child("a")
    a.finish()

    assert (await tree.over()).exit == Stopped()


async def test_declining_to_run_does_not_count(nursery, autojump_clock) -> None:
    _, (a,) = puppets("a")

    async def decline_later(context) -> Ignored | None:
        return Ignored() if context.incarnation == 2 else None

    a.init = decline_later
    tree = await Tree(Supervisor(ANY, [a.spec(**ENDING)])).begin(nursery)

    a.crash()
    await quiet()

    assert not tree.ended.is_set()


async def test_all_waits_for_the_last_significant_child(nursery, autojump_clock) -> None:
    _, (a, b, c, d) = puppets("abcd")
    children = [*(p.spec(backoff=NO_BACKOFF, **ENDING) for p in (a, b, c)), d.spec()]
    supervisor = Supervisor(ALL, children)
    tree = await Tree(supervisor).begin(nursery)

    a.finish()
    await supervisor.terminate_child("b")
    await quiet()
    assert not tree.ended.is_set()
    c.crash()
    await c.up(2)
    assert not tree.ended.is_set()
    c.finish()

    assert (await tree.over()).exit == Stopped()


async def test_an_end_during_the_boot_counts_when_the_boot_is_complete(
    nursery, autojump_clock
) -> None:
    story, (a, b) = puppets("ab")

    async def slow(context) -> None:
        a.finish()
        await trio.sleep(1)

    b.init = slow
    began = trio.current_time()
    tree = await Tree(Supervisor(ANY, [a.spec(**ENDING), b.spec()])).begin(nursery)

    outcome = await tree.over()

    assert story == ["+a1", "+b1", "-a1", "-b1"]
    assert trio.current_time() - began == pytest.approx(1)
    assert outcome.exit == Stopped()


async def test_dynamic_children_may_be_significant(nursery, autojump_clock) -> None:
    _, (a, b) = puppets("ab")
    spec = SupervisorSpec(dynamic=True, auto_shutdown=AutoShutdown.ALL)
    supervisor = Supervisor(spec)
    tree = await Tree(supervisor).begin(nursery)
    for puppet in (a, b):
        await supervisor.start_child(puppet.spec(restart=Restart.TEMPORARY, significant=True))

    a.finish()
    await quiet()
    assert not tree.ended.is_set()
    b.crash()

    assert (await tree.over()).exit == Stopped()


async def test_giving_up_stays_a_crash(nursery, autojump_clock) -> None:
    _, (a,) = puppets("a")
    spec = SupervisorSpec(auto_shutdown=AutoShutdown.ANY, intensity=0)
    tree = await Tree(Supervisor(spec, [a.spec(**ENDING)])).begin(nursery)

    a.crash()

    assert isinstance((await tree.over()).exit, Crashed)

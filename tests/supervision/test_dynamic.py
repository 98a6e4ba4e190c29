import contextvars

import pytest
import structlog
import trio
import trio.testing

from antiphon.errors import MaxChildren
from antiphon.supervision.spec import NO_BACKOFF, Backoff, ChildSpec, Restart, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Puppet, Tree

request_var: contextvars.ContextVar[str] = contextvars.ContextVar("request")


async def quiet() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_a_full_supervisor_refuses_and_restarting_children_count(
    nursery, autojump_clock
) -> None:
    supervisor = Supervisor(SupervisorSpec(dynamic=True, max_children=2, intensity=10))
    await Tree(supervisor).begin(nursery)
    a, b = Puppet("a"), Puppet("b")
    await supervisor.start_child(a.spec(backoff=Backoff(base_s=100, max_s=100)))
    await supervisor.start_child(b.spec())
    a.crash()
    await a.up(2)
    a.crash()
    await quiet()

    with pytest.raises(MaxChildren):
        await supervisor.start_child(Puppet("c").spec())
    with pytest.raises(MaxChildren):
        supervisor.start_child_nowait(Puppet("c").spec())
    await supervisor.terminate_child("b")

    supervisor.start_child_nowait(Puppet("c").spec())
    assert supervisor.count_children() == 2


async def test_crashes_of_temporary_children_never_spend_the_window(
    nursery, autojump_clock
) -> None:
    supervisor = Supervisor(SupervisorSpec(dynamic=True, intensity=0))
    tree = await Tree(supervisor).begin(nursery)
    for number in range(20):
        puppet = Puppet(f"p{number}")
        await supervisor.start_child(puppet.spec(restart=Restart.TEMPORARY))
        puppet.crash()
    await quiet()

    assert supervisor.count_children() == 0
    assert not tree.ended.is_set()


async def test_a_shard_that_gives_up_leaves_the_others_alone(nursery, autojump_clock) -> None:
    shards = [Supervisor(SupervisorSpec(dynamic=True, intensity=3)) for _ in range(3)]
    root = Supervisor(
        SupervisorSpec(), [shard.child(f"shard{n}") for n, shard in enumerate(shards)]
    )
    await Tree(root).begin(nursery)
    crashing, calm = Puppet("x"), Puppet("y")
    await shards[0].start_child(crashing.spec(backoff=NO_BACKOFF))
    await shards[1].start_child(calm.spec())

    for incarnation in range(1, 5):
        await crashing.up(incarnation)
        crashing.crash()
    await quiet()

    assert [node.incarnation for node in root.snapshot().children] == [2, 1, 1]
    assert shards[0].count_children() == 0
    assert calm.story == ["+y1"]


async def test_four_crashes_in_one_shard_touch_nobody_else(nursery, autojump_clock) -> None:
    shards = [Supervisor(SupervisorSpec(dynamic=True)) for _ in range(4)]
    root = Supervisor(
        SupervisorSpec(), [shard.child(f"shard{n}") for n, shard in enumerate(shards)]
    )
    await Tree(root).begin(nursery)
    story: list[str] = []
    others = [Puppet(f"other{number}", story) for number in range(4)]
    for shard, puppet in zip(shards, others, strict=True):
        await shard.start_child(puppet.spec(restart=Restart.TEMPORARY))

    for number in range(4):
        crashing = Puppet(f"x{number}")
        await shards[0].start_child(crashing.spec(restart=Restart.TEMPORARY))
        crashing.crash()
        await trio.sleep(0.25)

    assert [node.incarnation for node in root.snapshot().children] == [1, 1, 1, 1]
    assert [shard.count_children() for shard in shards] == [1, 1, 1, 1]
    assert story == [f"+other{number}1" for number in range(4)]


async def test_a_child_inherits_nothing_from_the_task_that_started_it(
    nursery, autojump_clock
) -> None:
    seen: list[object] = []
    supervisor = Supervisor(SupervisorSpec(dynamic=True))
    await Tree(supervisor).begin(nursery)

    async def start(context) -> None:
        seen.append(request_var.get("nothing"))
        seen.append(structlog.contextvars.get_contextvars())
        context.ready()

    request_var.set("req_1")
    structlog.contextvars.bind_contextvars(request="req_1")
    await supervisor.start_child(ChildSpec(id="a", start=start, restart=Restart.TEMPORARY))
    structlog.contextvars.clear_contextvars()

    assert seen == ["nothing", {}]


async def steps_of(count: int, nursery: trio.Nursery) -> int:
    supervisor = Supervisor(SupervisorSpec(dynamic=True), reports=lambda report: None)
    tree = await Tree(supervisor).begin(nursery)

    class Counter(trio.abc.Instrument):
        steps = 0

        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            self.steps += 1

    counter = Counter()
    trio.lowlevel.add_instrument(counter)
    for number in range(count):
        await supervisor.start_child(Puppet(str(number)).spec(restart=Restart.TEMPORARY))
    await tree.end()
    trio.lowlevel.remove_instrument(counter)
    return counter.steps


async def test_the_work_grows_with_the_number_of_children_and_no_faster(
    nursery, autojump_clock
) -> None:
    few, many = await steps_of(1_000, nursery), await steps_of(10_000, nursery)

    assert many / few == pytest.approx(10, rel=0.01)
    assert many / 10_000 < 8


async def test_init_timeouts_of_ready_children_cost_no_wake_ups(nursery, autojump_clock) -> None:
    supervisor = Supervisor(SupervisorSpec(dynamic=True))
    await Tree(supervisor).begin(nursery)
    for number in range(100):
        await supervisor.start_child(Puppet(str(number)).spec(restart=Restart.TEMPORARY))
        await trio.sleep(0.01)

    class Counter(trio.abc.Instrument):
        steps = 0

        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            self.steps += 1

    counter = Counter()
    trio.lowlevel.add_instrument(counter)
    await trio.sleep(60)
    trio.lowlevel.remove_instrument(counter)

    assert counter.steps < 20

import threading
from collections.abc import AsyncIterator

import trio
import trio.testing

from antiphon.supervision.spec import SupervisorSpec
from antiphon.supervision.stacks import format_stacks
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Puppet, Tree


def entry_of(name: str, text: str) -> str:
    """The lines about that task or thread."""
    lines = text.splitlines()
    (start,) = [
        number
        for number, line in enumerate(lines)
        if not line.startswith(" ") and name in line.split(" ", 1)[1].split(", ")
    ]
    end = start + 1
    while end < len(lines) and lines[end].startswith(" "):
        end += 1
    return "\n".join(lines[start:end])


async def wait_for_ever_in_here(secret: str) -> None:
    await trio.sleep_forever()


async def outer(secret: str) -> None:
    await wait_for_ever_in_here(secret)


async def test_each_task_shows_where_it_waits_and_no_value(nursery) -> None:
    nursery.start_soon(outer, "hunter2", name="root/a")
    await trio.testing.wait_all_tasks_blocked()

    text = format_stacks()

    entry = entry_of("root/a", text)
    assert entry.index("in outer") < entry.index("in wait_for_ever_in_here")
    assert f"{__file__}:" in entry
    assert "hunter2" not in text
    nursery.cancel_scope.cancel("the test is over")


async def test_every_child_of_a_tree_is_found_under_its_path(nursery, autojump_clock) -> None:
    inner = Supervisor(SupervisorSpec(), [Puppet("b").spec()])
    await Tree(Supervisor(SupervisorSpec(), [Puppet("a").spec(), inner.child("s")])).begin(nursery)

    text = format_stacks()

    for path in ("root", "root/a", "root/s", "root/s/b"):
        assert entry_of(path, text)


async def test_a_task_that_ignores_its_cancellation_shows_what_it_does(nursery) -> None:
    gate = trio.Event()

    async def hold_on() -> None:
        with trio.CancelScope(shield=True):
            await gate.wait()

    nursery.start_soon(hold_on, name="root/stuck")
    await trio.testing.wait_all_tasks_blocked()
    nursery.cancel_scope.cancel("stop")

    text = format_stacks()
    gate.set()

    assert "hold_on" in entry_of("root/stuck", text)


async def test_a_task_inside_an_async_generator_shows_the_generator(nursery) -> None:
    async def numbers() -> AsyncIterator[int]:
        await trio.sleep_forever()
        yield 1

    async def read() -> None:
        iterator = numbers()
        await anext(iterator)

    nursery.start_soon(read, name="root/reader")
    await trio.testing.wait_all_tasks_blocked()

    assert "numbers" in entry_of("root/reader", format_stacks())
    nursery.cancel_scope.cancel("the test is over")


async def test_the_running_task_is_told_by_its_thread() -> None:
    text = format_stacks()

    main = entry_of(threading.current_thread().name, text)
    assert "test_the_running_task_is_told_by_its_thread" in main


async def test_tasks_at_the_same_place_are_one_entry(nursery) -> None:
    for number in range(1000):
        nursery.start_soon(outer, "", name=f"session-{number}")
    await trio.testing.wait_all_tasks_blocked()

    text = format_stacks()

    assert "and 995 more" in text
    assert len(text.splitlines()) < 200
    nursery.cancel_scope.cancel("the test is over")


async def test_a_deep_stack_keeps_its_inner_end(nursery) -> None:
    async def dive(depth: int) -> None:
        if depth:
            await dive(depth - 1)
        else:
            await wait_for_ever_in_here("")

    nursery.start_soon(dive, 200, name="root/deep")
    await trio.testing.wait_all_tasks_blocked()

    entry = entry_of("root/deep", format_stacks())

    assert "more" in entry.splitlines()[1]
    assert "wait_for_ever_in_here" in entry
    assert len(entry.splitlines()) == 62
    nursery.cancel_scope.cancel("the test is over")


async def test_it_may_be_called_while_the_loop_itself_is_held_up(nursery) -> None:
    nursery.start_soon(outer, "", name="root/a")
    await trio.testing.wait_all_tasks_blocked()
    root = trio.lowlevel.current_root_task()
    texts: list[str] = []

    def watchdog() -> None:
        texts.append(format_stacks(root))

    thread = threading.Thread(target=watchdog)
    thread.start()
    thread.join()

    assert "wait_for_ever_in_here" in entry_of("root/a", texts[0])
    assert "thread.join" not in texts[0]
    assert "test_it_may_be_called_while" in texts[0]
    nursery.cancel_scope.cancel("the test is over")


def test_outside_of_a_run_there_are_threads_only() -> None:
    text = format_stacks()

    assert "thread" in text
    assert not text.startswith("0 tasks")
    assert "test_outside_of_a_run" in entry_of(threading.current_thread().name, text)

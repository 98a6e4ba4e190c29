from dataclasses import dataclass, field

import pytest
import trio
import trio.testing

from antiphon.actors.actor import ActorContext, actor_child
from antiphon.actors.address import Address
from antiphon.actors.monitor import Down
from antiphon.actors.ref import Ref
from antiphon.actors.reply import Reply, waiting_chain
from antiphon.errors import (
    ActorCrashed,
    ActorStopped,
    AskTimeout,
    CallCycle,
    InvalidRequest,
    MailboxFull,
)
from antiphon.supervision.exits import Crashed, InitFailed, Killed, Normal, Stopped, Stuck
from antiphon.supervision.reports import ChildExited
from antiphon.supervision.spec import NO_BACKOFF, Backoff, Grace, Restart, Strategy, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.supervision.tree import ChildCounts
from antiphon.testing.probes import ReportLog, Tree

ONE = SupervisorSpec(intensity=100)
DYNAMIC = SupervisorSpec(dynamic=True)


@dataclass(frozen=True, slots=True)
class Echo:
    text: str
    reply: Reply[str]


@dataclass(frozen=True, slots=True)
class Hold:
    """Answered never."""

    reply: Reply[str]


@dataclass(frozen=True, slots=True)
class Wait:
    gate: trio.Event


@dataclass(frozen=True, slots=True)
class WaitShielded:
    gate: trio.Event


@dataclass(frozen=True, slots=True)
class Crash:
    reply: Reply[str] | None = None


@dataclass(frozen=True, slots=True)
class Forward:
    to: Ref["Message"]
    reply: Reply[str]
    then: Ref["Message"] | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Leave:
    pass


Message = Echo | Hold | Wait | WaitShielded | Crash | Forward | Leave | str


@dataclass
class Recorder:
    """What all incarnations of one actor did."""

    seen: list[str] = field(default_factory=list)
    terminated: int = 0
    me: ActorContext[Message] | None = None
    held: list[Reply[str]] = field(default_factory=list)
    background_error: Exception | None = None
    start_error: Exception | None = None
    terminate_error: Exception | None = None
    terminate_s: float = 0.0


class Probe:
    def __init__(self, record: Recorder) -> None:
        self.record = record

    async def start(self, me: ActorContext[Message]) -> None:
        self.record.me = self.me = me
        if self.record.start_error is not None:
            raise self.record.start_error

    async def handle(self, message: Message) -> None:
        match message:
            case str():
                self.record.seen.append(message)
            case Echo(text=text, reply=reply):
                self.record.seen.append(text)
                reply.send(text)
            case Hold(reply=reply):
                self.record.held.append(reply)
            case Wait(gate=gate):
                await gate.wait()
            case WaitShielded(gate=gate):
                with trio.CancelScope(shield=True):
                    await gate.wait()
            case Crash():
                self.record.seen.append("crash")
                raise ValueError("told to crash")
            case Forward(beside=True):
                self.me.start_soon(self.forward, message)
            case Forward():
                await self.forward(message)
            case Leave():
                self.me.stop()

    async def forward(self, message: Forward) -> None:
        def make(reply: Reply[str]) -> Message:
            if message.then is None:
                return Echo("forwarded", reply)
            return Forward(message.then, reply)

        try:
            message.reply.send(await message.to.ask(make, deadline_s=5))
        except CallCycle as error:
            message.reply.fail(error)

    async def terminate(self) -> None:
        self.record.terminated += 1
        if self.record.terminate_s:
            await trio.sleep(self.record.terminate_s)
        if self.record.terminate_error is not None:
            raise self.record.terminate_error


class Actor:
    """One probe actor and its address."""

    def __init__(self, name: str, capacity: int = 8) -> None:
        self.record = Recorder()
        self.address: Address[Message] = Address(f"root/{name}", capacity=capacity)
        self.ref = self.address.ref
        self.name = name

    def spec(self, **options):
        options = {"backoff": NO_BACKOFF, **options}
        return actor_child(self.name, lambda: Probe(self.record), self.address, **options)


async def quiet() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def begin(nursery: trio.Nursery, *actors: Actor, **options) -> tuple[Tree, ReportLog]:
    log = ReportLog()
    specs = [actor.spec(**options) for actor in actors]
    return await Tree(Supervisor(ONE, specs, reports=log)).begin(nursery), log


def echo(text: str):
    return lambda reply: Echo(text, reply)


# Tell and ask.


async def test_an_ask_is_answered_and_told_messages_keep_their_order(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    await begin(nursery, a)

    a.ref.tell("one")
    a.ref.tell("two")
    a.ref.tell_system("urgent")

    assert await a.ref.ask(echo("three"), deadline_s=1) == "three"
    assert a.record.seen == ["urgent", "one", "two", "three"]


async def test_messages_wait_for_the_first_incarnation(nursery, autojump_clock) -> None:
    a = Actor("a")
    a.ref.tell("early")

    await begin(nursery, a)
    await quiet()

    assert a.record.seen == ["early"]


async def test_a_refusal_is_a_reply_and_no_crash(nursery, autojump_clock) -> None:
    a = Actor("a")
    await begin(nursery, a)
    refusal = InvalidRequest("no")

    async def refuse() -> None:
        await quiet()
        a.record.held[0].fail(refusal)

    nursery.start_soon(refuse)
    with pytest.raises(InvalidRequest) as caught:
        await a.ref.ask(Hold, deadline_s=5)

    assert caught.value is refusal
    assert a.ref.incarnation == 1


async def test_an_ask_to_a_full_mailbox_fails_at_once(nursery, autojump_clock) -> None:
    a = Actor("a", capacity=1)
    await begin(nursery, a)
    gate = trio.Event()
    a.ref.tell(Wait(gate))
    await quiet()
    a.ref.tell("fills it")

    with pytest.raises(MailboxFull):
        await a.ref.ask(echo("x"), deadline_s=1)

    gate.set()


async def test_the_asker_of_a_crashing_message_is_told_and_queued_asks_reach_the_next_incarnation(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    _, log = await begin(nursery, a)
    answers: dict[str, object] = {}

    async def ask(name: str, make) -> None:
        try:
            answers[name] = await a.ref.ask(make, deadline_s=5)
        except ActorCrashed as error:
            answers[name] = error

    gate = trio.Event()
    a.ref.tell(Wait(gate))
    nursery.start_soon(ask, "first", Crash)
    await quiet()
    nursery.start_soon(ask, "second", echo("hello"))
    await quiet()
    gate.set()
    await quiet()

    crashed = answers["first"]
    assert isinstance(crashed, ActorCrashed)
    assert (crashed.path, crashed.incarnation) == ("root/a", 1)
    assert answers["second"] == "hello"
    assert a.ref.incarnation == 2
    assert isinstance(log.of(ChildExited)[0].exit, Crashed)


async def test_a_message_that_crashes_its_handler_is_handled_once(nursery, autojump_clock) -> None:
    a = Actor("a")
    await begin(nursery, a)

    a.ref.tell(Crash())
    for text in "xyz":
        a.ref.tell(text)
    await quiet()

    assert a.record.seen == ["crash", "x", "y", "z"]
    assert a.record.terminated == 1


async def test_an_answer_still_owed_when_the_actor_dies_is_a_crash_to_its_asker(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    await begin(nursery, a)
    outcome = []

    async def ask() -> None:
        with pytest.raises(ActorCrashed):
            await a.ref.ask(Hold, deadline_s=100)
        outcome.append(trio.current_time())

    nursery.start_soon(ask)
    await quiet()
    now = trio.current_time()
    a.ref.tell(Crash())
    await quiet()

    assert outcome == [now]


async def test_a_late_reply_is_dropped_and_counted_and_the_next_ask_is_unaffected(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    await begin(nursery, a)
    began = trio.current_time()

    with pytest.raises(AskTimeout) as timeout:
        await a.ref.ask(Hold, deadline_s=2)
    assert a.record.held[0].send("too late") is False

    assert trio.current_time() - began == pytest.approx(2.0)
    assert timeout.value.waited_s == pytest.approx(2.0)
    assert await a.ref.ask(echo("fresh"), deadline_s=1) == "fresh"
    assert a.address.mailbox.statistics().late == 1


async def test_a_second_answer_is_dropped_and_counted(nursery, autojump_clock) -> None:
    a = Actor("a")
    await begin(nursery, a)

    async def answer_twice() -> None:
        await quiet()
        assert a.record.held[0].send("one")
        assert not a.record.held[0].send("two")

    nursery.start_soon(answer_twice)

    assert await a.ref.ask(Hold, deadline_s=1) == "one"
    assert a.address.mailbox.statistics().late == 1


async def test_an_expired_ask_is_skipped_without_running_the_handler(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    await begin(nursery, a)
    gate = trio.Event()
    a.ref.tell(Wait(gate))

    with pytest.raises(AskTimeout):
        await a.ref.ask(echo("stale"), deadline_s=1)
    gate.set()
    await quiet()

    assert a.record.seen == []
    assert a.address.mailbox.statistics().expired == 1


async def test_an_asker_that_is_cancelled_leaves_no_debt(nursery, autojump_clock) -> None:
    a = Actor("a")
    await begin(nursery, a)

    with trio.move_on_after(1):
        await a.ref.ask(Hold, deadline_s=5)

    assert a.address.owed == 0


# Cycles.


async def test_a_cycle_of_asks_is_refused_at_once(nursery, autojump_clock) -> None:
    a, b = Actor("a"), Actor("b")
    await begin(nursery, a, b)
    began = trio.current_time()

    with pytest.raises(CallCycle) as cycle:
        await a.ref.ask(lambda reply: Forward(b.ref, reply, then=a.ref), deadline_s=5)

    assert cycle.value.chain == ("root/a", "root/b", "root/a")
    assert trio.current_time() == began


async def test_an_actor_that_asks_itself_is_a_cycle_even_from_a_told_message(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    await begin(nursery, a)

    with pytest.raises(CallCycle):
        await a.ref.ask(lambda reply: Forward(a.ref, reply), deadline_s=5)


async def test_a_task_beside_the_loop_may_ask_its_own_actor(nursery, autojump_clock) -> None:
    a = Actor("a")
    await begin(nursery, a)

    answer = await a.ref.ask(lambda reply: Forward(a.ref, reply, beside=True), deadline_s=5)

    assert answer == "forwarded"


async def test_the_chain_ends_with_the_message_that_brought_it(nursery, autojump_clock) -> None:
    a, b = Actor("a"), Actor("b")
    await begin(nursery, a, b)
    assert await a.ref.ask(lambda reply: Forward(b.ref, reply), deadline_s=5) == "forwarded"

    assert await b.ref.ask(lambda reply: Forward(a.ref, reply), deadline_s=5) == "forwarded"


async def test_a_told_message_carries_no_chain_of_the_ask_before_it(
    nursery, autojump_clock
) -> None:
    a, b = Actor("a"), Actor("b")
    await begin(nursery, a, b)
    assert await b.ref.ask(lambda reply: Forward(a.ref, reply), deadline_s=5) == "forwarded"
    reply: Reply[str] = Reply(deadline=trio.current_time() + 5)

    a.ref.tell(Forward(b.ref, reply))

    assert await reply.wait() == "forwarded"


async def test_a_task_started_by_a_task_beside_the_loop_keeps_the_chain(
    nursery, autojump_clock
) -> None:
    a, b = Actor("a"), Actor("b")
    await begin(nursery, a, b)
    assert a.record.me is not None
    me = a.record.me
    outcome: list[object] = []

    async def outer() -> None:
        me.start_soon(inner)

    async def inner() -> None:
        # It works for `b`, which waits: to ask `b` would be a cycle.
        waiting_chain.set(("root/b",))
        me.start_soon(innermost)

    async def innermost() -> None:
        with pytest.raises(CallCycle):
            await b.ref.ask(echo("x"), deadline_s=5)
        outcome.append("refused")

    me.start_soon(outer)
    await quiet()

    assert outcome == ["refused"]


# Stop.


async def test_an_answer_still_owed_at_a_stop_is_refused_at_once(nursery, autojump_clock) -> None:
    a = Actor("a")
    tree, _ = await begin(nursery, a)
    outcome = []

    async def ask() -> None:
        with pytest.raises(ActorStopped):
            await a.ref.ask(Hold, deadline_s=1000)
        outcome.append(trio.current_time())

    nursery.start_soon(ask)
    await quiet()
    await tree.end()
    await quiet()

    assert outcome == [trio.current_time()]


async def test_the_asker_hears_of_a_crash_before_a_slow_clean_up(nursery, autojump_clock) -> None:
    a = Actor("a")
    await begin(nursery, a)
    a.record.terminate_s = 1.0
    began = trio.current_time()

    with pytest.raises(ActorCrashed):
        await a.ref.ask(Crash, deadline_s=5)

    assert trio.current_time() == began


async def test_an_endless_clean_up_after_a_crash_is_cut(nursery, autojump_clock) -> None:
    a = Actor("a")
    _, log = await begin(nursery, a)
    a.record.terminate_s = 1000.0
    began = trio.current_time()
    monitor = a.ref.monitor()

    a.ref.tell(Crash())
    await monitor.wait()

    assert trio.current_time() - began == pytest.approx(2.0)
    assert isinstance(log.of(ChildExited)[0].exit, Crashed)
    a.record.terminate_s = 0.0


async def test_an_actor_started_again_by_hand_is_reached_again(nursery, autojump_clock) -> None:
    a = Actor("a")
    supervisor = Supervisor(ONE, [a.spec()])
    await Tree(supervisor).begin(nursery)
    await supervisor.terminate_child("a")
    with pytest.raises(ActorStopped):
        await a.ref.ask(echo("x"), deadline_s=1)

    await supervisor.restart_child("a")

    assert await a.ref.ask(echo("back"), deadline_s=1) == "back"


async def test_asks_queued_for_a_pending_restart_are_nacked_when_the_stop_is_ordered(
    nursery, autojump_clock
) -> None:
    a, b = Actor("a"), Actor("b")
    b.record.terminate_s = 3.0
    supervisor = Supervisor(ONE, [a.spec(backoff=Backoff(base_s=100, max_s=100)), b.spec()])
    tree = await Tree(supervisor).begin(nursery)
    for _ in range(2):
        a.ref.tell(Crash())
    await quiet()
    outcome = []

    async def ask() -> None:
        with pytest.raises(ActorStopped):
            await a.ref.ask(echo("x"), deadline_s=1000)
        outcome.append(trio.current_time())

    nursery.start_soon(ask)
    await quiet()
    began = trio.current_time()
    assert (await tree.end()).stop_s == pytest.approx(3.0)

    assert outcome == [began]


async def test_asks_of_a_root_that_gave_up_are_nacked(nursery, autojump_clock) -> None:
    a = Actor("a")
    tree = await Tree(Supervisor(SupervisorSpec(intensity=0), [a.spec()])).begin(nursery)
    gate = trio.Event()
    a.ref.tell(Wait(gate))
    await quiet()
    a.ref.tell(Crash())

    async def release() -> None:
        gate.set()

    nursery.start_soon(release)

    # Queued behind the crash, so that it waits for an incarnation that never comes.
    with trio.fail_after(1), pytest.raises(ActorStopped):
        await a.ref.ask(echo("x"), deadline_s=1000)

    assert tree.ended.is_set() or await tree.over()


async def test_the_queue_of_a_stuck_actor_is_nacked_when_it_is_terminated(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    supervisor = Supervisor(DYNAMIC)
    await Tree(supervisor).begin(nursery)
    await supervisor.start_child(a.spec(restart=Restart.TEMPORARY))
    gate = trio.Event()
    a.ref.tell(WaitShielded(gate))
    await quiet()
    outcome = []

    async def ask() -> None:
        with pytest.raises(ActorStopped):
            await a.ref.ask(echo("x"), deadline_s=1000)
        outcome.append("nacked")

    nursery.start_soon(ask)
    await quiet()
    try:
        exit = await supervisor.terminate_child("a")
        await quiet()
        assert isinstance(exit, Stuck)
        assert outcome == ["nacked"]
        assert supervisor.snapshot().children[0].state == "stuck"
    finally:
        gate.set()
    await quiet()
    assert supervisor.count_children() == 0


async def test_a_stop_overtakes_the_user_lane_and_nacks_every_queued_ask_at_once(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    tree, _ = await begin(nursery, a)
    gate = trio.Event()
    a.ref.tell(Wait(gate))
    ended_at = []

    async def ask() -> None:
        with pytest.raises(ActorStopped):
            await a.ref.ask(echo("never"), deadline_s=1000)
        ended_at.append(trio.current_time())

    for _ in range(5):
        nursery.start_soon(ask)
    await quiet()
    a.ref.tell_system("cancel sent before the stop")
    tree.stop.set()
    await quiet()
    gate.set()
    await tree.over()

    assert ended_at == [trio.current_time()] * 5
    assert a.record.seen == ["cancel sent before the stop"]
    assert a.record.terminated == 1
    with pytest.raises(ActorStopped):
        await a.ref.ask(echo("after"), deadline_s=1)


async def test_an_actor_may_end_itself_normally(nursery, autojump_clock) -> None:
    a = Actor("a")
    tree, log = await begin(nursery, a, restart=Restart.TEMPORARY)

    a.ref.tell(Leave())
    await quiet()

    assert [report.exit for report in log.of(ChildExited)] == [Normal()]
    assert a.record.terminated == 1
    assert not a.ref.alive
    await tree.end()


async def test_a_message_to_a_stopped_actor_is_a_dead_letter_and_no_error(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    tree, _ = await begin(nursery, a)
    await tree.end()

    a.ref.tell("nobody home")
    a.ref.tell_system("nobody home")

    assert a.address.mailbox.statistics().dead == 2


async def test_a_sibling_restart_keeps_the_queue_and_a_stop_for_good_does_not(
    nursery, autojump_clock
) -> None:
    a, b = Actor("a"), Actor("b")
    spec = SupervisorSpec(strategy=Strategy.REST_FOR_ONE)
    tree = await Tree(Supervisor(spec, [a.spec(), b.spec()])).begin(nursery)
    gate = trio.Event()
    b.ref.tell(Wait(gate))
    await quiet()
    for text in "xyz":
        b.ref.tell(text)

    a.ref.tell(Crash())
    await quiet()
    gate.set()
    await quiet()

    assert b.record.seen == ["x", "y", "z"]
    assert b.ref.incarnation == 2
    await tree.end()


async def test_asks_queued_under_a_supervisor_that_ends_for_good_are_nacked(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    inner = Supervisor(SupervisorSpec(intensity=0), [a.spec()])
    root = Supervisor(ONE, [inner.child("inner", restart=Restart.TEMPORARY)])
    await Tree(root).begin(nursery)
    gate = trio.Event()
    a.ref.tell(Wait(gate))
    await quiet()
    a.ref.tell(Crash())

    async def ask() -> None:
        with pytest.raises(ActorStopped):
            await a.ref.ask(echo("x"), deadline_s=1000)

    nursery.start_soon(ask)
    await quiet()
    gate.set()
    with trio.fail_after(1):
        await quiet()

    assert a.address.mailbox.closed


async def test_a_killed_actor_does_not_terminate_but_its_debts_are_settled(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    tree, log = await begin(nursery, a, shutdown=Grace(1))
    a.ref.tell(Wait(trio.Event()))
    monitor = a.ref.monitor()

    await tree.end()

    assert [report.exit for report in log.of(ChildExited)] == [Killed()]
    assert a.record.terminated == 0
    assert (await monitor.wait()).exit == Killed()


async def test_a_crash_in_terminate_after_a_crash_does_not_hide_the_first(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    _, log = await begin(nursery, a)
    a.record.terminate_error = OSError("second")

    a.ref.tell(Crash())
    await quiet()

    (exited,) = log.of(ChildExited)
    assert isinstance(exited.exit, Crashed)
    assert exited.exit.kind == "ValueError"
    a.record.terminate_error = None


async def test_a_failed_start_is_not_terminated(nursery, autojump_clock) -> None:
    a = Actor("a")
    a.record.start_error = OSError("no")
    tree, _ = await begin(nursery, a)
    outcome = await tree.over()

    assert isinstance(outcome.exit, InitFailed)
    assert a.record.terminated == 0


# Tasks beside the loop.


async def test_a_crash_beside_the_loop_is_the_actors_crash(nursery, autojump_clock) -> None:
    a = Actor("a")
    _, log = await begin(nursery, a)
    outcome = []

    async def fail() -> None:
        raise OSError("socket gone")

    async def ask() -> None:
        with pytest.raises(ActorCrashed):
            await a.ref.ask(Hold, deadline_s=100)
        outcome.append("told")

    nursery.start_soon(ask)
    await quiet()
    assert a.record.me is not None
    a.record.me.start_soon(fail)
    await quiet()

    (exited,) = log.of(ChildExited)
    assert isinstance(exited.exit, Crashed)
    assert exited.exit.kind == "OSError"
    assert outcome == ["told"]
    assert a.ref.incarnation == 2


async def test_tasks_beside_the_loop_end_after_terminate(nursery, autojump_clock) -> None:
    a = Actor("a")
    tree, _ = await begin(nursery, a)
    ended = []

    async def serve() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(a.record.terminated)

    assert a.record.me is not None
    a.record.me.start_soon(serve)
    await quiet()
    await tree.end()

    assert ended == [1]


async def test_a_busy_actor_lets_others_run(nursery, autojump_clock) -> None:
    a, b = Actor("a", capacity=10_000), Actor("b", capacity=10)
    await begin(nursery, a, b)
    for number in range(5_000):
        a.ref.tell(str(number))
    await trio.lowlevel.checkpoint()

    assert await b.ref.ask(echo("quick"), deadline_s=1) == "quick"
    assert len(a.record.seen) < 5_000
    await quiet()
    assert len(a.record.seen) == 5_000


# Monitors.


async def test_a_monitor_hears_of_the_end_once(nursery, autojump_clock) -> None:
    a = Actor("a")
    await begin(nursery, a)
    heard: list[Down] = []
    monitor = a.ref.monitor(heard.append)

    a.ref.tell(Crash())
    await quiet()
    a.ref.tell(Crash())
    await quiet()

    down = await monitor.wait()
    assert heard == [down]
    assert (down.path, down.incarnation) == ("root/a", 1)
    assert isinstance(down.exit, Crashed)


async def test_monitoring_the_dead_is_answered_at_once(nursery, autojump_clock) -> None:
    a = Actor("a")
    before: list[Down] = []
    a.ref.monitor(before.append)
    tree, _ = await begin(nursery, a)
    await tree.end()

    down = await a.ref.monitor().wait()

    assert before == [Down(path=a.ref.path, incarnation=0, exit=None)]
    assert down == Down(path=a.ref.path, incarnation=1, exit=Stopped())


async def test_a_cancelled_monitor_hears_nothing(nursery, autojump_clock) -> None:
    a = Actor("a")
    tree, _ = await begin(nursery, a)
    heard: list[Down] = []
    a.ref.monitor(heard.append).cancel()

    await tree.end()

    assert heard == []


async def test_the_actor_is_dead_before_its_monitors_hear(nursery, autojump_clock) -> None:
    a = Actor("a")
    supervisor = Supervisor(DYNAMIC)
    await Tree(supervisor).begin(nursery)
    await supervisor.start_child(a.spec(restart=Restart.TEMPORARY))
    alive: list[bool] = []
    a.ref.monitor(lambda down: alive.append(a.ref.alive))

    a.ref.tell(Leave())
    await quiet()

    assert alive == [False]
    await supervisor.start_child(a.spec(restart=Restart.TEMPORARY))
    assert a.ref.alive


# The tree.


async def test_the_snapshot_shows_mailboxes_exits_and_levels(nursery, autojump_clock) -> None:
    a, b = Actor("a"), Actor("b")
    inner = Supervisor(
        SupervisorSpec(strategy=Strategy.REST_FOR_ONE, intensity=5, period_s=60), [b.spec()]
    )
    root = Supervisor(ONE, [a.spec(), inner.child("inner")])
    await Tree(root).begin(nursery)
    b.ref.tell(Crash())
    await trio.sleep(10)
    gate = trio.Event()
    a.ref.tell(Wait(gate))
    await quiet()
    a.ref.tell("queued")
    await trio.sleep(2)

    tree = root.snapshot()

    assert (tree.path, tree.kind, tree.state) == ("root", "supervisor", "up")
    assert (tree.strategy, tree.intensity) == ("one_for_one", 100)
    assert tree.counts == ChildCounts(specs=2, active=2, supervisors=1, workers=1)
    first, second = tree.children
    assert (first.path, first.kind, first.state) == ("root/a", "worker", "up")
    assert first.mailbox is not None
    assert (first.mailbox.depth, first.mailbox.capacity) == (1, 8)
    assert (first.mailbox.current, first.mailbox.current_age_s) == ("Wait", pytest.approx(2))
    assert first.uptime_s == pytest.approx(12)
    assert (second.path, second.strategy) == ("root/inner", "rest_for_one")
    assert (second.restarts_in_window, second.intensity) == (1, 5)
    assert second.counts == ChildCounts(specs=1, active=1, supervisors=0, workers=1)
    assert first.counts is None
    (third,) = second.children
    assert (third.path, third.incarnation, third.restarts) == ("root/inner/b", 2, 1)
    assert third.last_exit is not None
    assert (third.last_exit.kind, third.last_exit.text) == ("crashed", "ValueError: told to crash")
    assert third.last_exit.age_s == pytest.approx(12)
    gate.set()


async def test_the_snapshot_answers_while_an_actor_is_stuck_and_shows_on_what(
    nursery, autojump_clock
) -> None:
    a = Actor("a")
    root = Supervisor(ONE, [a.spec(shutdown=Grace(1), kill_grace_s=1)])
    tree = await Tree(root).begin(nursery)
    gate = trio.Event()
    a.ref.tell(WaitShielded(gate))
    await quiet()
    a.ref.tell("queued")

    tree.stop.set()
    await trio.sleep(1.5)
    killing = root.snapshot()
    await tree.over()
    stuck = root.snapshot()
    # Trio can't end while a shielded task runs: a failing test would hang.
    gate.set()

    (node,) = killing.children
    assert (node.state, node.uptime_s) == ("killing", pytest.approx(1.5))
    assert node.mailbox is not None
    assert (node.mailbox.current, node.mailbox.current_age_s) == (
        "WaitShielded",
        pytest.approx(1.5),
    )
    assert (node.mailbox.depth, node.mailbox.oldest_age_s) == (1, pytest.approx(1.5))
    (node,) = stuck.children
    assert node.last_exit is not None
    assert (node.state, node.last_exit.kind) == ("stuck", "stuck")
    assert stuck.counts == ChildCounts(specs=1, active=1, supervisors=0, workers=1)

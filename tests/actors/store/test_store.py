"""The store actor in a tree of its own, over a store that the test scripts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import trio
import trio.testing

from antiphon.actors.actor import actor_child
from antiphon.actors.address import Address
from antiphon.actors.breaker import Verdict
from antiphon.actors.store.client import StoreClient
from antiphon.actors.store.messages import StoreMessage
from antiphon.actors.store.status import StoreStatus, judge
from antiphon.actors.store.store import StoreActor
from antiphon.errors import (
    ConversationLocked,
    MailboxFull,
    SchemaMismatch,
    StorageFull,
    StoreError,
    StoreFailed,
    StoreUnavailable,
)
from antiphon.ids import LOCAL_USER, ActorPath, KeyId
from antiphon.storage import Store
from antiphon.supervision.exits import Stopped
from antiphon.supervision.spec import Grace, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Tree
from antiphon.testing.stores import ScriptedOpener
from antiphon.testing.telemetry import RecordingTelemetry

DEADLINE_S = 10.0
PLACES = 2
MAILBOX = 4


@dataclass(kw_only=True)
class Bench:
    opener: ScriptedOpener
    status: StoreStatus
    client: StoreClient
    telemetry: RecordingTelemetry
    supervisor: Supervisor
    tree: Tree
    nursery: trio.Nursery
    address: Address[StoreMessage]

    async def settle(self) -> None:
        await trio.testing.wait_all_tasks_blocked()

    def lose(self, reason: str = "connection refused") -> None:
        """From now on the database answers nobody."""
        error = StoreUnavailable(reason)

        async def fail() -> None:
            raise error

        self.opener.error = error
        self.opener.store.before = fail

    def restore(self) -> None:
        self.opener.error = None
        self.opener.store.before = None


@asynccontextmanager
async def bench(
    opener: ScriptedOpener | None = None, *, grace_s: float = DEADLINE_S + 20.0
) -> AsyncIterator[Bench]:
    opener = opener or ScriptedOpener()
    status, telemetry = StoreStatus(), RecordingTelemetry()
    address: Address[StoreMessage] = Address("root/store", capacity=MAILBOX)
    supervisor = Supervisor(
        SupervisorSpec(intensity=2),
        [
            actor_child(
                "store",
                lambda: StoreActor(
                    opener,
                    status,
                    telemetry,
                    concurrency=PLACES,
                    deadline_s=DEADLINE_S,
                    start_wait_s=60.0,
                ),
                address,
                init_timeout_s=600.0,
                shutdown=Grace(grace_s),
                kill_grace_s=DEADLINE_S + 20.0,
            )
        ],
    )
    client = StoreClient(address, status, telemetry, deadline_s=DEADLINE_S)
    async with trio.open_nursery() as nursery:
        tree = Tree(supervisor)
        yield Bench(
            opener=opener,
            status=status,
            client=client,
            telemetry=telemetry,
            supervisor=supervisor,
            tree=tree,
            nursery=nursery,
            address=address,
        )
        tree.stop.set()


async def has_keys(store: Store) -> bool:
    return await store.has_keys()


async def failing(client: StoreClient) -> StoreError:
    with pytest.raises(StoreError) as caught:
        await client.run(has_keys)
    return caught.value


async def test_a_unit_of_work_is_done_and_answered_and_counted(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)

        assert await it.client.run(has_keys) is False
        assert it.status.problem() is None
        assert it.telemetry.named("store_unit_finished") == [("read", "ok", 0.0)]


async def test_what_the_work_raises_is_raised_to_its_caller_and_is_no_failure_of_the_store(
    autojump_clock: trio.testing.MockClock,
):
    async def locked(store: Store) -> None:
        await store.add_user  # type: ignore[misc]  # a mistake of the caller's

    async def refused(store: Store) -> None:
        raise ConversationLocked("conv_1")

    async with bench() as it:
        await it.tree.begin(it.nursery)
        for _ in range(10):
            with pytest.raises(ConversationLocked):
                await it.client.run(refused)
            with pytest.raises(TypeError):
                await it.client.run(locked)

        assert await it.client.run(has_keys) is False
        assert it.status.statistics().breaker.circuit == "closed"
        outcomes = [report[:2] for report in it.telemetry.named("store_unit_finished")]
        assert set(outcomes) == {("read", "refused"), ("write", "defect"), ("read", "ok")}


async def test_a_caller_that_leaves_drops_the_answer_and_not_the_work(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        done, gate = [], trio.Event()

        async def slow(store: Store) -> None:
            await gate.wait()
            done.append(await store.has_keys())

        with trio.move_on_after(1) as scope:
            await it.client.run(slow)
        gate.set()
        await it.settle()

        assert scope.cancelled_caught
        assert done == [False]


async def test_work_that_waits_for_a_place_is_done_also_when_its_caller_has_left(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        done: list[int] = []
        gate = trio.Event()

        async def work(number: int) -> None:
            async def unit(store: Store) -> None:
                await gate.wait()
                done.append(number)

            with trio.move_on_after(1):
                await it.client.run(unit)

        async with trio.open_nursery() as callers:
            for number in range(PLACES + MAILBOX):
                callers.start_soon(work, number)
                await it.settle()
        gate.set()
        await it.settle()

        assert sorted(done) == list(range(PLACES + MAILBOX))


async def test_work_past_its_deadline_is_cut_and_its_caller_told(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        ends: list[float] = []

        async def forever(store: Store) -> None:
            try:
                await trio.sleep_forever()
            finally:
                ends.append(trio.current_time() - began)

        began = trio.current_time()
        with pytest.raises(StoreUnavailable, match="no answer within 10 s") as caught:
            await it.client.run(forever)

        assert ends == [DEADLINE_S]
        assert not caught.value.refused
        assert it.status.problem() is None, "the probe after it was answered"


async def test_work_that_waited_past_its_deadline_is_not_begun(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        begun: list[int] = []
        refused: list[bool] = []

        async def work(number: int) -> None:
            async def unit(store: Store) -> None:
                begun.append(number)
                await trio.sleep_forever()

            with pytest.raises(StoreUnavailable) as caught:
                await it.client.run(unit)
            refused.append(caught.value.refused)

        async with trio.open_nursery() as callers:
            for number in range(PLACES + 1):
                callers.start_soon(work, number)
                await it.settle()

        assert begun == list(range(PLACES))
        assert sorted(refused) == [False] * PLACES + [True]


async def test_more_work_than_may_wait_is_refused_at_once_and_opens_no_circuit(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        gate, refused, done = trio.Event(), [], []

        async def unit(store: Store) -> None:
            await gate.wait()

        async def call() -> None:
            try:
                await it.client.run(unit)
                done.append(1)
            except StoreUnavailable as error:
                refused.append((error.reason, error.refused))

        async with trio.open_nursery() as callers:
            for _ in range(20):
                callers.start_soon(call)
                await it.settle()
            gate.set()

        # Two run, one is in the actor's hand, the mailbox holds the rest.
        assert len(done) == PLACES + 1 + MAILBOX
        assert set(refused) == {("overloaded", True)}
        assert it.status.statistics().breaker.opened == 0
        assert it.telemetry.named("store_refused") == [("overloaded",)] * len(refused)


async def test_a_lost_database_costs_answers_and_never_the_actor(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        it.lose()
        for _ in range(1000):
            await failing(it.client)
            await trio.sleep(0.1)
        reason = it.status.problem()
        (child,) = it.supervisor.snapshot().children
        it.restore()
        await trio.sleep(6)

        assert reason == "unavailable: connection refused"
        assert child.incarnation == 1
        assert it.status.problem() is None
        assert await it.client.run(has_keys) is False
        assert it.opener.opened == it.opener.closed + 1 == 2


async def test_while_the_database_is_away_nearly_every_call_is_refused_without_being_sent(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        it.lose()
        errors = [await failing(it.client) for _ in range(100)]

        assert [error.refused for error in errors[10:]] == [True] * 90
        assert all(error.retry_after_s <= 2.0 for error in errors)
        assert it.status.statistics().breaker.circuit == "open"


async def test_a_circuit_that_nobody_tries_does_not_keep_the_server_out_of_traffic(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        it.lose()
        for _ in range(10):
            await failing(it.client)
        it.restore()
        await trio.sleep(60)

        assert it.status.problem() is None


async def test_a_blip_is_no_outage_when_the_probe_is_answered(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)

        async def once(store: Store) -> None:
            raise StoreUnavailable("one connection was lost")

        with pytest.raises(StoreUnavailable):
            await it.client.run(once)
        await it.settle()

        assert it.status.problem() is None
        assert it.opener.opened == 1


async def test_a_full_disk_is_no_outage(autojump_clock: trio.testing.MockClock):
    async with bench() as it:
        await it.tree.begin(it.nursery)

        async def write(store: Store) -> None:
            raise StoreFailed("disk full")

        for _ in range(10):
            with pytest.raises(StoreFailed):
                await it.client.run(write)

        assert await it.client.run(has_keys) is False
        assert it.status.failed == 10
        assert it.opener.opened == 1


async def test_a_full_disk_is_a_worry_until_something_is_written(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)

        async def write(store: Store) -> None:
            raise StorageFull("database or disk is full")

        with pytest.raises(StorageFull):
            await it.client.run(write)
        assert it.status.problem() is None
        assert it.status.concern() is not None
        await it.client.run(has_keys)
        await it.client.run(lambda store: store.expire(1))
        assert it.status.concern() is not None, "neither needed any space"
        await it.client.run(lambda store: store.touch_keys({KeyId("key_1"): 1}))
        assert it.status.concern() is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SchemaMismatch("9", "7"), "schema 9, this program knows 7"),
        (StoreFailed("file is not a database"), "file is not a database"),
    ],
)
async def test_a_database_that_cannot_be_used_stops_the_start_at_once(
    error: StoreError, words: str, autojump_clock: trio.testing.MockClock
):
    opener = ScriptedOpener()
    opener.error = error
    async with bench(opener) as it:
        await it.tree.begin(it.nursery)

        outcome = await it.tree.over()

        assert words in str(outcome.exit)
        assert opener.attempts == 1


async def test_a_database_that_does_not_answer_is_waited_for_at_the_start(
    autojump_clock: trio.testing.MockClock,
):
    opener = ScriptedOpener()
    opener.error = StoreUnavailable("connection refused")
    async with bench(opener) as it:
        it.nursery.start_soon(it.tree.begin, it.nursery)
        await trio.sleep(20)
        while_away = it.status.problem()
        opener.error = None
        await trio.sleep(6)

        assert while_away == "unavailable: connection refused"
        assert it.status.problem() is None


async def test_a_database_that_never_answers_fails_the_start_in_the_end(
    autojump_clock: trio.testing.MockClock,
):
    opener = ScriptedOpener()
    opener.error = StoreUnavailable("connection refused")
    async with bench(opener) as it:
        await it.tree.begin(it.nursery)
        outcome = await it.tree.over()

        assert "connection refused" in str(outcome.exit)
        assert 60 <= trio.current_time() < 70


async def test_a_newer_schema_found_while_running_is_an_outage_and_no_crash(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        it.lose()
        await failing(it.client)
        it.opener.error = SchemaMismatch("9", "7")
        await trio.sleep(60)
        (child,) = it.supervisor.snapshot().children

        assert it.status.problem() == (
            "unavailable: the database has schema 9, this program knows 7"
        )
        assert child.incarnation == 1


async def test_a_stop_lets_the_work_under_way_end_before_the_database_is_closed(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        closed_then: list[int] = []

        async def slow(store: Store) -> str:
            await trio.sleep(5)
            closed_then.append(it.opener.closed)
            return "done"

        answers: list[str] = []

        async def call() -> None:
            answers.append(await it.client.run(slow))

        it.nursery.start_soon(call)
        await it.settle()
        outcome = await it.tree.end()

        assert outcome.exit == Stopped()
        assert (answers, closed_then, it.opener.closed) == (["done"], [0], 1)


@pytest.mark.parametrize("way", ["at once", "after its grace", "by a crash"])
async def test_a_kill_closes_the_database_too_and_only_after_the_work_under_way(
    way: str, autojump_clock: trio.testing.MockClock
):
    async with bench(grace_s={"at once": 0.001, "after its grace": 0.5}.get(way, 30.0)) as it:
        await it.tree.begin(it.nursery)
        closed_then: list[int] = []
        answers: list[str] = []

        async def slow(store: Store) -> str:
            await trio.sleep(5)
            closed_then.append(it.opener.closed)
            return "done"

        async def call() -> None:
            answers.append(await it.client.run(slow))

        it.nursery.start_soon(call)
        await it.settle()
        if way == "by a crash":
            it.address.ref.tell("no message of its")  # type: ignore[arg-type]
            await trio.sleep(DEADLINE_S + 1)
        outcome = await it.tree.end()

        assert outcome.stuck == ()
        assert (answers, closed_then) == (["done"], [0])
        assert it.opener.closed == it.opener.opened


async def test_a_stopped_store_refuses_at_once(autojump_clock: trio.testing.MockClock):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        await it.tree.end()

        error = await failing(it.client)

        assert (error.reason, error.refused) == ("not running", True)


async def test_an_answer_is_never_waited_for_longer_than_the_deadline_of_a_stuck_actor(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)

        async def stuck(store: Store) -> None:
            with trio.CancelScope(shield=True):
                await gate.wait()

        gate = trio.Event()
        began = trio.current_time()
        with pytest.raises(StoreUnavailable):
            await it.client.run(stuck)
        waited_s = trio.current_time() - began
        gate.set()

        assert waited_s == DEADLINE_S + 1


async def test_a_write_is_told_from_a_read(autojump_clock: trio.testing.MockClock):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        await it.client.run(lambda store: store.touch_keys({}))
        await it.client.run(lambda store: store.user(LOCAL_USER))

        kinds = [report[0] for report in it.telemetry.named("store_unit_finished")]
        assert kinds == ["write", "read"]


async def test_a_restart_during_an_outage_succeeds_and_the_outage_goes_on(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        it.lose()
        await failing(it.client)
        it.address.ref.tell("no message of its")  # type: ignore[arg-type]
        await trio.sleep(30)
        (child,) = it.supervisor.snapshot().children
        during = it.status.problem()
        it.restore()
        await trio.sleep(6)

        assert (child.incarnation, child.state) == (2, "up")
        assert during == "unavailable: connection refused"
        assert await it.client.run(has_keys) is False


async def test_work_that_still_runs_when_the_database_is_lost_is_not_cut_by_the_stop(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        answers: list[str] = []

        async def slow(store: Store) -> str:
            await trio.sleep(5)
            return "done"

        async def call() -> None:
            answers.append(await it.client.run(slow))

        it.nursery.start_soon(call)
        await it.settle()
        it.lose()
        await failing(it.client)
        await it.settle()
        lost = it.status.problem()
        await it.tree.end()

        assert lost == "unavailable: connection refused"
        assert answers == ["done"]


async def test_a_call_leaves_nothing_behind_at_the_address(
    autojump_clock: trio.testing.MockClock,
):
    async with bench() as it:
        await it.tree.begin(it.nursery)
        for _ in range(10):
            await it.client.run(has_keys)

        assert len(it.address._monitors) == 0


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (StoreUnavailable("gone"), Verdict.FAILURE),
        (StoreFailed("disk full"), Verdict.SUCCESS),
        (ConversationLocked("conv_1"), Verdict.SUCCESS),
        (MailboxFull(ActorPath("root/store"), 1), Verdict.NOTHING),
        (ValueError("a defect"), Verdict.NOTHING),
    ],
)
def test_only_silence_speaks_against_the_database(error: Exception, verdict: Verdict):
    assert judge(error) is verdict

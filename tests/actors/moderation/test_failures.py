"""Judges that die, hang, are slow or can't be started: each rule's own policy holds, the verdict
says what happened, and others go on."""

import pytest
import trio
import trio.testing

from antiphon.actors.moderation.edition import make_edition
from antiphon.actors.moderation.messages import Prepare
from antiphon.errors import ModerationUnavailable
from antiphon.judging import Judged
from antiphon.moderating import Judge
from antiphon.testing.judges import ScriptedJudge, ScriptedJudges, blocks
from antiphon.testing.moderation import RULES, EventStore, Running, a_turn, moderating, node
from antiphon.testing.telemetry import RecordingTelemetry
from antiphon.verdicts import Failure, OnFailure, Stage, Verdict

OPEN = RULES.replace('on_failure = "closed"', 'on_failure = "open"')


def judges(**fields: object) -> ScriptedJudges:
    find = blocks("apple pie", "no-apples")
    return ScriptedJudges(make=lambda: ScriptedJudge(**{"find": find, **fields}))


async def ask(handle: Judge, text: str = "a text") -> Verdict:
    [verdict] = await handle.judge(Stage.INPUT, [text])
    return verdict


def failures(verdict: Verdict) -> dict[str, tuple[Failure, OnFailure]]:
    return {one.rule: (one.failure, one.on_failure) for one in verdict.not_run}


def all_rules(failure: Failure) -> dict[str, tuple[Failure, OnFailure]]:
    return {"no-apples": (failure, OnFailure.CLOSED), "no-harm": (failure, OnFailure.OPEN)}


def worker_state(running: Running, number: int = 1) -> tuple[str, int]:
    child = node(running.tree(), f"root/moderation/judges/judge-{number}")
    return child.state, child.restarts


async def test_a_killed_judge_costs_the_texts_that_it_had_and_comes_back(
    autojump_clock: trio.testing.MockClock,
):
    launcher, telemetry, store = judges(batch_s=0.2), RecordingTelemetry(), EventStore()
    async with moderating(launcher, telemetry=telemetry, store=store) as running:
        await trio.testing.wait_all_tasks_blocked()
        handle = running.service.judge_for(a_turn())
        lost: list[Verdict] = []

        async def lose() -> None:
            lost.append(await ask(handle))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lose)
            await trio.sleep(0.1)
            began = trio.current_time()
            launcher.link.die()
        assert trio.current_time() - began < 0.1, "nobody waits for the deadline"

        found = await ask(handle, "an apple pie")
        await trio.sleep(1)

    assert failures(lost[0]) == all_rules(Failure.WORKER_LOST)
    assert lost[0].blocked_by == "no-apples"
    assert found.findings
    assert len(launcher.links) == 2
    assert telemetry.named("judge_restarted") == [()]
    assert telemetry.named("rule_not_run") == [("worker_lost", "closed"), ("worker_lost", "open")]
    assert [outcome for _, outcome in telemetry.named("texts_judged")] == ["blocked", "blocked"]
    assert [(event.rule, event.action, dict(event.detail)) for event in store.events[:2]] == [
        ("no-apples", "not_run", {"failure": "worker_lost", "on_failure": "closed"}),
        ("no-harm", "not_run", {"failure": "worker_lost", "on_failure": "open"}),
    ]


async def test_a_judge_that_dies_takes_nothing_along(autojump_clock: trio.testing.MockClock):
    launcher = judges(batch_s=0.05)
    async with moderating(launcher, workers=2) as running:
        await trio.testing.wait_all_tasks_blocked()
        handle = running.service.judge_for(a_turn())
        launcher.links[0].die()
        await trio.testing.wait_all_tasks_blocked()
        verdict = await ask(handle)

        assert not verdict.not_run
        assert worker_state(running, 1) == ("up", 1)
        assert worker_state(running, 2) == ("up", 0)
        assert node(running.tree(), "root/moderation/desk").restarts == 0


async def test_a_hung_judge_is_killed_and_replaced(autojump_clock: trio.testing.MockClock):
    launcher = judges()
    async with moderating(launcher, deadline_s=1.0) as running:
        await trio.testing.wait_all_tasks_blocked()
        service, handle = running.service, running.service.judge_for(a_turn())
        hung = launcher.link
        hung.hang()
        began = trio.current_time()
        verdict = await ask(handle)
        waited_s = trio.current_time() - began
        await trio.sleep(1.0)
        stalled = service.view().judges[0].state, service.problem()
        await trio.sleep(1.5)

        assert waited_s == pytest.approx(1.0)
        assert failures(verdict) == all_rules(Failure.DEADLINE)
        assert stalled == ("stalled", "no judge process works (stalled)")
        assert hung.killed
        assert len(launcher.links) == 2
        assert not (await ask(handle, "another")).not_run
        assert service.problem() is None


async def test_an_idle_judge_that_falls_silent_is_replaced_before_anybody_needs_it(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges()
    async with moderating(launcher) as running:
        await trio.sleep(100)
        assert len(launcher.links) == 1, "one that lives is left alone"
        launcher.link.hang()
        await trio.sleep(4)

        assert [link.killed for link in launcher.links] == [True, False]
        assert worker_state(running) == ("up", 1)


async def test_a_slow_judge_costs_no_more_than_the_deadline(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges(batch_s=1.5)
    async with moderating(launcher, deadline_s=1.0) as running:
        await trio.testing.wait_all_tasks_blocked()
        handle = running.service.judge_for(a_turn())
        began = trio.current_time()

        verdict = await ask(handle)

        assert trio.current_time() - began == pytest.approx(1.0)
        assert failures(verdict) == all_rules(Failure.DEADLINE)
        await trio.sleep(5)
        assert len(launcher.links) == 1, "slow is not dead"


async def test_a_full_queue_refuses_at_once(autojump_clock: trio.testing.MockClock):
    launcher = judges(batch_s=0.3)
    async with moderating(launcher, queue=4) as running:
        await trio.testing.wait_all_tasks_blocked()
        handle = running.service.judge_for(a_turn())
        told: list[tuple[float, Verdict]] = []

        async def one(text: str) -> None:
            verdict = await ask(handle, text)
            told.append((trio.current_time(), verdict))

        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, "in hand")
            await trio.sleep(0.01)
            for number in range(20):
                nursery.start_soon(one, f"text {number}")

        refused = [(at, verdict) for at, verdict in told if verdict.not_run]
        assert len(refused) == 16
        assert all(at - began < 0.1 for at, _ in refused)
        assert all(failures(verdict) == all_rules(Failure.QUEUE_FULL) for _, verdict in refused)


async def test_failures_in_a_row_open_the_circuit_and_a_probe_closes_it(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges(batch_s=1.5)
    async with moderating(launcher, deadline_s=1.0) as running:
        await trio.testing.wait_all_tasks_blocked()
        handle = running.service.judge_for(a_turn())
        for number in range(5):
            await ask(handle, f"slow {number}")
        began = trio.current_time()
        refused = await ask(handle, "refused")
        problem = running.service.problem()
        assert trio.current_time() == began
        assert failures(refused) == all_rules(Failure.CIRCUIT_OPEN)
        assert problem == "judging failed 5 times in a row"

        launcher.link.batch_s = 0.0
        await trio.sleep(6)

        assert not (await ask(handle, "probe")).not_run
        assert not (await ask(handle, "after it")).not_run
        assert running.service.problem() is None


async def test_a_judge_that_can_not_be_started_is_tried_less_and_less_often(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges()
    async with moderating(launcher) as running:
        await trio.testing.wait_all_tasks_blocked()
        launcher.broken = "no memory"
        launcher.link.die()
        await trio.sleep(300)
        service = running.service
        assert service.problem() == "no judge process works (down: no memory)"
        assert failures(await ask(service.judge_for(a_turn()))) == all_rules(Failure.DEADLINE)

        launcher.broken = None
        await trio.sleep(40)

        assert not (await ask(service.judge_for(a_turn()))).not_run
        assert service.problem() is None


async def test_without_a_rule_that_fails_closed_the_server_stays_ready(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges()
    async with moderating(launcher, rules=OPEN) as running:
        await trio.testing.wait_all_tasks_blocked()
        assert (running.service.problem(), running.service.concern()) == (None, None)
        launcher.broken = "no memory"
        launcher.link.die()
        await trio.sleep(1)

        assert running.service.problem() is None
        assert running.service.concern() == "no judge process works (down: no memory)"
        verdict = await ask(running.service.judge_for(a_turn()))
        assert verdict.blocked_by is None
        assert verdict.not_run


async def test_one_of_two_judges_down_is_a_concern(autojump_clock: trio.testing.MockClock):
    launcher = judges()
    async with moderating(launcher, workers=2) as running:
        await trio.testing.wait_all_tasks_blocked()
        launcher.broken = "no memory"
        launcher.links[0].die()
        await trio.sleep(1)

        assert running.service.problem() is None
        assert running.service.concern() == "judge-1 not working"


async def test_a_judge_that_answers_what_nobody_asked_is_replaced(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges()
    async with moderating(launcher):
        await trio.testing.wait_all_tasks_blocked()
        launcher.link._queue(Judged(number=99))
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(1)

        assert [link.killed for link in launcher.links] == [True, False]


async def test_scores_are_refused_with_the_reason(autojump_clock: trio.testing.MockClock):
    launcher = judges(batch_s=2.0)
    async with moderating(launcher, deadline_s=1.0) as running:
        with pytest.raises(ModerationUnavailable, match="no verdict in time"):
            await running.service.score(["a"])


async def test_a_stop_ends_the_judge_in_order_and_answers_who_waits(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges(batch_s=50.0)
    told: list[Verdict] = []
    async with (
        trio.open_nursery() as nursery,
        moderating(launcher, deadline_s=100.0) as running,
    ):
        await trio.testing.wait_all_tasks_blocked()
        handle = running.service.judge_for(a_turn())

        async def one() -> None:
            told.append(await ask(handle))

        nursery.start_soon(one)
        await trio.sleep(0.1)

    assert failures(told[0]) == all_rules(Failure.WORKER_LOST)
    assert launcher.link.closed


async def test_texts_that_are_too_much_for_a_judge_do_not_keep_others_from_being_judged(
    autojump_clock: trio.testing.MockClock,
):
    """It gives them up and says so: that is no failure of its own, however often."""
    launcher = judges()
    async with moderating(launcher) as running:
        await trio.testing.wait_all_tasks_blocked()
        handle = running.service.judge_for(a_turn())
        launcher.link.gives_up = Failure.DEADLINE
        for number in range(20):
            assert failures(await ask(handle, f"too much {number}")) == all_rules(Failure.DEADLINE)
        launcher.link.gives_up = None

        assert not (await ask(handle)).not_run
        assert running.service.problem() is None


async def test_a_batch_may_take_half_of_the_deadline(autojump_clock: trio.testing.MockClock):
    launcher = judges()
    async with moderating(launcher, deadline_s=3.0) as running:
        await ask(running.service.judge_for(a_turn()))

        assert [batch.budget_s for batch in launcher.link.batches] == [1.5]


async def test_a_judge_that_loads_for_long_is_not_taken_for_hung(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges(load_s=20.0)
    async with moderating(launcher) as running:
        await trio.sleep(10)
        assert running.service.view().judges[0].state == "starting"
        await trio.sleep(11)
        assert running.service.view().judges[0].state == "idle"
        launcher.link.load_s = 12.0

        async def prepare() -> None:
            [(_, ref)] = running.service._reloading._seats
            edition = make_edition("x", RULES.replace("rules-1", "rules-2"), {})
            problem = await ref.ask(
                lambda reply: Prepare(edition=edition, reply=reply), deadline_s=60.0
            )
            assert problem is None

        async with trio.open_nursery() as nursery:
            nursery.start_soon(prepare)
            await trio.sleep(10)
            assert running.service.view().judges[0].state == "loading"
            assert running.service.problem() is None

        assert len(launcher.links) == 1

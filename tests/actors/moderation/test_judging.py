"""Texts on their way to a judge and back, with a scripted process and a clock that jumps."""

import trio
import trio.testing

from antiphon.events import Turn
from antiphon.judging import Batch, Forget, Load
from antiphon.moderating import AllPass, Judge
from antiphon.testing.judges import ScriptedJudge, ScriptedJudges, blocks
from antiphon.testing.moderation import RULES, EventStore, a_turn, moderating
from antiphon.testing.telemetry import RecordingTelemetry
from antiphon.verdicts import Action, Failure, Finding, Stage, Verdict

PIE = blocks("apple pie", "no-apples")


def judges(**fields: object) -> ScriptedJudges:
    return ScriptedJudges(make=lambda: ScriptedJudge(**{"find": PIE, **fields}))


async def judge(judge: Judge, *texts: str) -> tuple[Verdict, ...]:
    return await judge.judge(Stage.INPUT, texts)


async def test_a_text_comes_back_with_what_was_found(autojump_clock: trio.testing.MockClock):
    async with moderating(judges()) as running:
        handle = running.service.judge_for(a_turn())

        [found, clean] = await judge(handle, "an apple pie", "a pear")

    assert found.findings == (
        Finding(rule="no-apples", stage=Stage.INPUT, action=Action.BLOCK, start=3, end=12),
    )
    assert found.blocked_by == "no-apples"
    assert clean == Verdict(version="rules-1")


async def test_all_that_came_in_one_tick_is_judged_in_one_go(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges()
    async with moderating(launcher) as running:
        await trio.testing.wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            for number in range(20):
                handle = running.service.judge_for(a_turn())
                nursery.start_soon(judge, handle, f"text {number}")

        assert [len(batch.jobs) for batch in launcher.link.batches] == [20]


async def test_what_comes_while_a_judge_is_busy_is_judged_in_the_next_go(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges(batch_s=0.1)
    async with moderating(launcher) as running:
        await trio.testing.wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            handle = running.service.judge_for(a_turn())
            nursery.start_soon(judge, handle, "first")
            await trio.sleep(0.01)
            for number in range(5):
                nursery.start_soon(judge, handle, f"text {number}")
                await trio.sleep(0.01)

        assert [len(batch.jobs) for batch in launcher.link.batches] == [1, 5]


async def test_two_judges_share_the_work(autojump_clock: trio.testing.MockClock):
    launcher = judges(batch_s=0.1)
    async with moderating(launcher, workers=2) as running:
        await trio.testing.wait_all_tasks_blocked()
        handle = running.service.judge_for(a_turn())
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(judge, handle, "a")
            await trio.sleep(0.01)
            nursery.start_soon(judge, handle, "b")

        assert trio.current_time() - began < 0.15
        assert [len(link.batches) for link in launcher.links] == [1, 1]


async def test_the_history_of_a_conversation_is_judged_once(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges()
    async with moderating(launcher) as running:
        for turn in range(1, 5):
            history = [f"message {number}" for number in range(turn)]
            await judge(running.service.judge_for(a_turn()), *history, *history)

        texts = [job.texts for batch in launcher.link.batches for job in batch.jobs]
        assert texts == [(f"message {number}",) for number in range(4)]


async def test_tenants_share_no_verdicts(autojump_clock: trio.testing.MockClock):
    launcher = judges()
    async with moderating(launcher) as running:
        for turn in (a_turn(tenant="a"), a_turn(tenant="b"), a_turn(tenant="b")):
            await judge(running.service.judge_for(turn), "the same")

        assert len(launcher.link.batches) == 2


async def test_a_verdict_that_is_not_whole_is_not_remembered(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges()
    async with moderating(launcher, deadline_s=0.5) as running:
        await trio.testing.wait_all_tasks_blocked()
        handle = running.service.judge_for(a_turn())
        launcher.link.batch_s = 1.0
        [late] = await judge(handle, "an apple pie")
        assert {one.failure for one in late.not_run} == {Failure.DEADLINE}
        launcher.link.batch_s = 0.0
        await trio.sleep(1)

        [verdict] = await judge(handle, "an apple pie")

    assert verdict.findings
    assert not verdict.not_run


async def test_a_stage_that_no_rule_watches_passes_without_a_judge(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges()
    async with moderating(launcher) as running:
        handle = running.service.judge_for(a_turn())
        assert not handle.watches(Stage.TOOL)

        verdicts = await handle.judge(Stage.TOOL, ["an apple pie"])

        assert verdicts == (Verdict(version="rules-1"),)
        assert not launcher.link.batches


async def test_a_guards_own_turn_is_judged_by_nobody(autojump_clock: trio.testing.MockClock):
    async with moderating(judges()) as running:
        assert isinstance(running.service.judge_for(a_turn(judges=True)), AllPass)


async def test_who_leaves_frees_the_place_in_the_queue(autojump_clock: trio.testing.MockClock):
    launcher = judges(batch_s=0.2)
    async with moderating(launcher, queue=1) as running:
        await trio.testing.wait_all_tasks_blocked()
        service = running.service
        handle = service.judge_for(a_turn())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(judge, handle, "in hand")
            await trio.sleep(0.01)
            with trio.move_on_after(0.05):
                await judge(handle, "left")
            assert service.view().waiting == 0

            [verdict] = await judge(handle, "an apple pie")

        assert not verdict.not_run
        assert [job.texts for batch in launcher.link.batches for job in batch.jobs] == [
            ("in hand",),
            ("an apple pie",),
        ]


async def test_a_text_that_is_no_unicode_is_judged_with_all_its_characters_in_place(
    autojump_clock: trio.testing.MockClock,
):
    async with moderating(judges()) as running:
        [verdict] = await judge(running.service.judge_for(a_turn()), "\ud800 apple pie")

    assert [(found.start, found.end) for found in verdict.findings] == [(2, 11)]


async def test_a_text_that_is_too_long_is_said_not_to_be_judged(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges()
    async with moderating(launcher) as running:
        handle = running.service.judge_for(a_turn())

        long, short = await judge(handle, "x" * 1_000_001, "y")
        (piece,) = await handle.judge(Stage.OUTPUT, ["x" * 1_000_001])

        assert [one.rule for one in long.not_run] == ["no-apples", "no-harm"]
        assert {one.failure for one in long.not_run} == {Failure.TOO_LONG}
        assert long.blocked_by == "no-apples"
        assert not short.not_run
        # What bounded rules say of output is its window's to find, however long it is.
        assert [one.rule for one in piece.not_run] == ["no-harm"]
        assert [job.texts for batch in launcher.link.batches for job in batch.jobs] == [("y",)]


async def test_scores_are_asked_for_without_rules(autojump_clock: trio.testing.MockClock):
    async with moderating(judges()) as running:
        scores = await running.service.score(["12345", "1234567890"])

        assert [each.scores["violence"] for each in scores] == [0.05, 0.1]
        assert running.service.model == "scripted-judge"


async def test_findings_become_events_with_text_only_where_a_rule_keeps_it(
    autojump_clock: trio.testing.MockClock,
):
    store, telemetry = EventStore(), RecordingTelemetry()
    turn: Turn = a_turn(user="user_1", response="resp_1", stored=True)
    async with moderating(judges(), store=store, telemetry=telemetry) as running:
        handle = running.service.judge_for(turn)
        await judge(handle, "an apple pie", "nothing")
        handle.note_output(
            (Finding(rule="no-harm", stage=Stage.OUTPUT, action=Action.BLOCK, category="hate"),),
            "words",
        )
        await trio.sleep(1)

    [pie, harm] = store.events
    assert (pie.rule, pie.version, pie.action, pie.stage) == (
        "no-apples",
        "rules-1",
        "block",
        Stage.INPUT,
    )
    assert (pie.request, pie.response, pie.user) == ("req_1", "resp_1", "user_1")
    assert (pie.text, harm.text, dict(harm.detail)) == ("apple pie", None, {"category": "hate"})
    assert store.writes == 1
    assert telemetry.named("rule_matched") == [
        ("no-apples", "block", False),
        ("no-harm", "block", False),
    ]
    assert telemetry.named("texts_judged") == [("input", "blocked")]
    assert telemetry.named("judging_took") == [("input", 0.0)]


async def test_the_operator_says_which_events_are_kept(autojump_clock: trio.testing.MockClock):
    finding = Finding(rule="no-apples", stage=Stage.OUTPUT, action=Action.ANNOTATE)
    kept = {}
    for events in ("all", "acted", "none"):
        store = EventStore()
        async with moderating(judges(), store=store, events=events) as running:
            handle = running.service.judge_for(a_turn())
            await judge(handle, "an apple pie")
            handle.note_output((finding,), "words")
            await trio.sleep(1)
        kept[events] = [event.action for event in store.events]

    assert kept == {"all": ["block", "annotate"], "acted": ["block"], "none": []}


async def test_an_output_counts_once_when_its_turn_is_over(autojump_clock: trio.testing.MockClock):
    telemetry = RecordingTelemetry()
    async with moderating(judges(), telemetry=telemetry) as running:
        handle = running.service.judge_for(a_turn())
        window = handle.window("")
        passed = window.feed("an apple pie.")
        handle.note_output(passed.findings, "apple pie")
        handle.close()
        handle.close()

    assert passed.blocked_by == "no-apples"
    assert telemetry.named("texts_judged") == [("output", "blocked")]


async def test_a_judge_process_forgets_the_rules_that_nobody_needs(
    autojump_clock: trio.testing.MockClock, tmp_path
):
    launcher, path = judges(), tmp_path / "rules.toml"
    path.write_text(RULES)
    async with moderating(launcher, rules=path) as running:
        await trio.testing.wait_all_tasks_blocked()
        service = running.service
        handle = service.judge_for(a_turn())
        path.write_text(RULES.replace("rules-1", "rules-2"))
        autojump_clock.autojump_threshold = 10.0  # a thread reads the file
        assert await service.reload("test") == "rules-2"
        autojump_clock.autojump_threshold = 0.0
        [old] = await judge(handle, "one")
        [new] = await judge(service.judge_for(a_turn()), "two")
        assert (old.version, new.version) == ("rules-1", "rules-2")
        assert service.view().versions_in_use == ("rules-1", "rules-2")

        handle.close()
        await trio.testing.wait_all_tasks_blocked()

        assert service.view().versions_in_use == ("rules-2",)
        sent = [each for each in launcher.link.sent if isinstance(each, Load | Forget | Batch)]
        assert [type(each).__name__ for each in sent] == [
            "Load",
            "Load",
            "Batch",
            "Batch",
            "Forget",
        ]
        assert launcher.link.loaded == {"rules-2"}


async def test_a_long_history_is_judged_piece_by_piece_and_the_latest_first(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges(batch_s=0.3)
    async with moderating(launcher, deadline_s=1.0, queue=40) as running:
        await trio.testing.wait_all_tasks_blocked()
        handle = running.service.judge_for(a_turn())
        texts = [f"text {number}" for number in range(150)] + ["an apple pie"]

        verdicts = await judge(handle, *texts)

        assert [len(job.texts) for batch in launcher.link.batches for job in batch.jobs] == [
            *(23, 32, 32, 32)
        ]
        assert verdicts[-1].blocked_by == "no-apples"
        missing = [verdict for verdict in verdicts if verdict.not_run]
        assert missing == list(verdicts[:64])
        assert {one.failure for one in missing[0].not_run} == {Failure.DEADLINE}


async def test_others_are_judged_in_between_the_pieces(autojump_clock: trio.testing.MockClock):
    launcher = judges(batch_s=0.1)
    async with moderating(launcher, deadline_s=10.0) as running:
        await trio.testing.wait_all_tasks_blocked()
        handle = running.service.judge_for(a_turn())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(judge, handle, *(f"text {number}" for number in range(320)))
            await trio.sleep(0.05)
            began = trio.current_time()
            await judge(handle, "mine")

            assert trio.current_time() - began < 0.3


async def test_many_texts_are_scored_however_long_that_takes(
    autojump_clock: trio.testing.MockClock,
):
    launcher = judges(batch_s=0.9)
    async with moderating(launcher, deadline_s=1.0) as running:
        scores = await running.service.score(["x" * number for number in range(100)])

    assert [each.scores["violence"] for each in scores] == [n / 100 for n in range(100)]


async def test_an_output_that_was_scanned_counts_once_with_the_gravest_outcome(
    autojump_clock: trio.testing.MockClock,
):
    telemetry = RecordingTelemetry()
    async with moderating(judges(), telemetry=telemetry) as running:
        handle = running.service.judge_for(a_turn())
        handle.window("").feed("a pear")
        for text in ("a pear", "an apple pie", "a plum"):
            await handle.judge(Stage.OUTPUT, [text])
        assert telemetry.named("texts_judged") == []
        handle.close()

    assert telemetry.named("texts_judged") == [("output", "blocked")]
    assert len(telemetry.named("judging_took")) == 3


async def test_withheld_output_is_kept_only_where_its_rule_says_so(
    autojump_clock: trio.testing.MockClock,
):
    store = EventStore()
    kept = RULES.replace('id = "no-apples"', 'id = "no-apples"\nkeep_blocked = true', 1)
    assert kept != RULES
    async with moderating(judges(), store=store, rules=kept) as running:
        handle = running.service.judge_for(a_turn())
        handle.note_withheld("no-apples", "apple pie")
        handle.note_withheld("no-harm", "harm")
        handle.note_withheld("nobody's", "words")
        await trio.sleep(1)

    assert [(event.action, event.rule, event.text) for event in store.events] == [
        ("withheld", "no-apples", "apple pie")
    ]

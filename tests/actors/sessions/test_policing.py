"""The policy in the life of a turn: driver, scheduler and sessions over a scripted engine, with
verdicts that come when the test says so."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import TurnInterrupted
from antiphon.events import Abort, Admit, CancelCause, Message, Sampling
from antiphon.ids import ModelName, UserId
from antiphon.testing.judging import VERSION, ScriptedJudge, ScriptedModeration
from antiphon.testing.metering import ScriptedMeter
from antiphon.testing.rig import Rig, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.tools import CallDelta, CallEnded, Tool, Toolbox
from antiphon.turn_events import (
    ChoiceEnded,
    Delta,
    FinishReason,
    Refused,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnPlaced,
    Usage,
)
from antiphon.verdicts import Action, OnFailure, Scoring, Stage
from antiphon.views import Piece, PieceKind

BLOCKS = {"bomb": Action.BLOCK}
CUT = FinishReason.CONTENT_FILTER
BAD = (Message(role="user", content="a bomb"),)
NOTHING = Usage(prompt_tokens=0, completion_tokens=0)
REFUSED = [Refused(choice=0, text="No.", messages=(0,)), ChoiceEnded(choice=0, finish_reason=CUT)]


def engine(*words: str, slots: int = 4, step_s: float | None = None) -> ScriptedLauncher:
    """One that steps only when the test says so."""
    answer = words or ("one", " two", " three", " four")
    return ScriptedLauncher(
        make=lambda: ScriptedLink(
            capabilities=scripted_capabilities(slots=slots),
            step_s=step_s,
            answer=lambda admit: answer,
        )
    )


def moderation(**judge: Any) -> ScriptedModeration:
    return ScriptedModeration(judge=ScriptedJudge(**judge))


def output(**judge: Any) -> ScriptedModeration:
    return moderation(stages=frozenset({Stage.OUTPUT}), **judge)


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def step(rig: Rig, times: int = 1) -> None:
    for _ in range(times):
        rig.launcher.link.step()
        await settle()


def said(events: Sequence[TurnEvent], choice: int = 0) -> str:
    return "".join(
        event.text for event in events if isinstance(event, Delta) and event.choice == choice
    )


def usage_of(event: TurnEvent) -> Usage:
    assert isinstance(event, TurnEnded)
    return event.usage


def aborts(rig: Rig) -> int:
    return sum(isinstance(command, Abort) for command in rig.launcher.link.sent)


class Signals:
    def __init__(self) -> None:
        self.blocked: list[tuple[Any, ...]] = []

    def prompt_blocked(
        self,
        user: UserId,
        *,
        address: str | None = None,
        rule: str = "",
        category: str | None = None,
    ) -> None:
        self.blocked.append((user, address, rule, category))


# ── the gate ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_verdict_before_the_first_token_holds_nothing_up(autojump_clock):
    policy = moderation(phrases=BLOCKS)
    async with running_rig(engine(), moderation=policy) as rig:
        stream = await rig.open("a")
        await settle()
        await step(rig)

        placed, first = await stream.next_event(), await stream.next_event()

        assert isinstance(placed, TurnPlaced)
        assert placed.policy == VERSION
        assert first == Delta(choice=0, text="one")
        assert policy.judge.asked == [(Stage.INPUT, ("hello there",))]


async def test_prefill_does_not_wait_for_the_verdict_and_the_first_byte_does(autojump_clock):
    policy = moderation()
    policy.judge.hold(Stage.INPUT)
    async with running_rig(engine(), moderation=policy) as rig:
        stream = await rig.open("a")
        await settle()
        await step(rig, 2)
        assert rig.running == 1
        await stream.next_event()  # where it is placed
        with trio.move_on_after(1) as waited:
            await stream.next_event()
        assert waited.cancelled_caught

        policy.judge.release(Stage.INPUT)

        assert await stream.next_event() == Delta(choice=0, text="one two")


async def test_a_verdict_after_the_end_lets_the_whole_answer_out(autojump_clock):
    policy = moderation()
    policy.judge.hold(Stage.INPUT)
    async with running_rig(engine(), moderation=policy) as rig:
        stream = await rig.open("a")
        await settle()
        await step(rig, 4)
        assert (rig.running, rig.directory.open_turns) == (0, 1)

        policy.judge.release(Stage.INPUT)
        events = await read_all(stream)

    assert said(events) == "one two three four"
    assert usage_of(events[-1]).completion_tokens == 4


@pytest.mark.parametrize("steps", [0, 1, 2, 4])
async def test_a_blocked_input_is_refused_wherever_its_answer_is(autojump_clock, steps):
    policy = moderation(phrases=BLOCKS)
    policy.judge.hold(Stage.INPUT)
    async with running_rig(engine(), moderation=policy) as rig:
        stream = await rig.open("a", messages=BAD)
        await settle()
        await step(rig, steps)

        policy.judge.release(Stage.INPUT)
        events = await read_all(stream)
        await settle()
        assert aborts(rig) == (0 if steps == 4 else 1)
        await step(rig, 2)

        assert rig.running == 0
    assert events[:-1] == REFUSED
    spent = Usage(prompt_tokens=2, completion_tokens=steps) if steps else NOTHING
    assert usage_of(events[-1]) == spent


async def test_a_blocked_input_that_waits_for_a_slot_never_gets_one(autojump_clock):
    policy = moderation(phrases=BLOCKS)
    async with running_rig(engine(slots=1), moderation=policy) as rig:
        await rig.open("running")
        await settle()
        policy.judge.hold(Stage.INPUT)
        waiting = await rig.open("waiting", messages=BAD)
        await settle()
        assert (rig.running, rig.waiting) == (1, 1)

        policy.judge.release(Stage.INPUT)
        events = await read_all(waiting)
        await settle()

        assert (rig.running, rig.waiting) == (1, 0)
        admits = [each for each in rig.launcher.link.sent if isinstance(each, Admit)]
        assert len(admits) == 1
    assert events[:-1] == REFUSED
    assert usage_of(events[-1]) == NOTHING


async def test_one_that_is_blocked_before_it_was_placed_still_says_where_it_would_be(
    autojump_clock,
):
    class Slow(ScriptedMeter):
        async def reserve(self, *args: Any, **fields: Any) -> Any:
            await trio.sleep(10)
            return await super().reserve(*args, **fields)

    async with running_rig(engine(), moderation=moderation(phrases=BLOCKS), meter=Slow()) as rig:
        stream = await rig.open("a", messages=BAD)
        placed = await stream.next_event()
        events = await read_all(stream)
        await settle()

        assert rig.directory.open_turns == 0
    assert placed == TurnPlaced(model=ModelName("scripted"), policy=VERSION)
    assert events[:-1] == REFUSED


async def test_every_choice_of_a_blocked_input_is_refused(autojump_clock):
    async with running_rig(engine(), moderation=moderation(phrases=BLOCKS)) as rig:
        events = await read_all(await rig.open("a", messages=BAD, choices=2))

    assert [event.choice for event in events if isinstance(event, Refused)] == [0, 1]
    assert [event.choice for event in events if isinstance(event, ChoiceEnded)] == [0, 1]


async def test_a_client_that_leaves_while_its_input_is_judged_frees_everything(autojump_clock):
    policy = moderation()
    policy.judge.hold(Stage.INPUT)
    async with running_rig(engine(), moderation=policy) as rig:
        stream = await rig.open("a")
        await settle()
        await step(rig, 2)

        stream.cancel(CancelCause.DISCONNECT)
        await settle()
        await step(rig)

        assert (rig.running, rig.directory.open_turns) == (0, 0)
        events = await read_all(stream)
        assert said(events) == ""
        assert isinstance(events[-1], TurnFailed)
        assert policy.judge.is_closed


async def test_what_could_not_be_judged_is_decided_by_its_rule(autojump_clock):
    ends = {}
    for on_failure in OnFailure:
        policy = moderation(missing={Stage.INPUT: on_failure})
        async with running_rig(engine(step_s=0.01), moderation=policy) as rig:
            ends[on_failure] = await read_all(await rig.open("a"))

    assert said(ends[OnFailure.OPEN]) == "one two three four"
    assert ends[OnFailure.CLOSED][0] == Refused(choice=0, text="No.")
    for events in ends.values():
        [*_, last] = events
        assert isinstance(last, TurnEnded)
        assert last.judged is not None
        assert last.judged.input is not None
        assert [each.rule for each in last.judged.input.not_run] == ["slow"]


async def test_where_input_is_transformed_the_model_is_shown_nothing_before_and_nothing_else(
    autojump_clock,
):
    policy = moderation(phrases={"secret": Action.TRANSFORM}, transforms_input=True)
    policy.judge.hold(Stage.INPUT)
    launcher = engine()
    async with running_rig(launcher, moderation=policy, sends_messages=True) as rig:
        await rig.open("a", messages=(Message(role="user", content="my secret"),))
        await settle()
        assert not launcher.link.sent

        policy.judge.release(Stage.INPUT)
        await settle()

        [admit] = launcher.link.sent
    assert isinstance(admit, Admit)
    assert [message.content for message in admit.messages] == ["my [removed]"]


async def test_an_input_that_is_to_be_transformed_and_is_blocked_is_never_shown(autojump_clock):
    policy = moderation(phrases=BLOCKS, transforms_input=True)
    launcher = engine()
    async with running_rig(launcher, moderation=policy) as rig:
        events = await read_all(await rig.open("a", messages=BAD))
        await settle()

        assert not launcher.link.sent
    assert events[:-1] == REFUSED


async def test_a_blocked_prompt_is_reported_once_and_what_is_not_its_users_doing_never(
    autojump_clock,
):
    signals = Signals()
    async with running_rig(engine(), moderation=moderation(phrases=BLOCKS), abuse=signals) as rig:
        await read_all(
            await rig.open("a", messages=BAD * 2, choices=2, user="user_1", address="192.0.2.1")
        )
        await read_all(await rig.open("b", messages=BAD))  # the local user is nobody
    missing = moderation(missing={Stage.INPUT: OnFailure.CLOSED})
    async with running_rig(engine(), moderation=missing, abuse=signals) as rig:
        [*_, last] = await read_all(await rig.open("c", user="user_1"))
        assert isinstance(last, TurnEnded)

    careful = ScriptedModeration(flagged=("hello",))
    async with running_rig(engine(), moderation=careful, abuse=signals) as rig:
        asks = Scoring(blocks_input=True)
        [refused, *_] = await read_all(await rig.open("d", user="user_1", scoring=asks))
        assert isinstance(refused, Refused)

    assert signals.blocked == [("user_1", "192.0.2.1", "bomb", None)]


async def test_a_blocked_turn_gives_back_what_it_held_of_its_callers_limits(autojump_clock):
    meter = ScriptedMeter()
    policy = moderation(phrases=BLOCKS)
    policy.judge.hold(Stage.INPUT)
    async with running_rig(engine(), moderation=policy, meter=meter) as rig:
        stream = await rig.open("a", messages=BAD)
        await settle()
        policy.judge.release(Stage.INPUT)
        events = await read_all(stream)

    assert events[:-1] == REFUSED
    assert all(charge.released or charge.settled for charge in meter.charges)


# ── the output ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "passed"),
    [
        (("bomb", " and", " more", " words"), ""),
        (("a ", "bo", "mb", " more", " words"), "a "),
        (("one", " bomb"), "one "),
    ],
    ids=["first", "split", "last"],
)
async def test_a_blocked_output_frees_its_slot_within_two_steps(autojump_clock, words, passed):
    policy = output(phrases=BLOCKS)
    launcher = engine(*words)
    async with running_rig(launcher, moderation=policy) as rig:
        stream = await rig.open("a")
        await settle()
        blocked_at = next(count for count in range(1, 9) if "bomb" in "".join(words[:count]))
        await step(rig, blocked_at)
        events = await read_all(stream)
        tokens = usage_of(events[-1]).completion_tokens
        await step(rig, 2)

        assert rig.running == 0
        assert launcher.link.steps <= blocked_at + 2
    assert said(events) == passed
    assert events[-3:-1] == [
        Refused(choice=0, text="No."),
        ChoiceEnded(choice=0, finish_reason=CUT),
    ]
    assert tokens == blocked_at


async def test_the_other_choices_of_a_blocked_one_go_on(autojump_clock):
    texts = {7: ("a bomb", " x", " y"), 8: ("a boat", " x", " y")}
    launcher = ScriptedLauncher(
        make=lambda: ScriptedLink(step_s=None, answer=lambda admit: texts[admit.sampling.seed])
    )
    async with running_rig(launcher, moderation=output(phrases=BLOCKS)) as rig:
        stream = await rig.open("a", choices=2)
        await settle()
        await step(rig, 2)
        assert rig.running == 1
        await step(rig)
        events = await read_all(stream)

    assert (said(events, 0), said(events, 1)) == ("a ", "a boat x y")
    ends = {each.choice: each.finish_reason for each in events if isinstance(each, ChoiceEnded)}
    assert ends == {0: CUT, 1: FinishReason.STOP}
    last = events[-1]
    assert isinstance(last, TurnEnded)
    assert last.usage == Usage(prompt_tokens=2, completion_tokens=4)
    assert last.judged is not None
    assert [each.blocked_by for each in last.judged.output] == ["bomb", None]


async def test_masked_output_leaves_without_its_log_probabilities(autojump_clock):
    policy = output(phrases={"secret": Action.TRANSFORM})
    launcher = engine("my ", "sec", "ret", " dog")
    async with running_rig(launcher, moderation=policy) as rig:
        stream = await rig.open("a", sampling=Sampling(seed=7, logprobs=True))
        await settle()
        await step(rig, 4)
        events = await read_all(stream)

    assert said(events) == "my [removed] dog"
    spelled = [each.text for event in events if isinstance(event, Delta) for each in event.logprobs]
    assert spelled == ["my ", " dog"]
    assert policy.judge.noted == [("secret", "secret")]


async def test_scanned_output_waits_for_its_scan_and_decoding_does_not(autojump_clock):
    policy = output(scans_output=True)
    policy.judge.hold(Stage.OUTPUT)
    async with running_rig(engine(), moderation=policy) as rig:
        stream = await rig.open("a")
        await settle()
        await step(rig, 4)
        assert rig.running == 0
        assert policy.judge.asked == [(Stage.OUTPUT, ("one",))]

        policy.judge.release(Stage.OUTPUT)
        events = await read_all(stream)

    assert said(events) == "one two three four"
    assert [texts for _, texts in policy.judge.asked] == [("one",), ("one two three four",)]
    assert events[-2] == ChoiceEnded(choice=0, finish_reason=FinishReason.STOP)


async def test_a_scan_that_blocks_ends_the_choice_and_frees_its_slot(autojump_clock):
    policy = output(scanned={"two": Action.BLOCK}, scans_output=True)
    async with running_rig(engine(), moderation=policy) as rig:
        stream = await rig.open("a")
        await settle()
        await step(rig, 2)
        events = await read_all(stream)
        await step(rig, 2)

        assert rig.running == 0
        assert rig.launcher.link.steps <= 4
    assert said(events) == "one"
    assert events[-3:-1] == [
        Refused(choice=0, text="No."),
        ChoiceEnded(choice=0, finish_reason=CUT),
    ]


async def test_a_scan_that_could_not_be_run_is_decided_by_its_rule(autojump_clock):
    ends = {}
    for on_failure in OnFailure:
        policy = output(missing={Stage.OUTPUT: on_failure}, scans_output=True)
        async with running_rig(engine(step_s=0.01), moderation=policy) as rig:
            ends[on_failure] = await read_all(await rig.open("a"))

    assert said(ends[OnFailure.OPEN]) == "one two three four"
    assert said(ends[OnFailure.CLOSED]) == ""
    for events in ends.values():
        last = events[-1]
        assert isinstance(last, TurnEnded)
        assert last.judged is not None
        assert [each.rule for each in last.judged.output[0].not_run] == ["slow"]


async def test_a_client_that_leaves_during_the_last_scan_hears_an_end_and_frees_the_session(
    autojump_clock,
):
    policy = output(scans_output=True)
    policy.judge.hold(Stage.OUTPUT)
    async with running_rig(engine(), moderation=policy) as rig:
        stream = await rig.open("a")
        await settle()
        await step(rig, 4)
        stream.cancel(CancelCause.DISCONNECT)
        await settle()

        assert rig.directory.open_turns == 0
        [failed] = await read_all(stream)
        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, TurnInterrupted)
        assert failed.usage.completion_tokens == 4


async def test_a_stop_during_the_last_scan_lets_no_unscanned_text_out(autojump_clock):
    policy = output(scans_output=True)
    policy.judge.hold(Stage.OUTPUT)
    async with running_rig(engine(), moderation=policy) as rig:
        stream = await rig.open("a")
        await settle()
        await step(rig, 4)
        rig.stop.set()
        [failed] = await read_all(stream)

    assert isinstance(failed, TurnFailed)


async def test_an_answer_that_is_begun_again_is_judged_anew(autojump_clock):
    policy = output(phrases=BLOCKS)
    launcher = engine("a ", "boat")
    async with running_rig(launcher, moderation=policy) as rig:
        stream = await rig.open("a")
        await settle()
        [lost] = launcher.link.live
        launcher.link.fail(lost, code="unavailable", detail="never begun")
        await settle()
        assert launcher.link.live not in ((), (lost,))
        await step(rig, 2)
        events = await read_all(stream)

    assert said(events) == "a boat"
    assert len(policy.judge.system_prompts) == 2


async def test_what_was_judged_is_told_with_the_end(autojump_clock):
    policy = moderation(
        phrases={"there": Action.ANNOTATE}, stages=frozenset({Stage.INPUT, Stage.OUTPUT})
    )
    async with running_rig(engine(step_s=0.01), moderation=policy) as rig:
        last = (await read_all(await rig.open("a")))[-1]

    assert isinstance(last, TurnEnded)
    assert last.judged is not None
    assert last.judged.version == VERSION
    assert last.judged.input is not None
    assert [finding.rule for finding in last.judged.input.findings] == ["there"]
    assert len(last.judged.output) == 1


async def test_a_client_that_asks_has_its_output_scored_and_blocked_if_it_wants(autojump_clock):
    policy = ScriptedModeration(judge=ScriptedJudge(stages=frozenset()), flagged=("two",))
    ends = {}
    for blocks in (False, True):
        async with running_rig(engine(step_s=0.01), moderation=policy) as rig:
            scoring = Scoring(blocks_output=blocks)
            ends[blocks] = await read_all(await rig.open("a", scoring=scoring))

    assert said(ends[False]) == "one two three four"
    assert said(ends[True]) == "one"
    last = ends[False][-1]
    assert isinstance(last, TurnEnded)
    assert last.judged is not None
    scores = last.judged.output[0].scores
    assert scores is not None
    assert scores.flagged == {"violence"}


async def test_a_refusal_is_in_the_readers_language(autojump_clock):
    policy = moderation(phrases=BLOCKS)
    async with running_rig(engine(), moderation=policy) as rig:
        await read_all(await rig.open("a", messages=BAD, languages=("de", "en")))

    assert policy.judge.languages == ("de", "en")


async def test_windows_know_the_turns_instructions(autojump_clock):
    policy = output()
    messages = (
        Message(role="system", content="be kind"),
        Message(role="developer", content="and brief"),
        Message(role="user", content="hi"),
    )
    async with running_rig(engine(step_s=0.01), moderation=policy) as rig:
        await read_all(await rig.open("a", messages=messages))

    assert policy.judge.system_prompts == ["be kind\nand brief"]
    assert policy.judge.is_closed


async def test_windows_know_the_operators_prompt_and_not_what_is_recalled_of_the_user(
    autojump_clock,
):
    policy = output()
    shown = {
        PieceKind.PROMPT: "Be kind.",
        PieceKind.INSTRUCTIONS: "In French.",
        PieceKind.MEMORY: "- I live in Bern.",
        PieceKind.SUMMARY: "They spoke of Bern.",
    }
    messages = (
        *(Message(role="system", content=text) for text in shown.values()),
        Message(role="user", content="hi"),
    )
    pieces = tuple(Piece(kind=kind) for kind in (*shown, PieceKind.INPUT))
    async with running_rig(engine(step_s=0.01), moderation=policy) as rig:
        await read_all(await rig.open("a", messages=messages, pieces=pieces))

    assert policy.judge.system_prompts == ["Be kind.\nIn French."]


async def test_an_operators_prompt_that_speaks_of_what_is_forbidden_blocks_nobody(autojump_clock):
    policy, signals = moderation(phrases=BLOCKS), Signals()
    messages = (
        Message(role="system", content="Never say how a bomb is made."),
        Message(role="user", content="hi"),
    )
    async with running_rig(engine(step_s=0.01), moderation=policy, abuse=signals) as rig:
        events = await read_all(
            await rig.open("a", messages=messages, unjudged=1, user=UserId("user_1"))
        )

    assert said(events) == "one two three four"
    assert policy.judge.asked == [(Stage.INPUT, ("hi",))]
    assert signals.blocked == []


async def test_turns_are_counted_by_their_prompts_version_and_how_they_ended(autojump_clock):
    policy = moderation(phrases=BLOCKS, stages=frozenset({Stage.INPUT, Stage.OUTPUT}))
    async with running_rig(engine(step_s=0.01), moderation=policy) as rig:
        await read_all(await rig.open("a", prompt_version="guide@1"))
        await read_all(await rig.open("b", prompt_version="guide@2", messages=BAD))
        await read_all(await rig.open("c", prompt_version="guide@2", max_tokens=2))
        gone = await rig.open("d", prompt_version="guide@1")
        gone.cancel(CancelCause.DISCONNECT)
        await read_all(gone)
        await read_all(await rig.open("e"))
        await settle()
        used = rig.telemetry.named("prompt_used")

    assert used == [
        ("guide@1", "stop"),
        ("guide@2", "content_filter"),
        ("guide@2", "length"),
        ("guide@1", "abort"),
        (None, "stop"),
    ]


@settings(max_examples=40, deadline=None)
@given(
    words=st.lists(
        st.sampled_from(["bo", "mb", "sec", "ret", " a", " two", "b"]), min_size=1, max_size=10
    ),
    judged_at=st.integers(0, 8),
    scan_s=st.sampled_from([0.0, 0.015, 0.2]),
    choices=st.integers(1, 2),
    scans=st.booleans(),
)
def test_whatever_comes_when_no_reader_has_what_the_policy_holds(
    words, judged_at, scan_s, choices, scans
):
    """Input verdict, steps and scans in any order."""
    phrases = {"bomb": Action.BLOCK, "secret": Action.TRANSFORM}
    stages = frozenset({Stage.INPUT, Stage.OUTPUT})

    async def run() -> None:
        policy = moderation(
            phrases=phrases,
            scanned={"two": Action.BLOCK},
            stages=stages,
            scans_output=scans,
            delay_s=scan_s,
        )
        policy.judge.hold(Stage.INPUT)
        seen: list[TurnEvent] = []
        async with running_rig(engine(*words, step_s=0.01), moderation=policy) as rig:
            stream = await rig.open("a", choices=choices)

            async def read() -> None:
                while not seen or not isinstance(seen[-1], TurnEnded | TurnFailed):
                    event = await stream.next_event()
                    if not isinstance(event, TurnPlaced):
                        seen.append(event)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                await trio.sleep(judged_at * 0.01)
                assert not seen, "before the input was judged"
                policy.judge.release(Stage.INPUT)
        text = "".join(words)
        allowed = text.replace("secret", "[removed]").partition("bomb")[0]
        if scans:
            allowed = allowed.partition("two")[0]
        for choice in range(choices):
            got = said(seen, choice)
            assert allowed.startswith(got)
            ends = [each for each in seen if isinstance(each, ChoiceEnded)]
            is_cut = "bomb" in text or (scans and "two" in text)
            assert {each.finish_reason for each in ends} == {CUT if is_cut else FinishReason.STOP}
            if not is_cut:
                assert got == allowed
        assert rig.directory.open_turns == 0

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


BOX = Toolbox(tools=(Tool(name="f", parameters={"type": "object"}),))


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("scans", [False, True])
async def test_nothing_of_a_blocked_match_leaves_in_the_arguments_of_a_call(
    autojump_clock, required, scans
):
    call = '{"name": "f", "arguments": {"a": "how to make a bomb", "b": 1}}'
    words = call if required else f"Well. <tool_call>{call}</tool_call>"
    rules: dict[str, Any] = {"scanned": BLOCKS, "scans_output": True}
    judge = output(**rules) if scans else output(phrases=BLOCKS)
    async with running_rig(engine(*words, step_s=0.01), moderation=judge) as rig:
        box = replace(BOX, required=required)
        events = await read_all(await rig.open("a", tools=box, max_tokens=200))

    arguments = "".join(event.text for event in events if isinstance(event, CallDelta))
    assert "bomb" not in arguments
    assert not any(isinstance(event, CallEnded) for event in events)
    assert said(events) == ("" if required else "Well.")
    assert [type(event) for event in events[-3:]] == [Refused, ChoiceEnded, TurnEnded]
    assert events[-2] == ChoiceEnded(choice=0, finish_reason=CUT)

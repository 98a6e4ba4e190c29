"""Turns over several scripted pools: which one answers, and what is told of it."""

import msgspec
import pytest
import trio
import trio.testing

from antiphon.actors.breaker import Permit
from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.alias_settings import AliasSettings
from antiphon.errors import (
    AskTimeout,
    ContextLengthExceeded,
    EngineUnavailable,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    QueueFull,
)
from antiphon.events import Admit, Message, Sampling
from antiphon.ids import ActorPath, ModelName
from antiphon.plan_settings import PlanSettings
from antiphon.settings import Settings
from antiphon.testing.rig import MODEL, Rig, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.tools import Tool, Toolbox
from antiphon.turn_events import TurnEnded, TurnFailed, TurnPlaced
from antiphon.workload import WorkloadClass

OTHER = ModelName("other")
SETTINGS = msgspec.structs.replace(
    Settings(),
    aliases={"auto": AliasSettings(models=(MODEL, OTHER))},
    plans={
        "free": PlanSettings(max_output_tokens=8, smaller_model=False),
        "paid": PlanSettings(priority=1, weight=2.0, tiers=("default", "priority")),
        "narrow": PlanSettings(models=("auto",)),
    },
)


def manual(slots: int = 2) -> ScriptedLauncher:
    return ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(slots=slots), step_s=None)
    )


def two_pools(first: ScriptedLauncher | None = None, **options):
    other = options.pop("other", None) or ScriptedLauncher()
    return running_rig(
        first, others={OTHER: other}, settings=options.pop("settings", SETTINGS), **options
    )


async def placed(rig: Rig, name: str, **fields) -> TurnPlaced:
    """Where a turn goes, told by its first event."""
    event = await (await rig.open(name, **fields)).next_event()
    assert isinstance(event, TurnPlaced), event
    return event


async def failed(rig: Rig, name: str, **fields):
    """What a turn that is not taken fails with."""
    event = await (await rig.open(name, **fields)).next_event()
    assert isinstance(event, TurnFailed), event
    return event.error


async def test_the_first_event_says_which_model_answers(autojump_clock):
    async with two_pools() as rig:
        assert await placed(rig, "a") == TurnPlaced(model=MODEL)
        assert await placed(rig, "b", model=OTHER) == TurnPlaced(model=OTHER)
        assert await placed(rig, "c", model="auto") == TurnPlaced(model=MODEL)


async def test_the_first_event_says_when_the_first_text_should_come(autojump_clock):
    async with two_pools() as rig:
        rig.ttft_s[MODEL] = 0.5

        assert (await placed(rig, "a")).expected_s == pytest.approx(0.5)


async def test_what_would_be_late_goes_to_the_other_pool_and_is_told_so(autojump_clock):
    async with two_pools() as rig:
        rig.ttft_s[MODEL] = 30.0
        stream = await rig.open("a", model="auto")
        first = await stream.next_event()
        events = await read_all(stream)
        [decision] = rig.router.recent()

    assert first == TurnPlaced(model=OTHER, moved="overload")
    assert isinstance(events[-1], TurnEnded)
    assert (decision.model, decision.moved, decision.passed) == (
        OTHER,
        "overload",
        ((MODEL, "overload"),),
    )
    assert rig.telemetry.named("turn_routed") == [(OTHER, "overload")]
    assert [report[0] for report in rig.telemetry.named("first_token")] == [OTHER]


async def test_an_exact_name_moves_to_its_smaller_model_alone(autojump_clock):
    async with two_pools(smaller={MODEL: OTHER}) as rig:
        rig.ttft_s[MODEL] = 30.0

        assert await placed(rig, "a") == TurnPlaced(model=OTHER, moved="overload")
        assert isinstance(await failed(rig, "b", plan="free", max_tokens=8), Overloaded)


async def test_overloaded_everywhere_it_is_refused_before_any_work(autojump_clock):
    async with two_pools() as rig:
        rig.ttft_s |= {MODEL: 30.0, OTHER: 20.0}
        error = await failed(rig, "a", model="auto")
        [refusal] = rig.router.recent()

    assert isinstance(error, Overloaded)
    assert error.predicted_s == 20.0
    assert (refusal.model, refusal.error) == (None, "Overloaded")
    assert rig.telemetry.named("admission_rejected") == [("overloaded",)]
    assert not any(isinstance(command, Admit) for command in rig.launcher.link.sent)


async def test_a_full_queue_moves_on(autojump_clock):
    bounds = QueueBounds(max_requests=1, max_tokens=10_000, deadline_s=30.0)
    async with two_pools(manual(slots=1), bounds=bounds) as rig:
        rig.ttft_s |= {MODEL: 0.1, OTHER: 0.1}
        for name in ("running", "waiting"):
            assert (await placed(rig, name, model="auto")).model == MODEL
        moved = await placed(rig, "third", model="auto", user="somebody else")
        alone = await failed(rig, "fourth")

    assert moved == TurnPlaced(model=OTHER, moved="overload", expected_s=0.1)
    assert isinstance(alone, QueueFull)


async def test_a_pool_whose_engine_hangs_is_passed_over(autojump_clock):
    async with two_pools(manual(), silence_s=20.0) as rig:
        await rig.open("a")
        await trio.testing.wait_all_tasks_blocked()
        rig.launcher.link.hang()
        await trio.sleep(12)

        assert await placed(rig, "b", model="auto") == TurnPlaced(model=OTHER, moved="fallback")
        assert rig.router.recent()[0].passed == ((MODEL, "stalled"),)


async def test_an_open_circuit_is_passed_over_until_somebody_has_to_try(autojump_clock):
    async with two_pools() as rig:
        for _ in range(5):
            permit = rig.breaker.admit()
            assert isinstance(permit, Permit)
            with pytest.raises(AskTimeout), permit:
                raise AskTimeout(ActorPath("root/pool"), 15.0)
        during = await placed(rig, "a", model="auto")
        await trio.sleep(1.0)
        after = await placed(rig, "b", model="auto", user="somebody else")

        assert during == TurnPlaced(model=OTHER, moved="fallback")
        assert after == TurnPlaced(model=MODEL)
        assert rig.breaker.statistics().circuit == "closed"


async def test_while_an_engine_is_replaced_another_pool_answers(autojump_clock):
    async with two_pools() as rig:
        rig.launcher.refusals += ["not yet"] * 3
        rig.launcher.link.die()
        await trio.testing.wait_all_tasks_blocked()

        assert await placed(rig, "a", model="auto") == TurnPlaced(model=OTHER, moved="fallback")


async def test_what_only_waited_when_its_engine_died_is_placed_anew(autojump_clock):
    async with two_pools(manual(slots=1)) as rig:
        rig.ttft_s |= {MODEL: 0.1}
        await rig.open("running")
        await trio.testing.wait_all_tasks_blocked()
        stream = await rig.open("waiting", model="auto")
        first = await stream.next_event()
        rig.launcher.refusals += ["not yet"] * 8
        rig.launcher.link.die()
        second = await stream.next_event()
        events = await read_all(stream)

    assert first == TurnPlaced(model=MODEL, expected_s=0.1)
    assert second == TurnPlaced(model=OTHER, moved="fallback")
    assert isinstance(events[-1], TurnEnded)


async def test_a_prompt_too_long_for_the_first_model_goes_to_the_one_it_fits(autojump_clock):
    wide = ScriptedLauncher(
        make=lambda: ScriptedLink(
            capabilities=scripted_capabilities(window=1024), answer=lambda admit: ["yes"]
        )
    )
    words = (Message(role="user", content="word " * 700),)
    async with two_pools(other=wide) as rig:
        assert await placed(rig, "a", model="auto", messages=words) == TurnPlaced(
            model=OTHER, moved="fallback"
        )
        error = await failed(rig, "b", messages=words)

    assert isinstance(error, ContextLengthExceeded)
    assert error.window == 512


async def test_a_conversation_stays_in_the_pool_that_it_was_moved_to(autojump_clock):
    async with two_pools() as rig:
        rig.ttft_s[MODEL] = 30.0
        await placed(rig, "a", model="auto", affinity="c1")
        del rig.ttft_s[MODEL]

        assert await placed(rig, "b", model="auto", affinity="c1") == TurnPlaced(
            model=OTHER, moved="overload"
        )
        assert rig.router.recent()[0].reasons == ("affinity",)
        assert await placed(rig, "c", model="auto", affinity="c2") == TurnPlaced(model=MODEL)


MUST_CALL = Toolbox(tools=(Tool(name="f", parameters={"type": "object"}),), required=True)


async def test_what_an_engine_cannot_do_goes_where_it_can_be_done(autojump_clock):
    plain = ScriptedLauncher(
        make=lambda: ScriptedLink(
            capabilities=msgspec.structs.replace(scripted_capabilities(), json_schema=False)
        )
    )
    sampling = Sampling(seed=1, json_schema="{}")
    async with two_pools(plain) as rig:
        assert (await placed(rig, "a", model="auto", sampling=sampling)).model == OTHER
        assert isinstance(await failed(rig, "b", sampling=sampling), InvalidRequest)
        assert (await placed(rig, "c", model="auto", tools=MUST_CALL)).model == OTHER
        assert isinstance(await failed(rig, "d", tools=MUST_CALL), InvalidRequest)


async def test_a_plan_decides_over_names_tiers_and_lengths(autojump_clock):
    async with two_pools() as rig:
        with pytest.raises(ModelNotFound):
            await rig.open("a", plan="narrow")
        assert (await placed(rig, "b", plan="narrow", model="auto")).model == MODEL
        assert (await placed(rig, "c", plan="paid", tier="priority")).tier == "priority"
        assert (
            await placed(rig, "d", plan="free", tier="priority", max_tokens=8)
        ).tier == "default"
        error = await failed(rig, "e", plan="free", max_tokens=9)
        await placed(rig, "f", plan="free", max_tokens=None)
        await trio.testing.wait_all_tasks_blocked()
        admits = {
            command.max_tokens for command in rig.launcher.link.sent if isinstance(command, Admit)
        }

    assert isinstance(error, InvalidRequest)
    assert error.param == "max_tokens"
    assert 8 in admits


async def test_a_turn_waits_in_the_lane_of_its_kind(autojump_clock):
    async with two_pools(manual(slots=1)) as rig:
        rig.ttft_s[MODEL] = 0.1
        await placed(rig, "a", user="u", plan="paid")
        await placed(rig, "b", user="u", background=True)
        await placed(rig, "c", user="u", continues_tool=True)
        assert rig.view.schedule is not None
        waiting = {lane: load.waiting for lane, load in rig.view.schedule.load().lanes.items()}

    assert waiting[WorkloadClass.BACKGROUND] == waiting[WorkloadClass.TOOL] == 1


async def test_another_model_fills_in_its_own_defaults(autojump_clock):
    async with two_pools() as rig:
        sampling = Sampling(seed=1, temperature=0.3, top_p=0.5)
        await placed(rig, "a", sampling=sampling, silent=frozenset({"temperature"}))
        await trio.testing.wait_all_tasks_blocked()
        [admit] = [each for each in rig.launcher.link.sent if isinstance(each, Admit)]

    assert (admit.sampling.temperature, admit.sampling.top_p) == (1.0, 0.5)


async def test_with_no_other_pool_it_waits_and_is_then_told_to_come_again(autojump_clock):
    async with two_pools() as rig:
        rig.launcher.refusals += ["not yet"] * 50
        rig.launcher.link.die()
        await trio.testing.wait_all_tasks_blocked()
        error = await failed(rig, "a")

    assert isinstance(error, EngineUnavailable)


async def test_the_router_lists_what_a_plan_may_have(autojump_clock):
    async with two_pools() as rig:
        everything = [card.name for card in rig.directory.models()]
        narrow = [card.name for card in rig.directory.models("narrow")]

    assert everything == [MODEL, OTHER, "auto"]
    assert narrow == ["auto"]

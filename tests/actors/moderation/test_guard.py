"""Guard models behind our own pools, with a scripted chat."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import trio
import trio.testing

from antiphon.errors import Draining, EngineUnavailable
from antiphon.events import CancelCause, Turn
from antiphon.ids import ModelName
from antiphon.ports import Chat
from antiphon.testing.judges import ScriptedJudges
from antiphon.testing.moderation import a_turn, moderating
from antiphon.turn_events import ChoiceEnded as Ended
from antiphon.turn_events import (
    Delta,
    FinishReason,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnPlaced,
    Usage,
)
from antiphon.verdicts import Action, Failure, Stage, Verdict

RULES = """
format = 1
version = "guarded"

[[rules]]
id = "guard"
stages = ["input"]
match = { kind = "guard", model = "m", format = "llama_guard", categories = ["S1", "S9"] }
on_failure = "closed"

[[rules]]
id = "other-guard"
stages = ["input"]
match = { kind = "guard", model = "m", format = "qwen3guard" }
action = "annotate"
shadow = true
"""


@dataclass
class _Stream:
    chat: "ScriptedChat"
    events: list[TurnEvent]

    async def next_event(self) -> TurnEvent:
        await trio.sleep(self.chat.answer_s)
        return self.events.pop(0)

    def cancel(self, cause: CancelCause) -> None:
        self.chat.closed += 1


@dataclass
class ScriptedChat:
    """Answers each turn with what `answer` says, in two pieces."""

    answer: Callable[[Turn], str | Exception]
    answer_s: float = 0.0
    turns: list[Turn] = field(default_factory=list)
    closed: int = 0

    async def open_turn(self, turn: Turn) -> _Stream:
        await trio.lowlevel.checkpoint()
        self.turns.append(turn)
        usage = Usage(prompt_tokens=1, completion_tokens=1)
        match self.answer(turn):
            case str() as text:
                middle = len(text) // 2
                events: list[TurnEvent] = [
                    TurnPlaced(model=turn.model),
                    Delta(choice=0, text=text[:middle]),
                    Delta(choice=0, text=text[middle:]),
                    Ended(choice=0, finish_reason=FinishReason.STOP),
                    TurnEnded(usage=usage),
                ]
            case Draining() as error:
                raise error
            case Exception() as error:
                events = [TurnFailed(error=cast("Any", error))]
        return _Stream(self, events)


def by_prompt(turn: Turn) -> str:
    """Both guards find weapons; one says so in its own words."""
    bad = "weapon" in turn.messages[-1].content
    if turn.max_tokens == 48:
        return "unsafe\nS9,S12" if bad else "safe"
    return f"Safety: {'Unsafe' if bad else 'Safe'}\nCategories: {'Violent' if bad else 'None'}"


async def judged(chat: ScriptedChat, *texts: str, **settings: Any) -> tuple[Verdict, ...]:
    async with moderating(
        ScriptedJudges(), rules=RULES, chat=cast("Chat", chat), **settings
    ) as running:
        handle = running.service.judge_for(a_turn(tenant="t", salt="s"))
        return await handle.judge(Stage.INPUT, texts)


async def test_a_guard_judges_each_text_in_a_short_background_turn_of_its_own(
    autojump_clock: trio.testing.MockClock,
):
    chat = ScriptedChat(by_prompt)

    bad, good = await judged(chat, "a weapon", "a pear")

    assert [(each.rule, each.category, each.action, each.shadow) for each in bad.findings] == [
        ("guard", "S9", Action.BLOCK, False),
        ("other-guard", "Violent", Action.ANNOTATE, True),
    ]
    assert bad.blocked_by == "guard"
    assert good == Verdict(version="guarded")
    assert len(chat.turns) == chat.closed == 4
    for turn in chat.turns:
        assert (turn.model, turn.background, turn.judges) == (ModelName("m"), True, True)
        assert (turn.tenant, turn.salt, turn.sampling.temperature) == ("t", "s", 0.0)
        assert turn.user is None


async def test_a_category_that_the_rule_does_not_name_is_no_finding(
    autojump_clock: trio.testing.MockClock,
):
    chat = ScriptedChat(lambda turn: "unsafe\nS2" if turn.max_tokens == 48 else "Safety: Safe")

    [verdict] = await judged(chat, "a text")

    assert verdict == Verdict(version="guarded")


async def test_a_guard_that_rambles_fails_or_drains_has_not_judged(
    autojump_clock: trio.testing.MockClock,
):
    for answer in ("As an AI, I", EngineUnavailable(retry_after_s=1), Draining(retry_after_s=1)):
        chat = ScriptedChat(lambda _, answer=answer: answer)

        [verdict] = await judged(chat, "a text")

        assert [(one.rule, one.failure) for one in verdict.not_run] == [
            ("guard", Failure.UPSTREAM),
            ("other-guard", Failure.UPSTREAM),
        ]
        assert verdict.blocked_by == "guard"


async def test_a_slow_guard_costs_no_more_than_the_deadline_and_its_turn_is_cancelled(
    autojump_clock: trio.testing.MockClock,
):
    chat = ScriptedChat(by_prompt, answer_s=10.0)
    began = trio.current_time()

    [verdict] = await judged(chat, "a text", deadline_s=1.0)

    assert trio.current_time() - began < 1.1
    assert {one.failure for one in verdict.not_run} == {Failure.DEADLINE}
    assert chat.closed == 2


async def test_a_guard_that_keeps_failing_is_not_asked_for_a_while(
    autojump_clock: trio.testing.MockClock,
):
    chat = ScriptedChat(lambda _: EngineUnavailable(retry_after_s=1))
    async with moderating(ScriptedJudges(), rules=RULES, chat=cast("Chat", chat)) as running:
        handle = running.service.judge_for(a_turn())
        for number in range(8):
            [verdict] = await handle.judge(Stage.INPUT, [f"text {number}"])

        asked = len(chat.turns)
        assert asked < 16
        assert {one.failure for one in verdict.not_run} == {Failure.CIRCUIT_OPEN}
        assert [each.name for each in running.service.breakers()] == ["moderation", "guard m"]

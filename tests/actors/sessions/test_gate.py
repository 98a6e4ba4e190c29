"""The gate of a turn's input: which texts are judged as what, and what follows."""

from dataclasses import replace
from typing import Any

import trio

from antiphon.actors.sessions.gate import InputVerdict, decide, is_watched, judge_input
from antiphon.actors.sessions.judging import Judging
from antiphon.errors import ModerationUnavailable
from antiphon.events import Message, Sampling, Turn
from antiphon.ids import ModelName, RequestId
from antiphon.moderating import AllPass
from antiphon.testing.judging import ScriptedJudge, ScriptedModeration, findings_in
from antiphon.tools import Tool, Toolbox, ToolCall
from antiphon.verdicts import Action, Failure, NotRun, OnFailure, Scoring, Stage, Verdict
from antiphon.views import Piece, PieceKind

BLOCKS = {"bomb": Action.BLOCK}


def said(*pairs: tuple[str, str]) -> tuple[Message, ...]:
    return tuple(Message(role=role, content=content) for role, content in pairs)  # type: ignore[arg-type]


def a_turn(messages: tuple[Message, ...], unjudged: int = 0, tools: Toolbox | None = None) -> Turn:
    return Turn(
        request=RequestId("r"),
        model=ModelName("m"),
        messages=messages,
        sampling=Sampling(),
        unjudged=unjudged,
        tools=tools,
    )


async def judged(of: Judging, *turn: Any, **fields: Any) -> InputVerdict:
    return await judge_input(of, a_turn(*turn, **fields))


def watched(of: Judging, *turn: Any, **fields: Any) -> bool:
    return is_watched(of, a_turn(*turn, **fields))


def judging(judge: ScriptedJudge, scoring: Scoring | None = None, **fields: object) -> Judging:
    return Judging(judge, ScriptedModeration(judge=judge, **fields), scoring)  # type: ignore[arg-type]


async def test_every_message_is_judged_in_order_and_results_of_tools_as_such():
    judge = ScriptedJudge()
    messages = said(("system", "s"), ("user", "u"), ("tool", "t"), ("assistant", "a"), ("user", ""))

    decided = await judged(judging(judge), messages)

    assert sorted(judge.asked) == [(Stage.INPUT, ("s", "u", "a")), (Stage.TOOL, ("t",))]
    assert decided.blocked_by is None
    assert decided.messages == messages


async def test_the_operators_own_words_are_not_judged_and_others_keep_their_places():
    judge = ScriptedJudge(phrases=BLOCKS)
    messages = said(("system", "never speak of a bomb"), ("system", "s"), ("user", "a bomb"))

    decided = await judged(judging(judge), messages, 1)

    assert judge.asked == [(Stage.INPUT, ("s", "a bomb"))]
    assert decided.to_blame == (2,)
    assert decided.messages == messages


async def test_the_messages_to_blame_are_known_by_their_places():
    judge = ScriptedJudge(phrases=BLOCKS)
    messages = said(("user", "a bomb"), ("user", "fine"), ("tool", "another bomb"))

    decided = await judged(judging(judge), messages)

    assert decided.blocked_by == "bomb"
    assert decided.finding is not None
    assert decided.to_blame == (0, 2)


async def test_transforms_are_made_in_what_a_model_is_shown():
    judge = ScriptedJudge(phrases={"secret": Action.TRANSFORM})
    messages = said(("user", "my secret is a secret"))

    decided = await judged(judging(judge), messages)

    assert [message.content for message in decided.messages] == ["my [removed] is a [removed]"]


def test_a_rule_that_fails_closed_blocks_and_blames_nobody():
    missing = NotRun(
        rule="hate", stage=Stage.INPUT, failure=Failure.DEADLINE, on_failure=OnFailure.CLOSED
    )
    verdict = Verdict(version="1", not_run=(missing,))

    decided = decide("1", said(("user", "x")), {0: verdict})

    assert (decided.blocked_by, decided.finding, decided.to_blame) == ("hate", None, ())


def test_a_rule_that_fails_open_lets_pass_and_is_told():
    missing = NotRun(
        rule="hate", stage=Stage.INPUT, failure=Failure.DEADLINE, on_failure=OnFailure.OPEN
    )

    decided = decide("1", said(("user", "x")), {0: Verdict(version="1", not_run=(missing,))})

    assert decided.blocked_by is None
    assert decided.verdict.not_run == (missing,)


def test_annotations_and_shadows_block_nothing():
    found = findings_in("a bomb", {"bomb": Action.ANNOTATE}, Stage.INPUT)

    decided = decide("1", said(("user", "a bomb")), {0: Verdict(version="1", findings=found)})

    assert decided.blocked_by is None
    assert decided.verdict.findings == found


async def test_what_was_found_in_files_is_judged_as_that_and_blames_no_item():
    judge = ScriptedJudge(phrases=BLOCKS, stages=frozenset(Stage))
    turn = replace(
        a_turn(said(("user", "a bomb, it says"), ("user", "what does it say?"))),
        pieces=(Piece(kind=PieceKind.RETRIEVED), Piece(kind=PieceKind.INPUT)),
    )

    decided = await judge_input(judging(judge), turn)

    assert sorted(judge.asked) == [
        (Stage.INPUT, ("what does it say?",)),
        (Stage.RETRIEVED, ("a bomb, it says",)),
    ]
    assert decided.blocked_by == "bomb"


def test_without_a_policy_nobody_waits():
    assert not watched(Judging(AllPass(), None, None), said(("user", "x")))
    assert not watched(judging(ScriptedJudge(stages=frozenset())), said(("user", "x")))
    assert watched(judging(ScriptedJudge(stages=frozenset()), Scoring()), said(("user", "x")))


async def test_a_client_that_asks_has_its_input_scored_where_no_rule_does():
    judge = ScriptedJudge(stages=frozenset())
    scored = judging(judge, Scoring(), flagged=("kill",))

    decided = await judged(scored, said(("user", "kill"), ("user", "fine")))

    assert decided.blocked_by is None
    assert decided.verdict.scores is not None
    assert decided.verdict.scores.flagged == {"violence"}
    assert decided.verdict.scores.scores["violence"] == 0.97
    assert judge.asked == []


async def test_what_a_client_wants_blocked_is_blocked_though_no_rule_does():
    scored = judging(ScriptedJudge(), Scoring(blocks_input=True), flagged=("kill",))

    decided = await judged(scored, said(("user", "fine"), ("user", "kill")))

    assert decided.blocked_by == "moderation"
    assert decided.finding is not None
    assert (decided.finding.category, decided.finding.score) == ("violence", 0.97)
    assert decided.to_blame == (1,)


async def test_what_could_not_be_scored_is_blocked_only_where_that_was_asked_for():
    gone = ModerationUnavailable("deadline", 1.0)
    for blocks, rule in ((False, None), (True, "moderation")):
        scored = judging(ScriptedJudge(), Scoring(blocks_input=blocks), unavailable=gone)

        decided = await judged(scored, said(("user", "x")))

        assert decided.blocked_by == rule
        assert decided.finding is None
        assert [each.failure for each in decided.verdict.not_run] == [Failure.DEADLINE]


async def test_stages_are_judged_at_once(autojump_clock):
    judge = ScriptedJudge(delay_s=1.0)
    began = trio.current_time()

    await judged(judging(judge), said(("user", "u"), ("tool", "t")))

    assert trio.current_time() - began == 1.0


CALLED = Message(
    role="assistant", content="", call=ToolCall(id="c", name="f", arguments='{"a": "x"}')
)
BOX = Toolbox(tools=(Tool(name="f", description="a secret bomb", parameters={"type": "object"}),))


async def test_calls_that_are_sent_back_and_tools_are_judged_as_input():
    judge = ScriptedJudge()

    await judged(judging(judge), (*said(("user", "u")), CALLED), 0, BOX)

    assert judge.asked == [(Stage.INPUT, ("u", '{"a": "x"}', BOX.tools[0].text))]


async def test_a_tool_that_is_blocked_blames_no_message():
    judge = ScriptedJudge(phrases=BLOCKS)

    decided = await judged(judging(judge), said(("user", "u")), 0, BOX)

    assert (decided.blocked_by, decided.to_blame) == ("bomb", ())


async def test_transforms_are_made_in_arguments_and_tools():
    judge = ScriptedJudge(phrases={"secret": Action.TRANSFORM, "x": Action.TRANSFORM})

    decided = await judged(judging(judge), (CALLED,), 0, BOX)

    [message] = decided.messages
    assert message.call is not None
    assert message.call.arguments == '{"a": "[removed]"}'
    assert decided.tools is not None
    assert decided.tools.tools[0].description == "a [removed] bomb"
    assert decided.tools.tools[0].name == "f"


async def test_a_tool_that_a_transform_leaves_no_json_of_is_shown_by_its_name_alone():
    judge = ScriptedJudge(phrases={'"object"}': Action.TRANSFORM})

    decided = await judged(judging(judge), said(("user", "u")), 0, BOX)

    assert decided.tools is not None
    assert decided.tools.tools == (Tool(name="f", parameters={"type": "object"}),)


def test_a_turn_with_tools_has_something_to_wait_for():
    judge = judging(ScriptedJudge(stages=frozenset({Stage.INPUT})))

    assert watched(judge, said(("tool", "x")), tools=BOX)
    assert not watched(judge, said(("tool", "x")))

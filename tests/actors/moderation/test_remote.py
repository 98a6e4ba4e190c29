"""An OpenAI-compatible `/v1/moderations` elsewhere."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import trio
import trio.testing

from antiphon.actors.moderation.remote import Remote
from antiphon.testing.judges import ScriptedJudges
from antiphon.testing.moderation import a_turn, moderating
from antiphon.verdicts import Failure, Stage, Verdict

RULES = """
format = 1
version = "elsewhere"

[[rules]]
id = "flagged"
stages = ["input"]
match = { kind = "upstream" }
on_failure = "closed"

[[rules]]
id = "a-little-hate"
stages = ["input"]
match = { kind = "upstream", thresholds = { hate = 0.3 } }
action = "annotate"

[[rules]]
id = "here"
stages = ["input"]
match = { kind = "phrases", phrases = ["pie"] }
"""

Answer = Callable[[dict[str, Any]], httpx2.Response | Exception]


class Elsewhere(httpx2.AsyncBaseTransport):
    """Answers as a test says, after `answer_s`."""

    def __init__(self, answer: Answer, answer_s: float = 0.0) -> None:
        self.answer = answer
        self.answer_s = answer_s
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await trio.sleep(self.answer_s)
        self.requests.append(request)
        match self.answer(json.loads(request.content)):
            case httpx2.Response() as response:
                return response
            case Exception() as error:
                raise error
        raise AssertionError


def results(*scores: float) -> httpx2.Response:
    return httpx2.Response(
        200,
        json={
            "id": "modr-1",
            "model": "theirs",
            "results": [
                {
                    "flagged": score > 0.5,
                    "categories": {"hate": score > 0.5, "violence": False, "illicit": None},
                    "category_scores": {"hate": score, "violence": 0.0, "illicit": None},
                }
                for score in scores
            ],
        },
    )


def by_text(body: dict[str, Any]) -> httpx2.Response:
    return results(
        *(0.9 if "bad" in text else 0.4 if "so-so" in text else 0.1 for text in body["input"])
    )


async def judged(elsewhere: Elsewhere, *texts: str, **settings: Any) -> tuple[Verdict, ...]:
    remote = Remote("http://elsewhere/v1/", "key", lambda: "theirs", connect=lambda: elsewhere)
    async with moderating(ScriptedJudges(), rules=RULES, remote=remote, **settings) as running:
        return await running.service.judge_for(a_turn()).judge(Stage.INPUT, texts)


async def test_one_request_answers_all_rules_for_all_texts(autojump_clock: trio.testing.MockClock):
    elsewhere = Elsewhere(by_text)

    bad, so_so, good = await judged(elsewhere, "bad", "so-so", "good")

    assert [(each.rule, each.category, each.score) for each in bad.findings] == [
        ("flagged", "hate", 0.9),
        ("a-little-hate", "hate", 0.9),
    ]
    assert [each.rule for each in so_so.findings] == ["a-little-hate"]
    assert (bad.blocked_by, so_so.blocked_by) == ("flagged", None)
    assert good == Verdict(version="elsewhere")
    [request] = elsewhere.requests
    assert str(request.url) == "http://elsewhere/v1/moderations"
    assert request.headers["authorization"] == "Bearer key"
    assert json.loads(request.content) == {"model": "theirs", "input": ["bad", "so-so", "good"]}


async def test_whatever_goes_wrong_elsewhere_is_said_and_rules_here_still_run(
    autojump_clock: trio.testing.MockClock,
):
    answers: list[httpx2.Response | Exception] = [
        httpx2.Response(500),
        httpx2.Response(401, json={"error": {"message": "no"}}),
        httpx2.Response(200, text="<html>"),
        httpx2.Response(200, json={"results": []}),
        httpx2.Response(200, content=b"\xff\xfe"),
        httpx2.ConnectError("refused"),
        httpx2.ReadError("lost"),
    ]
    for answer in answers:
        [verdict] = await judged(Elsewhere(lambda _, answer=answer: answer), "a text")

        assert [(one.rule, one.failure) for one in verdict.not_run] == [
            ("flagged", Failure.UPSTREAM),
            ("a-little-hate", Failure.UPSTREAM),
        ]
        assert verdict.blocked_by == "flagged"


async def test_a_slow_answer_costs_no_more_than_the_deadline(
    autojump_clock: trio.testing.MockClock,
):
    began = trio.current_time()

    [verdict] = await judged(Elsewhere(by_text, answer_s=5.0), "a text", deadline_s=1.0)

    assert trio.current_time() - began < 1.1
    assert {one.failure for one in verdict.not_run} == {Failure.DEADLINE}


async def test_one_that_keeps_failing_is_not_asked_for_a_while(
    autojump_clock: trio.testing.MockClock,
):
    elsewhere = Elsewhere(lambda _: httpx2.Response(500))
    remote = Remote("http://elsewhere/v1", None, lambda: "theirs", connect=lambda: elsewhere)
    async with moderating(ScriptedJudges(), rules=RULES, remote=remote) as running:
        handle = running.service.judge_for(a_turn())
        for number in range(8):
            [verdict] = await handle.judge(Stage.INPUT, [f"text {number}"])

        assert len(elsewhere.requests) == 5
        assert {one.failure for one in verdict.not_run} == {Failure.CIRCUIT_OPEN}
        assert [each.name for each in running.service.breakers()] == [
            "moderation",
            "moderation upstream",
        ]

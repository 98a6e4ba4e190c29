"""The policy as operators see it, and the command that reads its rules again."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import trio
from prometheus_client import CollectorRegistry

from antiphon.actors.moderation.status import JudgeView, PolicyView
from antiphon.errors import RulesError, StoreUnavailable
from antiphon.http.ops.app import make_ops_app
from antiphon.http.ops.commands import OpsCommands
from antiphon.http.ops.metrics import PrometheusTelemetry
from antiphon.http.ops.policy import PolicySource
from antiphon.settings import HttpSettings
from antiphon.testing.http import serving
from antiphon.testing.ops import NoOperator, ScriptedSources
from antiphon.testing.telemetry import NullTelemetry
from antiphon.verdicts import PolicyEvent, Stage

TOKEN = "a-token-nobody-guesses"
AUTH = {"authorization": f"Bearer {TOKEN}"}
VIEW = PolicyView(
    version="rules-1",
    source="rules.toml",
    rules=2,
    shadows=1,
    model="toy",
    problem=None,
    refused="rules.toml:3: id: no",
    versions_in_use=("rules-0", "rules-1"),
    waiting=4,
    remembered=9,
    events_waiting=3,
    events_dropped=0,
    judges=(
        JudgeView(
            name="judge-1",
            state="busy",
            pid=7,
            starts=2,
            batches=5,
            texts=8,
            last_exit="killed by signal 9",
        ),
    ),
)
EVENT = PolicyEvent(
    id="pol_1",
    request="req_1",
    rule="no-apples",
    version="rules-1",
    action="block",
    stage=Stage.INPUT,
    created_ms=5,
    user="user_1",
    text="apple pie",
)


class Policy:
    """What a test says; it remembers what it was asked."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked: list[dict[str, Any]] = []
        self.reloads: list[str] = []
        self.reload_s = 0.0

    async def reload(self, source: str) -> str:
        await trio.sleep(self.reload_s)
        self.reloads.append(source)
        if self.error is not None:
            raise self.error
        return "rules-2"

    async def run(self, work: Callable[[Any], Any]) -> Any:
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        return await work(self)

    async def policy_events(self, **wanted: Any) -> tuple[PolicyEvent, ...]:
        await trio.lowlevel.checkpoint()
        self.asked.append(wanted)
        return (EVENT,)

    @asynccontextmanager
    async def client(self, token: str | None = TOKEN) -> AsyncIterator[httpx2.AsyncClient]:
        nobody = NoOperator()
        commands = OpsCommands(
            operator=nobody, settings=nobody, token=lambda: token, deadline_s=0.5
        )
        app = make_ops_app(
            ScriptedSources(),
            HttpSettings,
            CollectorRegistry(),
            NullTelemetry(),
            commands,
            policy=PolicySource(view=lambda: VIEW, reload=self.reload, store=self),
        )
        async with (
            serving(app, HttpSettings) as server,
            httpx2.AsyncClient(base_url=server.url) as client,
        ):
            yield client

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        async with self.client() as client:
            return await client.get(path, headers=headers)

    async def post_reload(self, token: str | None = TOKEN, **headers: str) -> httpx2.Response:
        async with self.client(token) as client:
            return await client.post("/ops/policy/reload", headers=headers)


async def test_the_rules_in_force_and_the_judges_are_shown():
    reply = await Policy().get("/ops/policy")
    shown = reply.json()

    assert (shown["version"], shown["refused"], shown["versions_in_use"]) == (
        "rules-1",
        "rules.toml:3: id: no",
        ["rules-0", "rules-1"],
    )
    assert [(judge["name"], judge["state"], judge["pid"]) for judge in shown["judges"]] == [
        ("judge-1", "busy", 7)
    ]


async def test_events_are_found_by_rule_and_user():
    policy = Policy()

    reply = await policy.get("/ops/policy/events?rule=no-apples&user=user_1&limit=7")
    await policy.get("/ops/policy/events")

    [event] = reply.json()["data"]
    assert (event["id"], event["stage"], event["user"]) == ("pol_1", "input", "user_1")
    assert policy.asked == [
        {"rule": "no-apples", "user": "user_1", "limit": 7},
        {"rule": None, "user": None, "limit": 100},
    ]


async def test_somebodys_words_are_for_who_has_the_token():
    without = await Policy().get("/ops/policy/events")
    with_token = await Policy().get("/ops/policy/events", **AUTH)

    assert [event["text"] for event in without.json()["data"]] == [None]
    assert [event["text"] for event in with_token.json()["data"]] == ["apple pie"]


@pytest.mark.parametrize("limit", ["0", "1001", "-1"])
async def test_a_limit_has_bounds(limit: str):
    reply = await Policy().get(f"/ops/policy/events?limit={limit}")

    assert reply.status_code == 400


async def test_a_store_that_is_away_is_said():
    policy = Policy()
    policy.error = StoreUnavailable("down")

    reply = await policy.get("/ops/policy/events")

    assert reply.status_code == 503
    assert reply.json()["error"]["code"] == "store_unavailable"


async def test_a_reload_says_which_version_is_in_force():
    policy = Policy()

    reply = await policy.post_reload(**AUTH)

    assert reply.json()["version"] == "rules-2"
    assert policy.reloads == ["operator"]


async def test_a_broken_file_is_refused_with_its_line_and_key():
    policy = Policy()
    policy.error = RulesError("rules.toml", 3, "rules.x.id", "no")

    reply = await policy.post_reload(**AUTH)

    assert reply.status_code == 409
    error = reply.json()["error"]
    assert error["code"] == "rules_refused"
    assert error["message"].startswith("rules.toml:3: rules.x.id: no")


@pytest.mark.parametrize(("token", "status"), [(TOKEN, 401), (None, 403)])
async def test_a_reload_needs_the_token(token: str | None, status: int):
    policy = Policy()

    reply = await policy.post_reload(token)

    assert reply.status_code == status
    assert not policy.reloads


async def test_a_disk_that_does_not_answer_is_said_in_time():
    policy = Policy()
    policy.reload_s = 100.0

    reply = await policy.post_reload(**AUTH)

    assert reply.status_code == 504


def test_what_is_judged_is_counted_and_timed():
    registry = CollectorRegistry()
    telemetry = PrometheusTelemetry(registry)
    telemetry.watch_policy(lambda: VIEW)
    telemetry.texts_judged("input", "blocked")
    telemetry.judging_took("input", 0.5)
    telemetry.rule_matched("no-apples", "block", shadow=True)
    telemetry.rule_not_run("deadline", "closed")
    telemetry.judge_restarted()
    telemetry.policy_events_dropped(3)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"antiphon_{name}", labels)

    assert value("policy_verdicts_total", stage="input", outcome="blocked") == 1
    assert value("policy_judging_seconds_sum", stage="input") == 0.5
    assert value("policy_findings_total", rule="no-apples", action="block", shadow="true") == 1
    assert value("policy_not_run_total", failure="deadline", on_failure="closed") == 1
    assert value("judge_restarts_total") == 1
    assert value("policy_events_dropped_total") == 3
    assert value("policy_rules_info", version="rules-1") == 1
    assert value("policy_texts_waiting") == 4
    assert value("policy_events_waiting") == 3
    assert value("policy_rules_refused") == 1
    assert value("judge_up", judge="judge-1") == 1
    assert value("judge_texts_total", judge="judge-1") == 8

"""The export for billing, on a real SQLite file."""

import csv
import io
import itertools
import json
import logging
import time
from pathlib import Path

import msgspec
import pytest
import structlog
from click.testing import CliRunner, Result

from antiphon import admin
from antiphon.billing import SETTLED_LATE_S, Period, export_usage, period
from antiphon.cli import main
from antiphon.errors import AdminError
from antiphon.ids import LOCAL_TENANT, ModelName, NodeId, ResponseId, UserId
from antiphon.quotas import Reservation
from antiphon.records import TokenUsage, User
from antiphon.settings import Settings
from antiphon.storage import Store

DAY_MS = 86_400_000
START = 20_000 * DAY_MS
"""2024-10-04."""
ANN = User(id=UserId("user_ann"), tenant=LOCAL_TENANT, name="Ann, of A", created_ms=1)
BOB = User(id=UserId("user_bob"), tenant=LOCAL_TENANT, name="Bob", created_ms=1)


@pytest.fixture(autouse=True)
def _as_before(monkeypatch, tmp_path):
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setenv("ANTIPHON_DATA_DIR", str(tmp_path / "data"))
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return msgspec.structs.replace(Settings(), data_dir=tmp_path / "data")


async def used(store: Store, number: int, user: UserId, settled_ms: int, model: str = "m") -> None:
    held = Reservation(
        id=ResponseId(f"chatcmpl-{number}"),
        user=user,
        model=ModelName(model),
        tokens=0,
        now_ms=settled_ms - 1000,
        owner=NodeId("node_1"),
        lease_ms=settled_ms,
    )
    await store.reserve(held)
    await store.settle(held.id, TokenUsage(input=10 * number, output=1), settled_ms)


@pytest.fixture
def ledger(settings: Settings) -> Settings:
    async def fill(store: Store) -> None:
        for user in (ANN, BOB):
            await store.add_user(user)
        await used(store, 1, ANN.id, START + 5)
        await used(store, 2, ANN.id, START + 6)
        await used(store, 3, BOB.id, START + 7)
        await used(store, 4, ANN.id, START + 8, "other")
        await used(store, 5, ANN.id, START + DAY_MS)
        await store.erase_user(BOB.id, START + 2 * DAY_MS)

    admin.with_store(settings, fill)
    return settings


def exported(settings: Settings, asked: Period, **options: str) -> str:
    out = io.StringIO()
    made = {"form": "jsonl", "by": "turn"} | options
    admin.with_store(settings, lambda store: export_usage(store, asked, out, **made))
    return out.getvalue()


def test_turns_are_told_one_a_line_with_whose_they_were(ledger: Settings):
    lines = list(map(json.loads, exported(ledger, Period(since_ms=0, until_ms=2**50)).splitlines()))

    assert [line["response"] for line in lines] == [f"chatcmpl-{n}" for n in range(1, 6)]
    assert lines[0] == {
        "settled": "2024-10-04T00:00:00.005+00:00",
        "began": "2024-10-03T23:59:59.005+00:00",
        "response": "chatcmpl-1",
        "user": "user_ann",
        "name": "Ann, of A",
        "tenant": "local",
        "model": "m",
        "input_tokens": 10,
        "cached_tokens": 0,
        "output_tokens": 1,
        "reasoning_tokens": 0,
        "total_tokens": 11,
    }
    assert (lines[2]["user"], lines[2]["name"]) == ("", ""), "erased, and still to be counted"


def test_days_are_told_one_a_line_for_each_user_and_model(ledger: Settings):
    whole = Period(since_ms=0, until_ms=2**50)
    rows = list(csv.DictReader(io.StringIO(exported(ledger, whole, form="csv", by="day"))))

    told = [(r["date"], r["name"], r["model"], r["turns"], r["total_tokens"]) for r in rows]
    assert told == [
        ("2024-10-04", "", "m", "1", "31"),
        ("2024-10-04", "Ann, of A", "m", "2", "32"),
        ("2024-10-04", "Ann, of A", "other", "1", "41"),
        ("2024-10-05", "Ann, of A", "m", "1", "51"),
    ]


@pytest.mark.parametrize("by", ["turn", "day"])
def test_periods_that_follow_one_another_have_each_token_once(ledger: Settings, by: str):
    cuts = [0, START + 6, START + 7, START + DAY_MS, 2**50]
    total = 0
    for since_ms, until_ms in itertools.pairwise(cuts):
        text = exported(ledger, Period(since_ms=since_ms, until_ms=until_ms), by=by)
        total += sum(json.loads(line)["total_tokens"] for line in text.splitlines())

    assert total == 11 + 21 + 31 + 41 + 51


def test_a_period_may_not_reach_into_what_is_still_being_settled():
    now = int(time.time())
    with pytest.raises(AdminError, match="may end"):
        period(None, str(now - SETTLED_LATE_S + 30))

    assert period(None, None).until_ms <= (now - SETTLED_LATE_S + 5) * 1000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2024-10-04", START),
        ("2024-10-04T00:00:01", START + 1000),
        ("2024-10-04T02:00:00+02:00", START),
        (str(START // 1000), START),
    ],
)
def test_a_time_is_a_day_a_moment_or_unix_seconds(text: str, ms: int):
    assert period(text, None).since_ms == ms


@pytest.mark.parametrize("text", ["yesterday", "", "2024-13-01"])
def test_what_is_no_time_is_refused(text: str):
    with pytest.raises(AdminError, match="no time"):
        period(text, None)


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result


def test_the_command_prints_lines_and_says_how_many(ledger: Settings):
    arguments = ("usage", "export", "--since", "2024-10-05", "--format", "jsonl")

    made = run(*arguments)

    assert [json.loads(line)["response"] for line in made.stdout.splitlines()] == ["chatcmpl-5"]
    assert made.stderr == "1 lines\n"
    assert run("usage", "export").stdout.startswith("settled,began,response,user,name,tenant,model")

"""Abuse brakes: as a pure core over a clock of the test's, and in front of a served application."""

from collections.abc import AsyncIterator
from dataclasses import replace

import msgspec
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from antiphon.brake_settings import BrakeSettings
from antiphon.errors import RateLimited, Unauthenticated
from antiphon.http.app import make_api_app
from antiphon.http.brakes import Brakes
from antiphon.http.buckets import Buckets, Rate
from antiphon.ids import KeyId, UserId
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.chat import ScriptedChat
from antiphon.testing.http import Served, serving
from antiphon.testing.telemetry import RecordingTelemetry

SIZE = 100
ALICE = UserId("user_a")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Desk:
    def __init__(self, **settings: float | str) -> None:
        self.settings = msgspec.structs.replace(BrakeSettings(), **settings)
        self.clock = Clock()
        self.telemetry = RecordingTelemetry()
        self.brakes = Brakes(lambda: self.settings, self.telemetry, self.clock)

    def arrives(self, peer: str = "203.0.113.9", secret: str | None = None) -> bool:
        try:
            self.brakes.arrive(peer, "", secret)
        except RateLimited:
            return False
        return True

    def passes(self, check: str, *args: str) -> bool:
        try:
            getattr(self.brakes, check)(*args)
        except RateLimited:
            return False
        return True


def test_a_bucket_gives_its_burst_and_then_its_rate():
    buckets: Buckets[str] = Buckets()
    rate = Rate(per_s=2.0, burst=3)

    assert [buckets.take("a", rate, 0.0, size=SIZE) for _ in range(4)] == [None, None, None, 0.5]
    assert buckets.take("a", rate, 0.4, size=SIZE) == pytest.approx(0.1)
    assert buckets.take("a", rate, 0.5, size=SIZE) is None
    assert buckets.take("b", rate, 0.5, size=SIZE) is None


def test_a_rate_of_nothing_is_no_limit():
    buckets: Buckets[str] = Buckets()

    assert all(buckets.take("a", Rate(0.0, 1), 0.0, size=SIZE) is None for _ in range(9))
    assert len(buckets) == 0


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 2)), max_size=60))
def test_no_more_ever_pass_than_burst_and_rate_allow(steps: list[tuple[int, float]]):
    buckets: Buckets[str] = Buckets()
    rate, now, passed = Rate(per_s=1.5, burst=4), 0.0, 0
    for count, wait in steps:
        passed += sum(buckets.take("a", rate, now, size=SIZE) is None for _ in range(count))
        assert passed <= rate.burst + rate.per_s * now + 1e-6
        now += wait


def test_memory_is_bounded_and_whoever_was_seen_last_is_remembered():
    buckets: Buckets[int] = Buckets()
    rate = Rate(per_s=0.001, burst=1)

    for key in range(1000):
        buckets.take(key, rate, 0.0, size=10)

    assert len(buckets) == 10
    assert buckets.take(999, rate, 0.0, size=10) is not None
    assert buckets.take(0, rate, 0.0, size=10) is None, "forgotten, and so as new"


def test_a_flood_from_one_address_is_braked_and_another_address_is_not():
    desk = Desk(address_per_s=1, address_burst=5)

    assert [desk.arrives() for _ in range(7)] == [True] * 5 + [False] * 2
    assert desk.arrives("198.51.100.1")
    desk.clock.now += 1
    assert [desk.arrives() for _ in range(2)] == [True, False]
    assert desk.telemetry.named("braked") == [("address_flood",)] * 3


def test_a_flood_with_one_key_is_braked_wherever_it_comes_from():
    desk = Desk(key_per_s=1, key_burst=2)

    passed = [desk.arrives(f"203.0.113.{n}", "sk-one") for n in range(4)]

    assert passed == [True, True, False, False]
    assert desk.arrives(secret="sk-another")
    assert desk.telemetry.named("braked") == [("key_flood",)] * 2


def test_whoever_is_on_this_machine_floods_nobody_but_itself():
    desk = Desk(address_per_s=1, address_burst=1)

    assert all(desk.arrives("127.0.0.1") for _ in range(9))


def test_the_advice_is_when_the_next_one_passes():
    desk = Desk(address_per_s=0.5, address_burst=1)
    desk.arrives()

    with pytest.raises(RateLimited) as caught:
        desk.brakes.arrive("203.0.113.9", "", None)

    assert caught.value.retry_after_s == pytest.approx(2.0)
    assert str(caught.value).startswith("Rate limit reached: 0.5 requests per second.")


def test_too_many_wrong_keys_from_an_address_stop_further_looks_from_there():
    desk = Desk(failed_keys_per_minute=60, failed_keys_burst=3)
    for _ in range(3):
        assert desk.passes("before_key", "203.0.113.9")
        desk.brakes.key_failed("203.0.113.9")

    assert not desk.passes("before_key", "203.0.113.9")
    assert desk.passes("before_key", "198.51.100.1")
    desk.clock.now += 1
    assert desk.passes("before_key", "203.0.113.9")
    assert desk.telemetry.named("braked") == [("failed_keys",)]


def test_too_many_blocked_prompts_of_a_user_are_braked():
    desk = Desk(blocked_prompts_per_hour=3600, blocked_prompts_burst=2)
    for _ in range(2):
        assert desk.passes("admit", ALICE, "203.0.113.9")
        desk.brakes.prompt_blocked(ALICE)

    assert not desk.passes("admit", ALICE, "203.0.113.9")
    assert desk.passes("admit", "user_b", "203.0.113.9")
    desk.clock.now += 1
    assert desk.passes("admit", ALICE, "203.0.113.9")


def test_one_line_a_minute_tells_of_an_address_with_how_many_there_were():
    desk = Desk(address_per_s=0.001, address_burst=1)
    with structlog.testing.capture_logs() as logs:
        for _ in range(100):
            desk.arrives()
        desk.clock.now += 61
        for _ in range(10):
            desk.arrives()

    lines = [(line["address"], line["requests"]) for line in logs if line["event"] == "braked"]
    assert lines == [("203.0.113.9", 1), ("203.0.113.9", 99)]


def test_normal_use_is_far_from_every_brake():
    desk = Desk()
    for _ in range(60):
        assert all(desk.arrives(secret="sk-one") for _ in range(200))
        desk.clock.now += 1


# ── in front of the application ──────────────────────────────────────────────────────────────────


@pytest.fixture
def desk() -> Desk:
    return Desk(trusted_proxies="127.0.0.1", address_burst=3, address_per_s=0.01)


@pytest.fixture
def accounts() -> ScriptedAccounts:
    accounts = ScriptedAccounts()
    accounts.principal = replace(accounts.principal, user=ALICE, key=KeyId("key_1"))
    return accounts


@pytest.fixture
async def served(desk: Desk, accounts: ScriptedAccounts) -> AsyncIterator[Served]:
    app = make_api_app(
        ScriptedChat(text=["hi"]),
        HttpSettings,
        GenerationSettings,
        desk.telemetry,
        accounts=accounts,
        brakes=desk.brakes,
    )
    async with serving(app, HttpSettings()) as served:
        yield served


async def sent(served: Served, *headers: str, body: str = "", length: int | None = None) -> bytes:
    """The answer to one request from 198.51.100.1, behind a proxy."""
    client = await served.connect()
    lines = "".join(f"{header}\r\n" for header in headers)
    content_length = len(body) if length is None else length
    await client.send(
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
        f"X-Forwarded-For: 198.51.100.1\r\nContent-Length: {content_length}\r\n{lines}\r\n"
        f"{body}".encode()
    )
    return await client.read_to_end()


async def test_a_flood_is_refused_before_the_body_and_before_the_key(
    served: Served, desk: Desk, accounts: ScriptedAccounts
):
    for _ in range(3):
        assert b" 400 " in await sent(served, "Authorization: Bearer sk-x", body="{}")

    answer = await sent(served, "Authorization: Bearer sk-x", length=1_000_000)

    assert answer.startswith(b"HTTP/1.1 429"), "though not a byte of its body has come"
    assert b"rate_limit_exceeded" in answer
    assert b"retry-after: " in answer.lower()
    assert len(accounts.secrets) == 3


async def test_braked_requests_are_not_logged_one_by_one(served: Served):
    with structlog.testing.capture_logs() as logs:
        for _ in range(9):
            await sent(served, body="{}")
        await served.end()

    told = [line for line in logs if line["log_level"] in {"info", "warning", "error"}]
    assert len([line for line in told if line["event"] == "request_finished"]) == 3
    assert len([line for line in told if line["event"] == "braked"]) == 1


async def test_wrong_keys_are_not_looked_up_any_more_and_a_known_one_still_is(
    served: Served, desk: Desk, accounts: ScriptedAccounts
):
    desk.settings = msgspec.structs.replace(
        desk.settings, failed_keys_burst=2, failed_keys_per_minute=0.01, address_per_s=0
    )
    accounts.error = Unauthenticated("Incorrect API key provided.")
    for _ in range(2):
        assert b" 401 " in await sent(served, "Authorization: Bearer sk-wrong")

    assert b" 429 " in await sent(served, "Authorization: Bearer sk-wronger")
    assert accounts.secrets == ["sk-wrong"] * 2
    assert b" 401 " in await sent(served), "no key at all is no guess"

    accounts.error = None
    accounts.remembered = {"sk-known"}
    assert b" 400 " in await sent(served, "Authorization: Bearer sk-known", body="{}")


async def test_a_user_of_blocked_prompts_is_refused_for_a_while(
    served: Served, desk: Desk, accounts: ScriptedAccounts
):
    desk.settings = msgspec.structs.replace(
        desk.settings, blocked_prompts_burst=1, blocked_prompts_per_hour=0.01
    )
    desk.brakes.prompt_blocked(ALICE)

    assert b" 429 " in await sent(served, "Authorization: Bearer sk-x", body="{}")
    assert desk.telemetry.named("braked") == [("blocked_prompts",)]

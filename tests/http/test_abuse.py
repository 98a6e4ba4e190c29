"""What the abuse detection does to requests, in front of a served application."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import msgspec
import pytest

from antiphon.abuse_settings import AbuseSettings
from antiphon.actors.abuse.abuse import Abuse
from antiphon.actors.abuse.signals import Kind, Signal, Subject
from antiphon.actors.accounts.accounts import LOCAL_PRINCIPAL
from antiphon.brake_settings import BrakeSettings
from antiphon.errors import Unauthenticated
from antiphon.http.abuse import AbuseGate
from antiphon.http.addresses import is_somebodys
from antiphon.http.app import make_api_app
from antiphon.http.brakes import Brakes
from antiphon.ids import KeyId, UserId
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.abuse import JAILBREAK, Clock, Direct
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.chat import MODEL, ScriptedChat
from antiphon.testing.http import serving
from antiphon.testing.stores import ScriptedStore
from antiphon.testing.telemetry import RecordingTelemetry

ALICE = UserId("user_a")
HERE, ELSEWHERE = "198.51.100.1", "198.51.100.2"
BODY = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}


class Desk:
    """Everything between the wire and the detection, on a clock of the test's."""

    def __init__(self) -> None:
        self.settings = AbuseSettings()
        self.brake_settings = BrakeSettings(trusted_proxies="127.0.0.1")
        self.clock = Clock()
        self.telemetry = RecordingTelemetry()
        self.abuse = Abuse(
            Direct(ScriptedStore()),
            lambda: self.settings,
            now_ms=self.clock.wall_ms,
            clock=self.clock,
        )
        gate = AbuseGate(
            self.abuse, lambda: self.brake_settings.proxies, self.telemetry, self.clock
        )
        self.brakes = Brakes(lambda: self.brake_settings, self.telemetry, self.clock, abuse=gate)
        self.accounts = ScriptedAccounts(replace(LOCAL_PRINCIPAL, user=ALICE, key=KeyId("key_1")))
        self.chat = ScriptedChat(text=["hi"])

    def configure(self, **settings: object) -> None:
        self.settings = msgspec.structs.replace(self.settings, **settings)

    def block(self, times: int, *, user: UserId = ALICE, address: str | None = None) -> None:
        for _ in range(times):
            self.brakes.prompt_blocked(user, address=address, rule=JAILBREAK)

    def score(self, kind: Kind, id: str) -> float:
        return self.abuse.detection.score(Subject(kind, id))

    def counted(self, signal: Signal) -> int:
        return self.abuse.statistics().signals[signal.value]


@pytest.fixture
def desk() -> Desk:
    return Desk()


class Client:
    """Behind a proxy, at whichever address."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def post(self, address: str = HERE, **headers: str) -> httpx2.Response:
        return await self._client.post(
            "/v1/chat/completions",
            json=BODY,
            headers={"x-forwarded-for": address, "authorization": "Bearer sk-x"} | headers,
        )

    async def get(self, path: str, address: str = HERE) -> httpx2.Response:
        return await self._client.get(path, headers={"x-forwarded-for": address})


@pytest.fixture
async def client(desk: Desk) -> AsyncIterator[Client]:
    app = make_api_app(
        desk.chat,
        HttpSettings,
        GenerationSettings,
        desk.telemetry,
        accounts=desk.accounts,
        brakes=desk.brakes,
    )
    async with (
        serving(app, HttpSettings()) as served,
        httpx2.AsyncClient(base_url=served.url) as http,
    ):
        yield Client(http)


async def test_an_ordinary_answer_says_nothing(client: Client):
    answer = await client.post()

    assert answer.status_code == 200
    assert "x-antiphon-warning" not in answer.headers


async def test_who_is_warned_is_served_and_told_so_in_a_header(client: Client, desk: Desk):
    desk.block(4)

    answers = [await client.post(), await client.get("/v1/models"), await client.get("/v1/none")]

    assert [answer.status_code for answer in answers] == [200, 200, 404]
    assert {answer.headers["x-antiphon-warning"] for answer in answers} == {
        "policy has blocked prompts of this account; if that goes on, its requests are slowed "
        "down and then refused"
    }


async def test_who_is_slowed_down_is_let_through_now_and_then_and_told_when(
    client: Client, desk: Desk
):
    desk.block(8)

    first = [(await client.post()).status_code for _ in range(3)]
    refused = await client.post()
    wait_s = int(refused.headers["retry-after"])
    desk.clock.now += wait_s
    later = await client.post()

    assert first == [200, 200, 200]
    assert (refused.status_code, wait_s) == (429, 10)
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert "6 requests per minute" in refused.json()["error"]["message"]
    assert refused.headers["x-should-retry"] == "true"
    assert later.status_code == 200
    assert desk.telemetry.named("braked") == [("abuse_slow",)]


async def test_who_is_suspended_is_told_that_it_is_automatic_until_when_and_whom_to_ask(
    client: Client, desk: Desk
):
    desk.block(11)

    answer = await client.post()

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (403, "key_suspended")
    assert error["type"] == "permission_error"
    assert answer.headers["x-should-retry"] == "false"
    assert error["message"] == (
        "This API key is suspended: automatically, for what the policy has blocked of its "
        "prompts, until 2027-01-15T09:16:40+00:00; it ends by itself. Contact the operator."
    )
    assert desk.telemetry.named("braked") == [("abuse_suspended",)]


async def test_forgiving_serves_at_once(client: Client, desk: Desk):
    desk.block(11)
    before = (await client.post()).status_code
    await desk.abuse.forgive(Subject(Kind.USER, ALICE))
    after = await client.post()

    assert (before, after.status_code) == (403, 200)
    assert "x-antiphon-warning" not in after.headers


async def test_an_address_is_slowed_down_before_any_key_is_looked_at(client: Client, desk: Desk):
    for user in ("user_b", "user_c", "user_d"):
        desk.block(5, user=UserId(user), address=HERE)

    answers = [await client.post() for _ in range(4)]
    elsewhere = await client.post(ELSEWHERE)

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert len(desk.accounts.secrets) == 4
    assert elsewhere.status_code == 200
    assert all("x-antiphon-warning" not in answer.headers for answer in answers), (
        "who has done nothing is warned of nothing"
    )


async def test_an_address_is_suspended_where_the_settings_say_so(client: Client, desk: Desk):
    desk.configure(suspend_addresses=True)
    for number in range(4):
        desk.block(5, user=UserId(f"user_{number}"), address=HERE)

    answer = await client.post()

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (403, "address_suspended")
    assert error["message"].startswith("Requests from this address are suspended: automatically,")
    assert error["message"].endswith("Contact the operator.")
    assert desk.accounts.secrets == []


async def test_nothing_is_done_against_the_local_user(client: Client, desk: Desk):
    desk.accounts.principal = LOCAL_PRINCIPAL
    desk.block(100, user=LOCAL_PRINCIPAL.user, address="127.0.0.1")
    desk.block(100, user=LOCAL_PRINCIPAL.user)
    desk.brake_settings = BrakeSettings(trusted_proxies="127.0.0.1", blocked_prompts_per_hour=0)

    answer = await client.post("127.0.0.1")

    assert answer.status_code == 200
    assert "x-antiphon-warning" not in answer.headers
    assert len(desk.abuse.detection) == 0


async def test_nothing_is_done_against_whoever_needs_no_key(client: Client, desk: Desk):
    desk.accounts.principal = LOCAL_PRINCIPAL
    desk.block(11, user=LOCAL_PRINCIPAL.user, address=HERE)

    assert (await client.post(ELSEWHERE)).status_code == 200


async def test_a_key_of_the_local_users_is_used_from_afar_as_any_other(desk: Desk):
    desk.block(4, user=LOCAL_PRINCIPAL.user, address=HERE)

    assert desk.score(Kind.USER, LOCAL_PRINCIPAL.user) == pytest.approx(12.0)


async def test_answered_prompts_are_what_is_held_against_nobody(client: Client, desk: Desk):
    desk.block(1, address=HERE)
    for _ in range(10):
        await client.post()
        await client.get("/v1/models")

    assert desk.score(Kind.USER, ALICE) == pytest.approx(2.0)
    assert desk.score(Kind.ADDRESS, HERE) == pytest.approx(2.0)


async def test_a_refused_prompt_takes_nothing_away(client: Client, desk: Desk):
    desk.block(1)
    await client.post(**{"content-type": "text/plain"})
    desk.chat.models = lambda plan=None: ()
    answer = await client.post()

    assert answer.status_code == 404
    assert desk.score(Kind.USER, ALICE) >= 2.9


async def test_wrong_keys_and_floods_are_held_against_the_address(client: Client, desk: Desk):
    desk.accounts.error = Unauthenticated("Incorrect API key provided.")
    for _ in range(5):
        await client.post()
    desk.brake_settings = msgspec.structs.replace(
        desk.brake_settings, address_burst=1, address_per_s=0.01
    )
    for _ in range(20):
        await client.post(ELSEWHERE)

    assert desk.score(Kind.ADDRESS, HERE) == pytest.approx(1.0)
    assert desk.counted(Signal.FAILED_KEY) == 6
    assert desk.counted(Signal.FLOOD) == 1, "once in ten seconds"


async def test_nothing_is_held_against_this_machine_or_a_proxy(client: Client, desk: Desk):
    desk.accounts.error = Unauthenticated("Incorrect API key provided.")
    for address in ("127.0.0.1", "::1", "garbage"):
        await client.post(address)

    assert desk.counted(Signal.FAILED_KEY) == 0


def test_whose_an_address_is():
    trusted = ("10.0.0.0/8",)

    assert is_somebodys("203.0.113.9", trusted)
    assert is_somebodys("2001:db8::/64", trusted)
    assert not is_somebodys("10.1.2.3", trusted)
    assert not is_somebodys("127.0.0.9", trusted)
    assert not is_somebodys("::1", trusted)
    assert not is_somebodys("unknown", trusted)


async def test_many_accounts_of_an_address_are_noticed(client: Client, desk: Desk):
    for number in range(12):
        desk.accounts.principal = replace(
            LOCAL_PRINCIPAL, user=UserId(f"user_{number}"), key=KeyId(f"key_{number}")
        )
        await client.post()

    assert desk.counted(Signal.MANY_ACCOUNTS) == 2


async def test_watching_lets_everybody_pass(client: Client, desk: Desk):
    desk.configure(mode="watch")
    desk.block(11)

    answer = await client.post()

    assert answer.status_code == 200
    assert "x-antiphon-warning" not in answer.headers
    assert desk.score(Kind.USER, ALICE) > 30

"""What operators see of the abuse detection, and the commands that undo it."""

from collections.abc import AsyncIterator

import httpx2
import pytest
import structlog.testing
from prometheus_client import CollectorRegistry

from antiphon.abuse_settings import AbuseSettings
from antiphon.actors.abuse.abuse import Abuse
from antiphon.actors.abuse.signals import Action, Kind, Subject
from antiphon.errors import StoreUnavailable
from antiphon.http.ops.app import make_ops_app
from antiphon.http.ops.commands import OpsCommands
from antiphon.http.ops.metrics import PrometheusTelemetry
from antiphon.ids import KeyId, TenantId, UserId
from antiphon.records import User
from antiphon.settings import HttpSettings
from antiphon.testing.abuse import JAILBREAK, Clock, Direct
from antiphon.testing.http import serving
from antiphon.testing.ops import ScriptedSources, no_commands
from antiphon.testing.stores import ScriptedStore

TOKEN = "a-token-nobody-guesses"
AUTH = {"authorization": f"Bearer {TOKEN}"}
MALLORY = UserId("user_m")
HOME = "203.0.113.9"
USER = f"/ops/abuse/user/{MALLORY}"


class Site:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store = ScriptedStore()
        self.store.people[MALLORY] = User(
            id=MALLORY, tenant=TenantId("acme"), name="mallory", created_ms=0
        )
        self.settings = AbuseSettings()
        self.abuse = Abuse(
            Direct(self.store),
            lambda: self.settings,
            now_ms=self.clock.wall_ms,
            clock=self.clock,
        )
        self.registry = CollectorRegistry()

    def block(self, times: int, *, user: str = MALLORY, address: str | None = HOME) -> None:
        for _ in range(times):
            self.abuse.prompt_blocked(UserId(user), address, JAILBREAK, "violence")

    def action(self) -> Action:
        return self.abuse.user(MALLORY).action


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site()
    monkeypatch.setattr("antiphon.http.ops.abuse._now_ms", site.clock.wall_ms)
    return site


@pytest.fixture
async def client(site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    nobody = no_commands()
    commands = OpsCommands(
        operator=nobody.operator, settings=nobody.settings, token=lambda: TOKEN, deadline_s=5.0
    )
    telemetry = PrometheusTelemetry(site.registry)
    telemetry.watch_abuse(site.abuse.statistics)
    app = make_ops_app(
        ScriptedSources(), HttpSettings, site.registry, telemetry, commands, site.abuse
    )
    async with (
        serving(app, HttpSettings()) as server,
        httpx2.AsyncClient(base_url=server.url) as client,
    ):
        yield client


async def test_the_list_has_everybody_with_a_score_and_the_worst_first(client, site):
    site.block(1, user="user_a", address=None)
    site.block(11)
    for _ in range(30):
        site.abuse.answered(UserId("user_good"), None)

    found = (await client.get("/ops/abuse")).json()

    assert found["mode"] == "act"
    assert found["thresholds"]["user"] == {"warn": 10.0, "slow": 20.0, "suspend": 30.0}
    assert found["thresholds"]["address"] == {"warn": 10.0, "slow": 20.0}
    shown = [(each["kind"], each["id"], each["action"]) for each in found["subjects"]]
    assert shown == [
        ("user", MALLORY, "suspend"),
        ("address", HOME, "warn"),
        ("user", "user_a", "none"),
    ]
    first = found["subjects"][0]
    assert first["score"] == 33.0
    assert (first["since"], first["until"]) == (
        "2027-01-15T08:16:40+00:00",
        "2027-01-15T09:16:40+00:00",
    )


async def test_the_end_of_a_slowing_down_is_when_half_of_the_threshold_is_left(client, site):
    site.block(7)

    found = (await client.get(USER)).json()["subject"]

    assert (found["action"], found["score"]) == ("slow", 21.0)
    site.clock.now += 3_600 * 1.0704
    assert site.action() is Action.WARN
    assert found["until"] == "2027-01-15T09:20:53+00:00"


async def test_the_evidence_has_each_signal_with_weight_count_times_and_what_is_left(client, site):
    site.block(2)
    site.clock.now += 3_600
    site.block(6)
    for _ in range(12):
        site.abuse.answered(MALLORY, HOME)
    for number in range(12):
        site.abuse.came(MALLORY, KeyId("key_1"), None, f"198.51.100.{number}")

    found = (await client.get(USER)).json()

    assert found["passed"] == {"threshold": 20.0, "score": 21.0}
    assert found["signals"] == [
        {
            "signal": "jailbreak",
            "points": 3.0,
            "count": 8,
            "first": "2027-01-15T08:16:40+00:00",
            "last": "2027-01-15T09:16:40+00:00",
            "now": 21.0,
            "most": None,
            "tolerated": True,
        },
        {
            "signal": "many_addresses",
            "points": 0.5,
            "count": 2,
            "first": "2027-01-15T09:16:40+00:00",
            "last": "2027-01-15T09:16:40+00:00",
            "now": 1.0,
            "most": 5.0,
            "tolerated": False,
        },
    ]
    assert (found["answered"], found["tolerated_points"]) == (12, 1.2)
    assert found["subject"]["score"] == 20.8
    assert found["recent"][-1] == {
        "signal": "jailbreak",
        "points": 3.0,
        "at": "2027-01-15T09:16:40+00:00",
        "detail": f"{JAILBREAK} (violence)",
    }


async def test_of_an_address_it_says_who_brought_what(client, site):
    site.block(2)
    site.block(9, user="user_b")
    site.block(1, user="user_b", address="2001:db8::/64")

    found = (await client.get(f"/ops/abuse/address/{HOME}")).json()
    network = await client.get("/ops/abuse/address/2001:db8::/64")

    assert found["brought_by"] == {MALLORY: 6.0, "user_b": 10.0}
    assert network.json()["subject"]["id"] == "2001:db8::/64"


async def test_of_whom_nothing_is_known_is_404(client):
    for path in ("/ops/abuse/user/user_x", "/ops/abuse/planet/mars"):
        answer = await client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_such_subject")


async def test_forgiving_needs_the_token_and_leaves_a_line(client, site):
    site.block(11)

    refused = await client.post(f"{USER}/forgive")
    held = site.action()
    with structlog.testing.capture_logs() as logs:
        done = await client.post(f"{USER}/forgive", headers=AUTH)

    assert (refused.status_code, held) == (401, Action.SUSPEND)
    assert (done.status_code, done.json()["written"]) == (200, True)
    assert done.json()["evidence"]["subject"]["score"] == 0.0
    assert site.action() is Action.NONE
    lines = [line for line in logs if line["event"] == "operator_command"]
    assert len(lines) == 1
    assert (lines[0]["command"], lines[0]["subject"]) == ("abuse_forgive", MALLORY)
    assert lines[0]["outcome"] == "done"


async def test_forgiving_a_network_names_it_with_its_slash(client, site):
    site.block(9, address="2001:db8::/64")

    done = await client.post("/ops/abuse/address/2001:db8::/64/forgive", headers=AUTH)

    assert done.json()["id"] == "2001:db8::/64"
    assert site.abuse.detection.score(Subject(Kind.ADDRESS, "2001:db8::/64")) == 0.0


async def test_who_was_suspended_by_a_process_that_is_gone_is_forgiven_too(client, site):
    await site.store.suspend_until(MALLORY, "automatically", site.clock.wall_ms() + 1_000_000)

    done = await client.post(f"{USER}/forgive", headers=AUTH)

    assert (done.status_code, done.json()["evidence"]) == (200, None)
    assert site.store.people[MALLORY].suspended is None


async def test_a_pardon_is_for_some_hours_and_shown(client, site):
    site.block(11)

    done = await client.post(f"{USER}/pardon", headers=AUTH, json={"hours": 2})
    pardoned = site.action()
    shown = (await client.get(USER)).json()["subject"]
    listed = (await client.get("/ops/abuse")).json()["subjects"]
    site.clock.now += 2 * 3_600 + 1
    site.block(4)

    assert done.status_code == 200
    assert pardoned is Action.NONE
    assert (shown["action"], shown["pardoned_until"]) == ("none", "2027-01-15T10:16:40+00:00")
    assert shown in listed
    assert site.action() is Action.SLOW


@pytest.mark.parametrize("body", [b"", b"{}", b'{"hours": -1}', b'{"hours": 1e9}', b'{"days": 1}'])
async def test_a_pardon_without_its_hours_is_refused(client, site, body):
    answer = await client.post(f"{USER}/pardon", headers=AUTH, content=body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_body")


async def test_while_the_store_is_away_it_says_that_it_is_not_written_yet(client, site):
    site.block(11)

    async def fail() -> None:
        raise StoreUnavailable("gone")

    site.store.before = fail
    done = await client.post(f"{USER}/forgive", headers=AUTH)

    assert (done.status_code, done.json()["written"]) == (200, False)
    assert site.action() is Action.NONE


async def test_the_metrics_count_signals_and_actions_and_name_nobody(client, site):
    site.block(11)

    text = (await client.get("/metrics")).text

    assert 'antiphon_abuse_signals_total{signal="jailbreak"} 11.0' in text
    assert 'antiphon_abuse_actions_total{action="suspend",kind="user"} 1.0' in text
    assert 'antiphon_abuse_subjects{action="suspend",kind="user"} 1.0' in text
    assert 'antiphon_abuse_subjects{action="warn",kind="address"} 1.0' in text
    assert 'antiphon_abuse_signals_total{signal="flood"} 0.0' in text
    assert MALLORY not in text
    assert HOME not in text

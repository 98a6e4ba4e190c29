"""`antiphon abuse`, against a served operations listener."""

import logging
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest
import structlog
import trio
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from antiphon.abuse_settings import AbuseSettings
from antiphon.actors.abuse.abuse import Abuse
from antiphon.actors.abuse.signals import Action
from antiphon.cli import main
from antiphon.http.ops.app import make_ops_app
from antiphon.http.ops.commands import OpsCommands
from antiphon.ids import UserId
from antiphon.settings import HttpSettings
from antiphon.testing.abuse import JAILBREAK, Clock, Direct
from antiphon.testing.examples import blocks, is_as_shown, replaced, steps
from antiphon.testing.http import Served, serving
from antiphon.testing.ops import ScriptedSources, no_commands
from antiphon.testing.stores import ScriptedStore
from antiphon.testing.telemetry import RecordingTelemetry

TOKEN = "a-token-nobody-guesses"
MALLORY = UserId("user_m")
NETWORK = "2001:db8::/64"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setenv("ANTIPHON_OPS_TOKEN", TOKEN)
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.fixture
def abuse(monkeypatch: pytest.MonkeyPatch) -> Abuse:
    clock = Clock()
    monkeypatch.setattr("antiphon.http.ops.abuse._now_ms", clock.wall_ms)
    abuse = Abuse(Direct(ScriptedStore()), AbuseSettings, now_ms=clock.wall_ms, clock=clock)
    for _ in range(8):
        abuse.prompt_blocked(MALLORY, NETWORK, JAILBREAK, None)
    return abuse


@pytest.fixture
async def ops(abuse: Abuse) -> AsyncIterator[Served]:
    nobody = no_commands()
    commands = OpsCommands(
        operator=nobody.operator, settings=nobody.settings, token=lambda: TOKEN, deadline_s=5.0
    )
    app = make_ops_app(
        ScriptedSources(), HttpSettings, CollectorRegistry(), RecordingTelemetry(), commands, abuse
    )
    async with serving(app, HttpSettings()) as served:
        yield served


async def run(ops: Served, *arguments: str, status: int = 0) -> str:
    """In a thread: the command waits for the server that runs here."""
    invoke = partial(
        CliRunner().invoke, main, ["abuse", *arguments, "--ops", f"127.0.0.1:{ops.port}"]
    )
    result = await trio.to_thread.run_sync(invoke)
    assert result.exit_code == status, result.output
    return result.stderr if status else result.stdout


async def test_the_list_says_who_stands_how(ops: Served):
    assert (await run(ops, "list")).splitlines() == [
        "mode act",
        f"user\t{MALLORY}\t24.0\tslow\tsince 2027-01-15T08:16:40+00:00\t"
        "until 2027-01-15T09:32:26+00:00",
        f"address\t{NETWORK}\t10.0\twarn\tsince 2027-01-15T08:16:40+00:00\t"
        "until 2027-01-15T09:16:40+00:00",
    ]


async def test_an_explanation_has_the_evidence(ops: Served):
    told = (await run(ops, "explain", MALLORY)).splitlines()

    assert "passed 20 with 21.0 points" in told
    assert "thresholds: warn at 10, slow at 20, suspend at 30" in told
    assert any(line.startswith("jailbreak\t24.00 points left of 8 × 3\t") for line in told)
    assert any(line.endswith(f"jailbreak\t3\t{JAILBREAK}") for line in told)


async def test_an_address_is_named_as_the_list_has_it(ops: Served, abuse: Abuse):
    assert f"brought by\t{MALLORY}\t10.00" in await run(ops, "explain", NETWORK)
    assert await run(ops, "forgive", NETWORK) == f"{NETWORK} is forgiven\n"
    assert abuse.address(NETWORK).action is Action.NONE


async def test_forgiving_and_pardoning_undo_it(ops: Served, abuse: Abuse):
    pardoned = await run(ops, "pardon", MALLORY, "--hours", "1.5")
    during = abuse.user(MALLORY).action
    ended = await run(ops, "pardon", MALLORY, "--hours", "0")
    forgiven = await run(ops, "forgive", MALLORY)

    assert pardoned == f"{MALLORY} is pardoned for 1.5 h\n"
    assert ended == f"{MALLORY} is pardoned no more\n"
    assert (during, abuse.user(MALLORY).action) == (Action.NONE, Action.NONE)
    assert forgiven == f"{MALLORY} is forgiven\n"


async def test_of_whom_nothing_is_known_is_one_line(ops: Served):
    told = await run(ops, "explain", "user_x", status=1)

    assert told.startswith("antiphon: 127.0.0.1:")
    assert told.endswith("refuses: Nothing is known of user user_x.\n")


async def test_without_the_token_it_is_refused(ops: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTIPHON_OPS_TOKEN")

    assert "operator token" in await run(ops, "forgive", MALLORY, status=1)


async def test_the_document_shows_what_the_commands_say(ops: Served):
    [session] = blocks("docs/abuse.md", "console")
    given = {"user_9c1e…": MALLORY, "203.0.113.9": NETWORK}

    for step in steps(session):
        _, _, *words = replaced(step.command, given).split()
        printed = await run(ops, *words)
        shown = replaced(step.printed, given)
        assert not shown or is_as_shown(printed, shown)

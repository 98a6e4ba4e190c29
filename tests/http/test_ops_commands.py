"""Operator commands over HTTP, against a tree that a test writes."""

import httpx2
import pytest
import structlog.testing
import trio
import trio.testing
from prometheus_client import CollectorRegistry

from antiphon.errors import (
    ActorStopped,
    AlreadyPresent,
    CommandRefused,
    NoActor,
    RulesError,
    SettingsError,
    SpecError,
    StartFailed,
    WouldDeadlock,
)
from antiphon.http.ops.app import make_ops_app
from antiphon.http.ops.commands import OpsCommands
from antiphon.ids import ActorPath
from antiphon.live_settings import Change, Effect
from antiphon.settings import HttpSettings
from antiphon.supervision.operator import Operator
from antiphon.supervision.spec import SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.http import serving
from antiphon.testing.probes import Puppet, Tree
from antiphon.testing.telemetry import RecordingTelemetry

TOKEN = "a-token-nobody-guesses"
AUTH = {"authorization": f"Bearer {TOKEN}"}
A = "root/pool:m/a"
NAMES = ["restart", "stop", "start"]


class Failing:
    """Raises the same for every command."""

    def __init__(self, error):
        self.error = error

    async def restart(self, path):
        raise self.error

    stop = start = restart


class Settings:
    """Answers reloads with what the test says."""

    def __init__(self):
        self.changes = ()
        self.error = None

    async def reload(self, source):
        assert source == "operator"
        if self.error is not None:
            raise self.error
        return self.changes


class Sources:
    """Of the pages only the tree is looked at."""

    def __init__(self, root):
        self.tree = root.snapshot


class Site:
    """A running tree with one pool of one puppet, and the listener in front of it."""

    def __init__(self):
        self.a = Puppet("a")
        self.pool = Supervisor(SupervisorSpec(), [self.a.spec(init_timeout_s=1000.0)])
        self.root = Supervisor(SupervisorSpec(), [self.pool.child("pool:m")])
        self.operator = Operator(lambda: self.root, {})
        self.settings = Settings()

    def app(self, *, operator=None, token=TOKEN, deadline_s=5.0):
        commands = OpsCommands(
            operator=operator or self.operator,
            settings=self.settings,
            token=lambda: token,
            deadline_s=deadline_s,
        )
        registry = CollectorRegistry()
        sources = Sources(self.root)
        return make_ops_app(sources, HttpSettings, registry, RecordingTelemetry(), commands)

    def serving(self, **options):
        return serving(self.app(**options), HttpSettings())


@pytest.fixture
async def site(nursery):
    site = Site()
    tree = await Tree(site.root).begin(nursery)
    yield site
    await tree.end()


async def post(server, name, *, path=A, headers=AUTH, **options):
    async with httpx2.AsyncClient(base_url=server.url) as client:
        options = options or {"json": {"path": path}}
        return await client.post(f"/ops/{name}", headers=headers, **options)


async def test_a_restart_answers_with_the_child_when_it_is_up_again(site):
    async with site.serving() as server:
        answer = await post(server, "restart")

    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert (body["command"], body["path"]) == ("restart", A)
    assert (body["child"]["state"], body["child"]["incarnation"]) == ("up", 2)


async def test_a_stopped_child_is_down_until_it_is_started(site):
    async with site.serving() as server:
        stopped = await post(server, "stop")
        started = await post(server, "start")
        again = await post(server, "start")

    assert stopped.json()["child"]["state"] == "down"
    assert started.json()["child"]["state"] == "up"
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "already_present"


@pytest.mark.parametrize("name", NAMES)
async def test_without_a_configured_token_commands_say_how_to_enable_them(site, name):
    async with site.serving(token=None) as server:
        answer = await post(server, name)

    assert answer.status_code == 403
    assert "ANTIPHON_OPS_TOKEN" in answer.json()["error"]["message"]
    assert site.a.story == ["+a1"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": TOKEN},
        {"authorization": "Bearer"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": b"Bearer \xff\xfe"},
    ],
)
async def test_a_wrong_or_missing_token_is_401_and_does_nothing(site, name, headers):
    async with site.serving() as server:
        with structlog.testing.capture_logs() as logs:
            answer = await post(server, name, headers=headers)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert site.a.story == ["+a1"]
    assert TOKEN not in answer.text
    assert TOKEN not in str(logs)
    assert not [line for line in logs if line["event"] == "operator_command"]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"path": 1}', b'{"path": ""}', b'{"path":"x","y":1}', b"\xff"]
)
async def test_a_body_that_names_no_path_is_400(site, content):
    async with site.serving() as server:
        answer = await post(server, "restart", content=content)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_body"
    assert site.a.story == ["+a1"]


async def test_an_endless_path_is_400(site):
    async with site.serving() as server:
        answer = await post(server, "restart", path="x" * 513)

    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NoActor(ActorPath(A)), 404),
        (AlreadyPresent(ActorPath(A)), 409),
        (CommandRefused(ActorPath(A), "a reason"), 409),
        (SpecError("child 'a'", "a temporary child is not restarted"), 409),
        (WouldDeadlock(ActorPath(A)), 409),
        (ActorStopped(ActorPath(A)), 503),
        (StartFailed(ActorPath(A), "a reason"), 503),
    ],
)
@pytest.mark.parametrize("name", NAMES)
async def test_what_the_tree_refuses_has_a_status_and_a_sentence(site, name, error, status):
    async with site.serving(operator=Failing(error)) as server:
        answer = await post(server, name)

    assert answer.status_code == status
    assert str(error) in answer.json()["error"]["message"]
    assert answer.json()["error"]["code"]


async def test_an_unknown_path_is_404(site):
    async with site.serving() as server:
        answer = await post(server, "stop", path="root/pool:m/b")

    assert answer.status_code == 404
    assert "root/pool:m/b" in answer.json()["error"]["message"]


async def test_a_restart_that_takes_too_long_is_504_and_goes_on(site):
    held = trio.Event()

    async def hold(context):
        await held.wait()

    site.a.init = hold
    async with site.serving(deadline_s=0.05) as server:
        answer = await post(server, "restart")
        held.set()
        await site.a.up(2)

    assert answer.status_code == 504
    assert f"{A} is starting" in answer.json()["error"]["message"]


async def test_every_command_is_one_line_in_the_log_with_the_requests_id(site):
    async with site.serving() as server:
        with structlog.testing.capture_logs() as logs:
            answers = [
                await post(server, "restart"),
                await post(server, "stop", path="root/nobody"),
            ]

    lines = [line for line in logs if line["event"] == "operator_command"]
    assert [(line["command"], line["path"], line["outcome"]) for line in lines] == [
        ("restart", A, "done"),
        ("stop", "root/nobody", "no_such_child"),
    ]
    assert [line["request_id"] for line in lines] == [
        answer.headers["x-request-id"] for answer in answers
    ]
    assert all(line["duration_s"] >= 0 for line in lines)
    assert TOKEN not in str(logs)


async def test_a_command_whose_sender_left_is_in_the_log_too(site, nursery):
    begun, left = trio.Event(), trio.Event()

    class Endless(Failing):
        async def restart(self, path):
            begun.set()
            try:
                await trio.sleep_forever()
            finally:
                left.set()

    async with site.serving(operator=Endless(None)) as server:
        with structlog.testing.capture_logs() as logs:
            async with trio.open_nursery() as sender:
                sender.start_soon(post, server, "restart")
                await begun.wait()
                sender.cancel_scope.cancel()
            with trio.fail_after(2.0):
                await left.wait()

    assert [line["outcome"] for line in logs if line["event"] == "operator_command"] == ["unheard"]


async def test_commands_are_posted_and_nothing_else(site):
    async with site.serving() as server, httpx2.AsyncClient(base_url=server.url) as client:
        for name in NAMES:
            assert (await client.get(f"/ops/{name}", headers=AUTH)).status_code == 405


async def test_one_child_can_be_looked_at_without_a_token(site):
    async with (
        site.serving(token=None) as server,
        httpx2.AsyncClient(base_url=server.url) as client,
    ):
        worker = await client.get(f"/ops/tree/{A}")
        pool = await client.get("/ops/tree/root/pool:m")
        whole = await client.get("/ops/tree/root")
        nobody = await client.get("/ops/tree/root/pool")

    assert worker.json()["path"] == A
    assert [child["path"] for child in pool.json()["children"]] == [A]
    assert whole.json()["path"] == "root"
    assert nobody.status_code == 404
    assert nobody.json()["error"]["code"] == "no_such_child"


def test_the_token_is_not_in_the_text_of_the_commands():
    commands = OpsCommands(
        operator=Failing(None), settings=Settings(), token=lambda: TOKEN, deadline_s=1.0
    )

    assert TOKEN not in repr(commands)


async def test_a_reload_says_of_each_changed_key_what_it_needs(site):
    site.settings.changes = (
        Change(key="queue.max_requests", applied=True, needs=None),
        Change(key="engine.slots", applied=False, needs=Effect.ENGINE),
    )
    async with site.serving() as server:
        with structlog.testing.capture_logs() as logs:
            answer = await post(server, "reload", content=b"")

    assert answer.status_code == 200
    assert answer.json()["changes"] == [
        {"key": "queue.max_requests", "applied": True, "needs": None},
        {"key": "engine.slots", "applied": False, "needs": "engine_restart"},
    ]
    [line] = [line for line in logs if line["event"] == "operator_command"]
    assert (line["command"], line["path"], line["outcome"]) == ("reload", None, "done")


async def test_a_reload_says_which_line_of_the_policys_rules_is_wrong(site):
    site.settings.error = RulesError("rules.toml", 7, "rules[0].id", "is there twice")
    async with site.serving() as server:
        answer = await post(server, "reload", content=b"")

    assert answer.status_code == 409
    error = answer.json()["error"]
    assert error["code"] == "rules_refused"
    assert error["message"].startswith("rules.toml:7: rules[0].id: is there twice")


async def test_a_reload_of_wrong_settings_is_refused_with_the_key(site):
    site.settings.error = SettingsError("engine.slots", "must be greater than 0")
    async with site.serving() as server:
        with structlog.testing.capture_logs() as logs:
            answer = await post(server, "reload", content=b"")

    assert answer.status_code == 409
    error = answer.json()["error"]
    assert error["code"] == "reload_refused"
    assert "engine.slots" in error["message"]
    assert "nothing has changed" in error["message"]
    [line] = [line for line in logs if line["event"] == "operator_command"]
    assert line["outcome"] == "reload_refused"


async def test_a_reload_needs_the_token_too(site):
    async with site.serving() as server:
        assert (await post(server, "reload", headers={}, content=b"")).status_code == 401
    async with site.serving(token=None) as server:
        assert (await post(server, "reload", content=b"")).status_code == 403

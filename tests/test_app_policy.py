"""The policy in the whole tree of one server: readiness, the tree, and rules that can't be used."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing

from antiphon.app import Server
from antiphon.errors import RulesError, SettingsError
from antiphon.live_settings import LiveSettings
from antiphon.pools import FIRST
from antiphon.serving import listening
from antiphon.settings import PolicySettings, Settings
from antiphon.supervision.tree import node_at
from antiphon.testing.contents import NoContents
from antiphon.testing.judges import ScriptedJudges
from antiphon.testing.models import prepared_default_model
from antiphon.testing.moderation import RULES
from antiphon.testing.scripted import ScriptedLauncher
from antiphon.testing.stores import ScriptedOpener

pytestmark = pytest.mark.engine


def with_policy(**policy: object) -> Settings:
    return msgspec.structs.replace(
        Settings(),
        bind="127.0.0.1:0",
        ops_bind="127.0.0.1:0",
        policy=PolicySettings(**policy),
    )


def with_rules(folder: Path, text: str = RULES) -> Settings:
    path = folder / "rules.toml"
    path.write_text(text)
    return with_policy(rules=path)


@asynccontextmanager
async def running(settings: Settings, judges: ScriptedJudges) -> AsyncIterator[Server]:
    live = LiveSettings(settings, lambda: settings)
    with trio.fail_after(60), listening(settings) as listeners:
        server = Server(
            live,
            {FIRST: prepared_default_model()},
            listeners,
            launchers={FIRST: ScriptedLauncher()},
            open_store=ScriptedOpener(),
            files=NoContents(),
            judges=judges,
        )
        stop, ready = trio.Event(), trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run, stop, ready.set)
            await ready.wait()
            await trio.testing.wait_all_tasks_blocked()
            yield server
            stop.set()


async def test_without_a_judge_a_server_whose_rules_fail_closed_is_not_ready(tmp_path: Path):
    judges = ScriptedJudges()
    async with running(with_rules(tmp_path), judges) as server:
        assert server.overall.not_ready() == ()
        judges.broken = "no memory"
        judges.link.die()
        await trio.testing.wait_all_tasks_blocked()

        assert server.overall.not_ready() == (
            "moderation: no judge process works (down: no memory)",
        )
        node = node_at(server.overall.tree(), "root/moderation/judges/judge-1")
        assert node is not None
        assert node.state != "up"
        assert node_at(server.overall.tree(), "root/moderation/desk").state == "up"


async def test_with_rules_that_fail_open_it_is_a_concern(tmp_path: Path):
    judges = ScriptedJudges()
    rules = RULES.replace('on_failure = "closed"', 'on_failure = "open"')
    async with running(with_rules(tmp_path, rules), judges) as server:
        judges.broken = "no memory"
        judges.link.die()
        await trio.testing.wait_all_tasks_blocked()

        assert server.overall.not_ready() == ()
        assert server.overall.concerns() == (
            "moderation: no judge process works (down: no memory)",
        )


async def test_rules_that_are_broken_later_are_a_concern(tmp_path: Path):
    settings = with_rules(tmp_path)
    async with running(settings, ScriptedJudges()) as server:
        assert settings.policy.rules is not None
        settings.policy.rules.write_text("format = 2\n")
        with pytest.raises(RulesError):
            await server.reload.reload("test")

        [concern] = server.overall.concerns()
        assert concern.startswith(f"moderation: rules refused: {settings.policy.rules}:1: format")
        assert server.overall.not_ready() == ()


async def test_a_policy_that_is_off_starts_no_process_and_lets_all_pass():
    judges = ScriptedJudges()
    async with running(with_policy(enabled=False), judges) as server:
        assert node_at(server.overall.tree(), "root/moderation") is None
        assert not judges.links
        assert (server.overall.not_ready(), server.overall.concerns()) == ((), ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("format = 2", "rules.toml:1: format"),
        (RULES.replace("classifier", "upstream"), "policy.upstream_url"),
        (
            RULES.replace(
                'kind = "classifier"', 'kind = "guard", model = "g", format = "qwen3guard"'
            ),
            "no pool serves the guard 'g'",
        ),
    ],
)
async def test_rules_that_can_not_be_used_stop_the_start(tmp_path: Path, text: str, problem: str):
    with pytest.raises(RulesError) as caught:
        async with running(with_rules(tmp_path, text), ScriptedJudges()):
            pass

    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_an_upstream_whose_key_is_missing_stops_the_start():
    settings = with_policy(upstream_url="http://elsewhere/v1", upstream_key_env="NO_SUCH_KEY")

    with pytest.raises(SettingsError, match="NO_SUCH_KEY"):
        async with running(settings, ScriptedJudges()):
            pass

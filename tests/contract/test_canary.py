"""Many conversations at once, each with a secret word, with cancels and kills between them: no
answer ever holds another's."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.events import Admit
from antiphon.scheduling_settings import SchedulingSettings
from antiphon.settings import Settings
from antiphon.testing.canary import Canaries, KeepingLauncher, Strike, sing
from antiphon.testing.clusters import antiphons, llamas
from antiphon.testing.rig import Rig, WordTokenizer, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink
from antiphon.testing.subjects import obedient_words, openvino, scripted, scripted_link, stand_in
from antiphon.verifying.subjects import Subject

BOUNDS = QueueBounds(max_requests=512, max_tokens=1_000_000, deadline_s=120.0)
PATIENCE_S = 300.0
NOBODY_IS_REFUSED = Settings(scheduling=SchedulingSettings(interactive_objective_s=0.0))
"""However late it will be: on a busy machine all of them are."""
ROUGH = {
    "aborts_unanswered": 0.1,
    "aborts_ignored": 0.1,
    "finals_lost": 0.05,
    "final_delay_s": 0.01,
    "step_throws_each": 200,
    "request_fails_each": 100,
    "tokens_at_once": 2,
    "cut_end": True,
    "main": True,
}


@pytest.fixture
def conversations(request: pytest.FixtureRequest) -> int | None:
    """What the command line says."""
    wanted: int | None = request.config.getoption("conversations")
    return wanted


@asynccontextmanager
async def pool(
    subject: Subject, *, is_elsewhere: bool = False
) -> AsyncIterator[tuple[Rig, Strike]]:
    """A whole pool on it, and what kills its host."""
    launcher = KeepingLauncher(subject.launcher)
    with trio.fail_after(PATIENCE_S):
        async with running_rig(
            launcher,
            bounds=BOUNDS,
            start_timeout_s=60.0,
            tokenizer=subject.tokenizer,
            sends_messages=is_elsewhere,
            settings=NOBODY_IS_REFUSED,
        ) as rig:
            yield rig, launcher.kill


async def check(rig: Rig, canaries: Canaries, strikes: int = 2) -> None:
    await rig.directory.wait_idle()
    afterwards = [await read_all(await rig.open(f"after-{number}")) for number in range(4)]

    assert canaries.foreign == 0
    assert canaries.violations == []
    assert canaries.strikes == strikes
    outcomes = canaries.outcomes
    assert set(outcomes) <= {"completed", "hung_up", "HostLost", "EngineUnavailable"}
    # Enough came through for all this to mean something, and enough did not.
    assert canaries.own > outcomes["completed"] / 2
    assert outcomes["completed"] > len(canaries.records) / 3
    assert outcomes["hung_up"] > len(canaries.records) / 10
    assert all(type(events[-1]).__name__ == "TurnEnded" for events in afterwards), afterwards


async def test_on_a_scripted_engine(tmp_path: Path, conversations: int | None):
    async with scripted(tmp_path) as subject, pool(subject, is_elsewhere=True) as (rig, strike):
        canaries = await sing(rig, conversations or 64, strike)
        await check(rig, canaries)

        assert rig.status.hosts == 3


async def test_an_engine_that_gossips_is_noticed(autojump_clock):
    last: list[Admit] = []

    def gossip(admit: Admit) -> Iterator[str]:
        # Every second answer: who is hung up on or killed before the word is seen is a matter of
        # order, and with only a few there would be runs in which nobody saw one.
        last.append(admit)
        return obedient_words(last[-2] if len(last) % 2 == 0 else admit)

    def link() -> ScriptedLink:
        sound = scripted_link()
        sound.answer = gossip
        return sound

    subject = Subject(model="x", launcher=ScriptedLauncher(link), tokenizer=WordTokenizer())
    async with pool(subject, is_elsewhere=True) as (rig, strike):
        canaries = await sing(rig, 64, strike)

    assert canaries.foreign > 0


async def test_on_a_rough_tensorrt_llm(tmp_path: Path, conversations: int | None):
    async with stand_in(tmp_path, **ROUGH) as subject, pool(subject) as (rig, strike):
        canaries = await sing(rig, conversations or 64, strike)
        await check(rig, canaries)

        assert rig.status.hosts >= 3


@pytest.mark.engine
@pytest.mark.heavy
async def test_on_openvino(tmp_path: Path, conversations: int | None):
    strikes = 2 if conversations else 1
    async with openvino(tmp_path) as subject, pool(subject) as (rig, strike):
        canaries = await sing(rig, conversations or 16, strike, strikes=strikes)
        await check(rig, canaries, strikes)

        assert rig.status.hosts == strikes + 1


@pytest.mark.engine
@pytest.mark.heavy
@pytest.mark.parametrize(("cluster", "few"), [(llamas, 8), (antiphons, 10)])
async def test_on_two_replicas(cluster, few: int, conversations: int | None):
    strikes = 2 if conversations else 1
    async with cluster(2) as servers, pool(servers.subject, is_elsewhere=True) as (rig, _):
        kill = servers.replicas[0].kill
        canaries = await sing(rig, conversations or few, kill, strikes=strikes)
        await check(rig, canaries, strikes)

        assert rig.status.hosts == 1

"""The real process: killed, stopped, slow, and by fault plans; each rule's failure policy holds."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing

from antiphon.judges import JudgeLauncher
from antiphon.moderating import Judge
from antiphon.settings import Settings
from antiphon.testing.judge_process import BAD, MODULE
from antiphon.testing.moderation import Running, a_turn, moderating, node
from antiphon.testing.process import watched
from antiphon.testing.telemetry import RecordingTelemetry
from antiphon.verdicts import Failure, Stage, Verdict

PATIENCE_S = 60.0


class Restarts(RecordingTelemetry):
    """Lets a test wait for a judge that is started again."""

    def __init__(self) -> None:
        super().__init__()
        self.came = trio.Event()

    def judge_restarted(self) -> None:
        super().judge_restarted()
        self.came.set()


@asynccontextmanager
async def judging(
    faults: str | None = None, telemetry: RecordingTelemetry | None = None, **settings: object
) -> AsyncIterator[Running]:
    launcher = JudgeLauncher(
        lambda: msgspec.structs.replace(Settings(), faults=faults), module=MODULE
    )
    with trio.fail_after(PATIENCE_S):
        async with moderating(launcher, telemetry=telemetry, **settings) as running:
            yield running


async def ask(running: Running, text: str) -> Verdict:
    judge: Judge = running.service.judge_for(a_turn())
    [verdict] = await judge.judge(Stage.INPUT, [text])
    judge.close()
    return verdict


def pid(running: Running) -> int:
    [found] = running.service.pids()
    return found


def failures(verdict: Verdict) -> set[Failure]:
    return {one.failure for one in verdict.not_run}


async def test_a_text_goes_through_a_real_process():
    async with judging(deadline_s=20.0) as running:
        found, scores = (
            await ask(running, f"an apple pie, {BAD}"),
            await running.service.score([BAD]),
        )

        assert [finding.rule for finding in found.findings] == ["no-apples", "no-harm"]
        assert scores[0].flagged == {"violence"}
        assert running.service.model == "toy"


async def test_a_process_that_is_killed_is_replaced_and_its_rules_fail_as_they_say():
    telemetry = Restarts()
    # It has a text in hand for ever: the kill is what ends the wait.
    async with judging("judge.hang#2", telemetry, deadline_s=30.0) as running:
        await ask(running, "warm")
        first = pid(running)
        verdicts: list[Verdict] = []

        async def lose() -> None:
            verdicts.append(await ask(running, "lost"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lose)
            await trio.testing.wait_all_tasks_blocked()
            os.kill(first, signal.SIGKILL)
        await telemetry.came.wait()
        again = await ask(running, "an apple pie")

        assert failures(verdicts[0]) == {Failure.WORKER_LOST}
        assert verdicts[0].blocked_by == "no-apples"
        assert again.findings
        assert pid(running) != first
        child = node(running.tree(), "root/moderation/judges/judge-1")
        assert (child.state, child.restarts) == ("up", 1)
        assert running.service.problem() is None


async def test_a_process_that_is_stopped_is_killed_and_replaced():
    telemetry = Restarts()
    async with judging(None, telemetry, deadline_s=0.5) as running:
        while (await ask(running, "warm")).not_run:
            pass
        first = pid(running)
        os.kill(first, signal.SIGSTOP)
        with watched(first) as ended:
            began = trio.current_time()
            verdict = await ask(running, "a text")
            assert trio.current_time() - began < 1.0
            assert failures(verdict) == {Failure.DEADLINE}
            assert verdict.blocked_by == "no-apples"
            await telemetry.came.wait()
            assert ended(5.0)
        while (again := await ask(running, "an apple pie")).not_run:
            pass

        assert again.findings
        assert pid(running) != first


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ("judge.batch=kill#2", Failure.WORKER_LOST),
        ("judge.batch=raise#2", Failure.WORKER_LOST),
        ("judge.hang#2", Failure.DEADLINE),
        ("judge.batch=slow:2#2", Failure.DEADLINE),
    ],
)
async def test_a_fault_plan_strikes_in_the_process(faults: str, expected: Failure):
    async with judging(faults, deadline_s=10.0) as running:
        assert not (await ask(running, "first")).not_run
        running.settings.append(msgspec.structs.replace(running.settings[-1], deadline_s=0.5))

        assert failures(await ask(running, "second")) == {expected}


async def test_a_process_that_dies_while_it_loads_is_started_again():
    telemetry = Restarts()
    # Every process of this plan dies at its first pass of the site, so nobody ever judges.
    async with judging("judge.start=kill#1", telemetry, deadline_s=0.5) as running:
        await telemetry.came.wait()

        assert failures(await ask(running, "a text")) == {Failure.DEADLINE}
        assert running.service.problem() is not None


async def test_a_stop_leaves_no_process_behind():
    async with judging(deadline_s=20.0) as running:
        await ask(running, "warm")
        left = pid(running)

    with pytest.raises(ProcessLookupError):
        os.kill(left, 0)


async def test_the_tree_does_not_wait_for_the_process():
    began = time.perf_counter()
    async with judging():
        assert time.perf_counter() - began < 0.5


def test_it_imports_no_event_loop_and_no_web():
    """They would cost each process a quarter of a second and 30 MB."""
    program = """
import sys
import antiphon.judge.process
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    loaded = set(done.stdout.split())
    assert "antiphon" in loaded
    assert not loaded & {"trio", "quart", "hypercorn", "httpx2", "prometheus_client", "openvino"}


def rules_that_find(number: int) -> str:
    """One rule, whose word and whose id are this version's own."""
    return f"""
format = 1
version = "v{number}"

[[rules]]
id = "finds-{number}"
stages = ["input"]
match = {{ kind = "phrases", phrases = ["word{number}"] }}
"""


EVERY_WORD = " ".join(f"word{number}" for number in range(1, 52))


async def test_fifty_reloads_under_load_and_what_was_found_is_what_the_named_version_finds(
    tmp_path: Path,
):
    path = tmp_path / "rules.toml"
    path.write_text(rules_that_find(1))
    seen: set[str] = set()
    async with judging(rules=path, deadline_s=30.0, workers=2) as running:
        service, over, asked = running.service, trio.Event(), 0

        async def keep_asking(name: str) -> None:
            nonlocal asked
            while not over.is_set():
                asked += 1
                judge = service.judge_for(a_turn())
                [verdict] = await judge.judge(Stage.INPUT, [f"{EVERY_WORD} {name} {asked}"])
                judge.close()
                assert not verdict.not_run
                assert verdict.version == judge.version
                found = [finding.rule for finding in verdict.findings]
                assert found == [f"finds-{verdict.version[1:]}"]
                seen.add(verdict.version)

        await ask(running, "warm")
        async with trio.open_nursery() as nursery:
            for name in "abcdefgh":
                nursery.start_soon(keep_asking, name)
            for number in range(2, 52):
                path.with_suffix(".new").write_text(rules_that_find(number))
                path.with_suffix(".new").rename(path)
                assert await service.reload("test") == f"v{number}"
            over.set()

    assert len(seen) > 25, "turns have lived under many of them"

"""Storms of aborts on TensorRT-LLM's stand-in with each of its bad behaviours by itself: nobody
waits for longer than the bounds allow, and nobody is lost who had no part in it.

All of them together, and those that one request has to suffer alone: `tests/engine_trt`.
"""

import random
from pathlib import Path
from typing import Any

import pytest
import trio

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.events import Message
from antiphon.testing.canary import Canaries, turn
from antiphon.testing.rig import Rig, running_rig
from antiphon.testing.trt import TOKENIZER, EchoTokenizer, TrtLauncher, storm, talking, trt_config

SLOTS = 16
FEW = 4
SILENCE_S = 1.5
RESTART_S = 5.0
"""A host ends, its successor starts and is ready, on a busy machine."""
BOUNDS = QueueBounds(max_requests=512, max_tokens=1_000_000, deadline_s=60.0)
[GUILTY] = TOKENIZER.encode("~").ids

SURVIVED: tuple[dict[str, Any], ...] = (
    {"aborts_unanswered": 0.3},
    {"aborts_ignored": 0.3},
    {"final_delay_s": 0.02},
    {"finals_lost": 0.2},
    {"step_throws_each": 60},
    {"request_fails_each": 9},
    {"tokens_at_once": 3, "cut_end": True, "statistics_fail": True},
    {"failing": GUILTY},
    {"refuse": GUILTY},
    {"strange_end": GUILTY},
    {"mute": GUILTY},
    {"poison": GUILTY},
)
FATAL: tuple[dict[str, Any], ...] = (
    {"aborts_leak": 1.0},
    {"background_error_at": 40},
    {"worker_dies_at": 40},
    {"hangs_at": 40},
    {"unhealthy_at": 40, "main": True},
    {"background_error_at": 60, "shutdown_hangs": True},
)


@pytest.fixture
def admits(request: pytest.FixtureRequest) -> int:
    return request.config.getoption("storm") or 60


def name(switches: dict[str, Any]) -> str:
    return "+".join(switches)


@pytest.mark.parametrize("switches", SURVIVED, ids=name)
async def test_a_host_survives(tmp_path: Path, switches: dict[str, Any], admits: int):
    guilty = "~" if GUILTY in switches.values() else ""
    async with talking(trt_config(tmp_path, slots=SLOTS, abort_wait_s=0.25), **switches) as client:
        await storm(client, admits, seed=3, guilty=guilty)

        assert len(client.free) == SLOTS
        assert client.faults == []
        assert (await client.ask("afterwards")).text == "afterwards"


@pytest.mark.parametrize("switches", FATAL, ids=name)
async def test_a_pool_gets_a_new_host(tmp_path: Path, switches: dict[str, Any], admits: int):
    launcher = TrtLauncher(trt_config(tmp_path, slots=FEW), [switches, {}])
    canaries = Canaries()
    async with running_rig(
        launcher, bounds=BOUNDS, silence_s=SILENCE_S, tokenizer=EchoTokenizer()
    ) as rig:
        began = trio.current_time()
        await _turns(rig, admits, canaries)
        while len(launcher.links) < 2:  # it says once a second how it is
            await _turns(rig, FEW, canaries)
        took_s = trio.current_time() - began
        await rig.directory.wait_idle()
        after = Canaries()
        await _turns(rig, FEW, after, leaves=False)

    assert len(launcher.links) == 2
    assert canaries.violations == []
    outcomes = canaries.outcomes
    # What was lost was lost with a host, and nothing else.
    assert set(outcomes) <= {"completed", "hung_up", "HostLost", "EngineUnavailable"}
    assert outcomes["HostLost"] <= FEW
    assert after.outcomes == {"completed": FEW}
    assert took_s < SILENCE_S + RESTART_S + admits / 50


async def _turns(rig: Rig, count: int, canaries: Canaries, *, leaves: bool = True) -> None:
    dice = random.Random(5)
    limit = trio.CapacityLimiter(2 * SLOTS)

    async def one(number: int, leave_after: int | None) -> None:
        async with limit:
            text = f"word {number} and a few more"
            messages = (Message(role="user", content=text),)
            name = f"turn-{len(canaries.records)}"
            record = await turn(rig, name, messages, canaries, leave_after)
            said = record.text.get(0, "")
            assert text.startswith(said)
            assert record.outcome != "completed" or said == text

    async with trio.open_nursery() as nursery:
        for number in range(count):
            is_leaving = leaves and dice.random() < 0.6
            nursery.start_soon(one, number, dice.randrange(20) if is_leaving else None)

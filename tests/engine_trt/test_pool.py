"""Hosts over the stand-in library, under the real driver, scheduler and sessions."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.events import CancelCause, Message
from antiphon.testing.history import TurnRecord, check_one_ending
from antiphon.testing.rig import Rig, running_rig
from antiphon.testing.trt import EchoTokenizer, TrtLauncher, trt_config

PATIENCE_S = 60.0
SILENCE_S = 1.5
BOUNDS = QueueBounds(max_requests=256, max_tokens=1_000_000, deadline_s=30.0)
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


@asynccontextmanager
async def pool(launcher: TrtLauncher) -> AsyncIterator[Rig]:
    with trio.fail_after(PATIENCE_S):
        async with running_rig(
            launcher, bounds=BOUNDS, silence_s=SILENCE_S, tokenizer=EchoTokenizer()
        ) as rig:
            yield rig


async def a_turn(
    rig: Rig, name: str, text: str, records: list[TurnRecord], *, leave_after: int | None = None
) -> TurnRecord:
    """Ask for `text`; hang up after so many events."""
    record = TurnRecord(name=name, choices=1, opened_at=trio.current_time())
    records.append(record)
    stream = await rig.open(
        name, messages=(Message(role="user", content=text),), max_tokens=128, tenant=name
    )
    while not record.terminal:
        if leave_after is not None and len(record.text.get(0, "")) >= leave_after:
            record.hung_up = True
            stream.cancel(CancelCause.DISCONNECT)
            return record
        record.add(await stream.next_event(), trio.current_time())
    return record


async def some_turns(rig: Rig, prefix: str, count: int = 6) -> list[TurnRecord]:
    records: list[TurnRecord] = []
    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(a_turn, rig, f"{prefix}-{number}", f"{prefix} {number}", records)
    return records


async def settled(rig: Rig) -> None:
    await rig.directory.wait_idle()

    # The host is a process, so nothing in this one says when it has caught up.
    def is_settled() -> bool:
        return rig.view.schedule is not None and not rig.running and rig.status.ready

    while not is_settled():  # noqa: ASYNC110
        await trio.sleep(0.02)


@pytest.mark.parametrize(
    "switches",
    [
        {"worker_dies_at": 12},
        {"hangs_at": 12},
        {"background_error_at": 12, "shutdown_hangs": True},
    ],
    ids=lambda switches: "+".join(switches),
)
async def test_a_lost_engine_is_replaced_within_the_silence_bound(
    tmp_path: Path, switches: dict[str, Any]
):
    launcher = TrtLauncher(trt_config(tmp_path), [switches, {}])
    async with pool(launcher) as rig:
        began = trio.current_time()
        lost = await some_turns(rig, "lost")
        took_s = trio.current_time() - began
        await settled(rig)
        after = await some_turns(rig, "after")
        await settled(rig)

        assert len(launcher.links) == 2
        assert (rig.running, rig.waiting, rig.status.tokens) == (0, 0, {})

    assert [broken for record in lost + after for broken in check_one_ending(record)] == []
    assert took_s < 2 * SILENCE_S + 4.0
    outcomes = {record.outcome for record in lost}
    assert outcomes <= {"HostLost", "completed"}
    assert [record.text[0] for record in sorted(after, key=lambda record: record.name)] == [
        f"after {number}" for number in range(6)
    ]


async def test_no_conversation_ever_hears_anothers_word(tmp_path: Path):
    launcher = TrtLauncher(
        trt_config(tmp_path, slots=8, abort_wait_s=0.25),
        [ROUGH | {"worker_dies_at": 150, "seed": seed} for seed in range(2)] + [ROUGH],
    )
    records: list[TurnRecord] = []
    dice = random.Random(11)
    words = {number: f"canary-{dice.getrandbits(64):016x}" for number in range(64)}

    async def conversation(rig: Rig, number: int, chance: random.Random) -> None:
        word = words[number]
        for turn in range(3):
            leave_after = chance.choice([None, None, 0, 7])
            text = f"the word is {word}, and again {word}."
            name = f"{number}-{turn}"
            record = await a_turn(rig, name, text, records, leave_after=leave_after)
            said = record.text.get(0, "")
            assert text.startswith(said)
            assert record.outcome != "completed" or said == text

    async with pool(launcher) as rig:
        async with trio.open_nursery() as nursery:
            for number in words:
                nursery.start_soon(conversation, rig, number, random.Random(number))
            await trio.sleep(0.4)
            launcher.links[-1].kill()
        await settled(rig)
        after = await some_turns(rig, "after", count=16)
        await settled(rig)
        assert (rig.running, rig.waiting, rig.status.tokens) == (0, 0, {})

    assert [record.outcome for record in after] == ["completed"] * 16
    ended = [record for record in records if not record.hung_up]
    assert [broken for record in ended for broken in check_one_ending(record)] == []
    outcomes = {record.outcome for record in ended}
    # What was lost was lost with a host, and nothing else.
    assert outcomes <= {"completed", "HostLost", "EngineUnavailable"}
    assert sum(record.outcome == "completed" for record in ended) > len(ended) / 3
    assert len(launcher.links) in (2, 3, 4)

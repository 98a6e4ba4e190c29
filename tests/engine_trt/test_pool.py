"""Hosts over the stand-in library, under the real driver, scheduler and sessions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.events import Message
from antiphon.testing.history import TurnRecord, check_one_ending
from antiphon.testing.rig import Rig, running_rig
from antiphon.testing.trt import EchoTokenizer, TrtLauncher, trt_config

PATIENCE_S = 60.0
SILENCE_S = 1.5
BOUNDS = QueueBounds(max_requests=256, max_tokens=1_000_000, deadline_s=30.0)


@asynccontextmanager
async def pool(launcher: TrtLauncher) -> AsyncIterator[Rig]:
    with trio.fail_after(PATIENCE_S):
        async with running_rig(
            launcher, bounds=BOUNDS, silence_s=SILENCE_S, tokenizer=EchoTokenizer()
        ) as rig:
            yield rig


async def a_turn(rig: Rig, name: str, text: str, records: list[TurnRecord]) -> None:
    """Ask for `text`."""
    record = TurnRecord(name=name, choices=1, opened_at=trio.current_time())
    records.append(record)
    stream = await rig.open(
        name, messages=(Message(role="user", content=text),), max_tokens=128, tenant=name
    )
    while not record.terminal:
        record.add(await stream.next_event(), trio.current_time())


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

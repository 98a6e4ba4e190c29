"""The real host process over the stand-in library: answers, and each bad behaviour by itself."""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from antiphon.engine.process import HostLauncher
from antiphon.errors import HostLost
from antiphon.events import EndReason, Fault, Sampling
from antiphon.testing.trt import (
    HOST,
    TOKENIZER,
    EchoClient,
    TrtLauncher,
    encode,
    storm,
    talking,
    trt_config,
)

BOUND_S = 2 * 0.15 + 0.5
"""Twice the wait of `trt_config`, and what a busy machine adds."""


def token(text: str) -> int:
    [only] = TOKENIZER.encode(text).ids
    return int(only)


def workers(client: EchoClient) -> list[psutil.Process]:
    children = psutil.Process(client.pid).children(recursive=True)
    return [child for child in children if "mpi4py" in " ".join(child.cmdline())]


async def ended(processes: Sequence[psutil.Process]) -> None:
    # They are nobody's children, so nothing here hears of their end.
    while any(  # noqa: ASYNC110
        process.is_running() and process.status() != "zombie" for process in processes
    ):
        await trio.sleep(0.01)


def recorded(path: Path, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line["event"] == event]


async def texts_of(client: EchoClient, words: Sequence[str]) -> list[str]:
    texts = dict.fromkeys(words, "")

    async def one(word: str) -> None:
        texts[word] = (await client.ask(word)).text

    async with trio.open_nursery() as nursery:
        for word in words:
            nursery.start_soon(one, word)
    return list(texts.values())


async def test_answers_are_cut_counted_and_ended_as_by_any_engine(tmp_path: Path):
    async with talking(trt_config(tmp_path)) as client:
        whole = await client.ask("hello world", sampling=Sampling(logprobs=True, seed=1))
        short = await client.ask("hello world", max_tokens=3)
        cut = await client.ask("hello STOP world", stop=["STOP"])
        texts = await texts_of(client, [f"conversation {number}" for number in range(16)])
        capabilities = client.capabilities

    assert (whole.text, whole.end) == ("hello world", EndReason.STOP)
    assert whole.logprobs == [-0.25] * len(encode("hello world")[:-1])
    assert short.end is EndReason.LENGTH
    assert short.released is not None
    assert short.released.tokens == 3
    assert (cut.text, cut.end) == ("hello ", EndReason.STOP)
    assert texts == [f"conversation {number}" for number in range(16)]
    assert (capabilities.engine, capabilities.engine_version) == ("tensorrt-llm", "1.2.0")
    assert (capabilities.kv_blocks, capabilities.block_size) == (511, 32)
    assert [step.number for step in client.steps] == list(range(1, len(client.steps) + 1))
    assert client.faults == []


async def test_what_does_not_fit_is_refused_before_the_library_sees_it(tmp_path: Path):
    async with talking(trt_config(tmp_path), refuse=token("~")) as client:
        empty = await client.ask("", prompt=[])
        long = await client.ask("a" * 250)
        refused = await client.ask("a ~ b")
        fine = await client.ask("a b")

    codes = [answer.fault.code for answer in (empty, long, refused) if answer.fault is not None]
    assert codes == ["invalid_sampling", "window", "invalid_sampling"]
    assert fine.text == "a b"


async def test_a_tenants_salt_and_a_shared_system_prompt_reach_the_library(tmp_path: Path):
    record = tmp_path / "record"
    system = "You are a careful assistant. " * 3
    async with talking(trt_config(tmp_path), main=True, record=str(record)) as client:
        for number in range(5):
            await client.ask(f"{system}{number} and more", salt="tenant-a")
        await client.ask(f"{system}else", salt="tenant-b")
    submitted = recorded(record, "submitted")[1:]

    assert [line["salt"] for line in submitted] == ["tenant-a"] * 5 + ["tenant-b"]
    assert all(line["priority"] == 0.5 for line in submitted)
    assert [line["retention"] for line in submitted] == [None, None, *[[[0, 64, 80]]] * 3, None]
    assert all(line["detokenize"] is False for line in submitted)
    assert all(line["streaming"] is True for line in submitted)
    [constructed] = recorded(record, "constructed")
    assert constructed["options"]["max_batch_size"] == "4"
    assert constructed["kv"]["enable_block_reuse"] is True


async def test_a_version_without_salts_serves_without_reuse(tmp_path: Path):
    record = tmp_path / "record"
    async with talking(trt_config(tmp_path), salts=False, record=str(record)) as client:
        answer = await client.ask("hello", salt="tenant-a")

    assert answer.text == "hello"
    assert recorded(record, "constructed")[0]["kv"]["enable_block_reuse"] is False


@pytest.mark.parametrize(
    "switches",
    [
        {"tokens_at_once": 3, "cut_end": True, "statistics_fail": True},
        {"final_delay_s": 0.05},
        {"finals_lost": 1.0},
        {"step_throws_each": 60},
        {"request_fails_each": 9},
    ],
    ids=lambda switches: next(iter(switches)),
)
async def test_answers_are_whole_and_no_slot_leaks_when(tmp_path: Path, switches: dict[str, Any]):
    words = [f"conversation {number} is long enough" for number in range(24)]
    async with talking(trt_config(tmp_path), **switches) as client:
        texts = await texts_of(client, words)

        assert texts == words
        assert len(client.free) == 4
        assert client.faults == []


async def test_an_abort_gives_the_slot_back_within_a_few_iterations(tmp_path: Path):
    async with talking(trt_config(tmp_path), iteration_s=0.01) as client:
        request = await client.say("x" * 100)
        await client.heard(request)
        began = trio.current_time()
        await client.abort(request)
        answer = await client.over(request)

    assert answer.released is not None
    assert answer.released.reason is EndReason.CANCELLED
    # Less than the wait for a proof: it was the engine itself that said so.
    assert answer.released_at - began < 0.14


async def test_an_abort_that_gets_no_answer_is_proved_by_a_probe(tmp_path: Path):
    async with talking(trt_config(tmp_path, slots=1), aborts_unanswered=1.0) as client:
        for _ in range(3):
            request = await client.say("x" * 100)
            await client.heard(request)
            began = trio.current_time()
            await client.abort(request)
            answer = await client.over(request)
            assert 0.14 < answer.released_at - began < BOUND_S
        assert (await client.ask("hello")).text == "hello"


async def test_the_slot_of_an_ignored_abort_is_used_to_the_answers_end(tmp_path: Path):
    async with talking(trt_config(tmp_path), iteration_s=0.01, aborts_ignored=1.0) as client:
        began = trio.current_time()
        request = await client.say("x" * 60)
        await client.heard(request)
        await client.abort(request)
        answer = await client.over(request)

    assert answer.released_at - began > 60 * 0.01
    assert len(answer.text) < 60


async def test_without_aborts_an_unwanted_answer_runs_on_unread(tmp_path: Path):
    record = tmp_path / "record"
    config = trt_config(tmp_path, abort=False)
    async with talking(config, iteration_s=0.005, record=str(record)) as client:
        request = await client.say("x" * 60)
        await client.heard(request)
        await client.abort(request)
        answer = await client.over(request)
        stopped = await client.ask("one STOP two", stop=["STOP"])

    assert len(answer.text) < 60
    assert answer.released is not None
    assert answer.released.reason is EndReason.CANCELLED
    assert stopped.text == "one "
    assert recorded(record, "abort") == []


async def test_slots_that_the_engine_never_frees_cost_the_host(tmp_path: Path):
    async with talking(trt_config(tmp_path, slots=2), aborts_leak=1.0) as client:
        for _ in range(2):
            request = await client.say("x" * 100)
            await client.heard(request)
            await client.abort(request)
        with trio.fail_after(2 + BOUND_S):
            await client.ended.wait()

    assert [fault.code for fault in client.faults] == ["engine_broken"]
    assert client.lost == "exited with status 4"


async def test_a_poisonous_request_fails_alone(tmp_path: Path):
    words = [f"innocent number {number} " * 4 for number in range(3)]
    async with talking(trt_config(tmp_path), poison=token("~"), iteration_s=0.005) as client:
        innocent = [await client.say(word) for word in words]
        for request in innocent:
            await client.heard(request)
        guilty = await client.ask("guilty ~")

        assert [(await client.over(request)).text for request in innocent] == words
        assert guilty.text == ""
        assert guilty.fault is not None
        assert guilty.fault.code == "engine_error"
        assert client.faults == []


async def test_a_request_that_always_fails_by_itself_is_failed_after_a_second_try(tmp_path: Path):
    async with talking(trt_config(tmp_path), failing=token("~")) as client:
        answers = [await client.ask("hello ~") for _ in range(2)]

        assert [answer.fault.code for answer in answers if answer.fault] == ["engine_error"] * 2
        assert len(client.free) == 4


async def test_a_request_that_is_never_answered_is_given_up_and_others_are_not(tmp_path: Path):
    async with talking(trt_config(tmp_path), mute=token("~")) as client:
        mute = await client.say("~")
        began = trio.current_time()
        while client.answers[mute].released is None:
            assert (await client.ask("hello there")).text == "hello there"
        answer = client.answers[mute]

    assert answer.fault is not None
    assert answer.fault.code == "engine_silent"
    assert 0.6 <= answer.released_at - began < 0.6 + BOUND_S


async def test_an_end_of_the_engines_own_making_is_a_failure(tmp_path: Path):
    async with talking(trt_config(tmp_path), strange_end=token("~")) as client:
        answer = await client.ask("~ hello")

    assert answer.fault is not None
    assert answer.fault.detail == "the engine ended it: timeout"


@pytest.mark.parametrize(
    "switches",
    [
        {"background_error_at": 20},
        {"worker_dies_at": 20},
        {"unhealthy_at": 20, "main": True},
    ],
    ids=lambda switches: "+".join(switches),
)
async def test_an_engine_that_is_lost_ends_its_host_and_all_its_processes(
    tmp_path: Path, switches: dict[str, Any]
):
    async with talking(trt_config(tmp_path), **switches) as client:
        rank = workers(client)
        assert len(rank) == 1
        for _ in range(4):
            await client.say("x" * 100)
        with trio.fail_after(3):
            await client.ended.wait()
            await ended(rank)

    assert [fault.code for fault in client.faults] == ["engine_broken"]
    assert client.lost == "exited with status 4"


async def test_a_worker_that_is_killed_is_noticed_at_once(tmp_path: Path):
    async with talking(trt_config(tmp_path)) as client:
        workers(client)[0].send_signal(signal.SIGKILL)
        with trio.fail_after(2):
            await client.ended.wait()

    assert [fault.code for fault in client.faults] == ["engine_broken"]
    assert "worker process" in client.faults[0].detail


async def test_a_host_that_is_killed_takes_its_workers_along(tmp_path: Path):
    async with talking(trt_config(tmp_path)) as client:
        rank = workers(client)
        # One that held it would keep the server from seeing that the host is gone.
        assert rank[0].net_connections("unix") == []
        os.kill(client.pid, signal.SIGKILL)
        with trio.fail_after(5):
            await ended(rank)


async def test_a_halt_ends_everything_in_order(tmp_path: Path):
    async with talking(trt_config(tmp_path)) as client:
        rank = workers(client)
        await client.say("x" * 100)
        await client.link.aclose(grace_s=5)
        with trio.fail_after(5):
            await ended(rank)

        assert client.link._process.returncode == 0


async def test_a_shutdown_that_hangs_is_cut_by_the_server(tmp_path: Path):
    async with talking(trt_config(tmp_path), shutdown_hangs=True) as client:
        rank = workers(client)
        await client.link.aclose(grace_s=0.2)
        with trio.fail_after(5):
            await ended(rank)

        assert client.link._process.returncode == -signal.SIGKILL


async def test_a_shutdown_that_hangs_is_cut_by_the_host_itself(tmp_path: Path):
    async with talking(trt_config(tmp_path), shutdown_hangs=True) as client:
        rank = workers(client)
        await client.link.aclose(grace_s=20)
        await ended(rank)

        assert client.link._process.returncode == 0


@pytest.mark.parametrize(
    ("switches", "reason"),
    [
        ({"import_fails": True}, "can't be imported: libmpi"),
        ({"construction_fails": True}, "Executor worker died during initialization"),
        (None, "can't be imported: No module named 'tensorrt_llm'"),
    ],
)
async def test_a_host_that_can_not_start_says_why(tmp_path: Path, switches, reason: str):
    config = trt_config(tmp_path)
    launcher = HostLauncher(config, module=HOST) if switches is None else None
    link = await (launcher or TrtLauncher(config, [switches])).launch()
    try:
        with trio.fail_after(20):
            fault = await link.receive()
            with pytest.raises(HostLost, match="status 3"):
                await link.receive()
    finally:
        await link.aclose(grace_s=1)

    assert isinstance(fault, Fault)
    assert reason in fault.detail


@pytest.mark.parametrize(
    "switches",
    [
        {},
        {
            "aborts_unanswered": 0.1,
            "aborts_ignored": 0.1,
            "finals_lost": 0.05,
            "step_throws_each": 200,
            "request_fails_each": 300,
            "tokens_at_once": 2,
            "cut_end": True,
            "main": True,
            "seed": 2,
        },
    ],
    ids=["sound", "all together"],
)
async def test_a_storm_of_aborts_leaks_no_slot(tmp_path: Path, switches: dict[str, Any]):
    # Much shorter, and a busy machine that holds the host up looks like an engine that is stuck.
    async with talking(trt_config(tmp_path, slots=16, abort_wait_s=0.25), **switches) as client:
        await storm(client, 1_000, seed=7)

        assert len(client.free) == 16
        assert client.faults == []
        texts = await texts_of(client, [f"afterwards {number}" for number in range(16)])
        assert texts == [f"afterwards {number}" for number in range(16)]

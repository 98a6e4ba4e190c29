"""Answers that leave the engine and come back: their slots are free only when that is proved, and
nothing of their text depends on it."""

import random
from pathlib import Path
from typing import Any

import pytest
import trio

from antiphon.events import EndReason, Sampling
from antiphon.testing.trt import EchoClient, encode, talking, trt_config
from antiphon.verifying.client import Answer

LONG = "a paused answer goes on where it was, to the letter 🎉"
WAIT_S = 0.14
"""Nearly what a host of the tests waits for the last word of what it aborted."""


async def paused(client: EchoClient, text: str = LONG, **fields: Any) -> Answer:
    """An answer with a token or more, paused."""
    request = await client.say(text, **fields)
    await client.heard(request)
    answer = await client.pause(request)
    assert answer.paused
    return answer


async def gone_on(client: EchoClient, answer: Answer) -> Answer:
    request = next(number for number, other in client.answers.items() if other is answer)
    await client.resume(request)
    return await client.over(request)


async def test_a_paused_answer_goes_on_where_it_was(tmp_path: Path):
    async with talking(trt_config(tmp_path, slots=1), iteration_s=0.005) as client:
        answer = await paused(client, sampling=Sampling(seed=1, logprobs=True))
        other = await client.ask("in its slot")
        seen = answer.tokens
        await gone_on(client, answer)

    assert other.text == "in its slot"
    assert (answer.text, answer.end) == (LONG, EndReason.STOP)
    assert 0 < seen < answer.tokens == len(encode(LONG))
    assert answer.logprobs == [-0.25] * (answer.tokens - 1)


async def test_a_slot_whose_abort_gets_no_answer_is_paused_when_that_is_proved(tmp_path: Path):
    async with talking(
        trt_config(tmp_path, slots=1), aborts_unanswered=1.0, iteration_s=0.005
    ) as client:
        request = await client.say(LONG)
        await client.heard(request)
        began = trio.current_time()
        answer = await client.pause(request)
        assert trio.current_time() - began > WAIT_S
        await gone_on(client, answer)

    assert answer.text == LONG


async def test_a_pause_that_the_engine_ignores_ends_with_its_run(tmp_path: Path):
    async with talking(trt_config(tmp_path), aborts_ignored=1.0, iteration_s=0.005) as client:
        answer = await paused(client)
        tokens = answer.tokens
        await gone_on(client, answer)

    assert tokens < len(encode(LONG))
    assert answer.text == LONG


async def test_an_engine_that_is_never_told_to_abort_can_not_pause(tmp_path: Path):
    async with talking(trt_config(tmp_path, abort=False)) as client:
        assert not client.capabilities.pausable
    async with talking(trt_config(tmp_path)) as client:
        assert client.capabilities.pausable


async def test_the_prompt_and_what_there_is_of_the_answer_are_computed_again(tmp_path: Path):
    async with talking(trt_config(tmp_path), iteration_s=0.005) as client:
        answer = await paused(client)
        tokens = answer.tokens
        await gone_on(client, answer)

    assert sum(step.prefilled for step in client.steps) == 2 * len(encode(LONG)) + tokens


@pytest.mark.parametrize(
    "switches",
    [
        {"tokens_at_once": 3, "cut_end": True},
        {"final_delay_s": 0.02},
        {"aborts_unanswered": 0.2},
        {"step_throws_each": 60},
    ],
    ids=lambda switches: next(iter(switches)),
)
async def test_answers_that_come_and_go_are_whole_when(tmp_path: Path, switches: dict[str, Any]):
    dice = random.Random(1)

    async def one(client: EchoClient, number: int) -> None:
        text = f"conversation {number}, {LONG}"
        request = await client.say(text)
        answer = client.answers[request]
        while answer.released is None:
            await trio.sleep(dice.random() * 0.03)
            if answer.released is None and (await client.pause(request)).paused:
                await client.resume(request)
        assert (answer.text, answer.fault) == (text, None)

    async with talking(trt_config(tmp_path), **switches) as client:
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(one, client, number)
        assert len(client.free) == client.capabilities.slots
        assert client.faults == []

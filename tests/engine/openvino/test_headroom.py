"""The blocks reserved for prompt and longest answer are all that a request ever needs, so that the
pipeline never puts one back to give its blocks to another.

It shows as a step without a token for a request that had its first.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from antiphon.engine.config import HostConfig
from antiphon.engine.contract import AdmitRefused
from antiphon.engine.openvino.engine import OpenVinoEngine
from antiphon.engine.openvino.kv import BLOCK_TOKENS
from antiphon.events import Admit, EndReason, Sampling
from antiphon.ids import EngineRequest, SlotIndex

pytestmark = pytest.mark.engine

SLOTS = 8
STEPS = 100


@pytest.fixture(name="engine", scope="module")
def _engine(model_dir: Path) -> Any:
    engine = OpenVinoEngine(
        HostConfig(
            model_dir=model_dir,
            slots=SLOTS,
            window=2048,
            stop_token_ids=(2,),
            kv_cache_mib=10,
            step_tokens=64,
            prefix_cache="shared",
        )
    )
    yield engine
    engine.close()


def numbers(dice: random.Random, count: int) -> list[int]:
    return [dice.randrange(100, 40_000) for _ in range(count)]


def admit(request: int, prompt: list[int], max_tokens: int) -> Admit:
    return Admit(
        request=EngineRequest(request),
        slot=SlotIndex(0),
        prompt=prompt,
        max_tokens=max_tokens,
        sampling=Sampling(temperature=0, ignore_eos=True),
        stop=[],
    )


def test_a_pool_filled_to_the_last_block_never_puts_a_request_back(engine: OpenVinoEngine):
    """Prompts that begin as others did or as none, answers that fill their last block, cancels, and
    a new request whenever one fits, the last of them cut so that no block is left."""
    dice = random.Random(7)
    bases = [numbers(dice, 400) for _ in range(3)]
    wanted: dict[int, int] = {}
    got: Counter[int] = Counter()
    ended: Counter[EndReason] = Counter()
    full = 0
    number = 0
    for _ in range(STEPS):
        while len(wanted) < SLOTS and engine._blocks_left:
            number += 1
            beginning = dice.choice(bases)[: dice.choice([0, 0, 64, dice.randrange(1, 200)])]
            prompt = [*beginning, *numbers(dice, dice.randrange(1, 60))]
            most = dice.randrange(2, 60)
            most += -(len(prompt) + most) % BLOCK_TOKENS
            try:
                engine.admit(admit(number, prompt, most))
            except AdmitRefused:
                most = dice.randrange(2, 30)
                prompt = numbers(dice, engine._blocks_left * BLOCK_TOKENS - most)
                engine.admit(admit(number, prompt, most))
            wanted[number] = most
        full += engine._blocks_left == 0
        for request in [each for each in wanted if dice.random() < 0.02]:
            engine.abort(EngineRequest(request))
            del wanted[request]
        decoding = {request for request in wanted if got[request]}

        result = engine.step()

        assert not result.failed
        gained = {each.request: each for each in result.gained}
        assert decoding <= gained.keys()
        for request, each in gained.items():
            got[request] += len(each.tokens)
            if each.end is not None:
                ended[each.end] += 1
                assert got[request] == wanted.pop(request)
    for request in wanted:
        engine.abort(EngineRequest(request))
    engine.step()
    assert full > STEPS / 4
    assert ended.keys() == {EndReason.LENGTH}
    assert ended[EndReason.LENGTH] > SLOTS * 2


@pytest.mark.parametrize("steps_before", [0, 1, 6])
def test_an_abort_of_the_only_request_frees_it_and_is_no_end(
    engine: OpenVinoEngine, steps_before: int
):
    """The pipeline turns its status into the one that says that there was no room."""
    before = engine._blocks_left
    request = EngineRequest(10_000 + steps_before)
    engine.admit(admit(request, [7] * 100, 50))
    for _ in range(steps_before):
        engine.step()

    engine.abort(request)
    result = engine.step()

    assert result.freed == [request]
    assert not result.gained
    assert not result.failed
    assert engine._blocks_left == before
    assert not engine.busy()
    assert engine.kv_usage() == 0

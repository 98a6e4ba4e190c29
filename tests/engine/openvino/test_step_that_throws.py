"""The fault site inside the engine: a step of the library that throws costs nobody anything."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from antiphon import faults
from antiphon.engine.config import HostConfig
from antiphon.engine.openvino.engine import OpenVinoEngine
from antiphon.events import Admit, Sampling
from antiphon.fault_plan import Fault, FaultPlan, Site
from antiphon.ids import EngineRequest, SlotIndex

pytestmark = pytest.mark.engine

REQUESTS = (1, 2, 3)


def answers(engine: OpenVinoEngine, prompt: list[int], first: int) -> tuple[list[int], set[int]]:
    """How many tokens each request of three got, and which ones failed."""
    for number in REQUESTS:
        engine.admit(
            Admit(
                request=EngineRequest(first + number),
                slot=SlotIndex(number),
                prompt=prompt,
                max_tokens=12,
                sampling=Sampling(temperature=0, ignore_eos=True),
                stop=[],
            )
        )
    counts = {first + number: 0 for number in REQUESTS}
    failed: set[int] = set()
    while engine.busy():
        result = engine.step()
        for gained in result.gained:
            counts[gained.request] += len(gained.tokens)
        failed |= {failure.request for failure in result.failed}
    return list(counts.values()), failed


def test_a_step_that_throws_is_made_good_by_the_steps_after_it(model_dir: Path):
    config = HostConfig(
        model_dir=model_dir, slots=8, window=2048, stop_token_ids=(2,), kv_cache_mib=64
    )
    tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
    prompt = tokenizer.encode("<|im_start|>user\nCount to ten.<|im_end|>\n").ids
    engine = OpenVinoEngine(config)
    try:
        for nth in (1, 2, 6):
            plan = FaultPlan((Fault(Site.ENGINE_STEP_THROWS, nth=nth),))
            with faults.injected(plan) as injector:
                counts, failed = answers(engine, prompt, 100 * nth)

            assert injector.struck == {Site.ENGINE_STEP_THROWS: 1}
            assert failed == set()
            assert counts == [12, 12, 12]
    finally:
        engine.close()

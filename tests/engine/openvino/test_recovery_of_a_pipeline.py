"""A malformed schema that gets past the check, in a real pipeline: the step throws for everybody,
and only the culprit pays."""

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from antiphon.engine.config import HostConfig
from antiphon.engine.openvino.engine import OpenVinoEngine
from antiphon.engine.openvino.schemas import SchemaVerdict
from antiphon.events import Admit, EndReason, Sampling
from antiphon.ids import EngineRequest, SlotIndex

pytestmark = pytest.mark.engine

MALFORMED = '{"type": "nonsense"}'
SURE_TOKENS = 5
"""Of "The capital of France is Paris": as many as hold whatever else is in the batch."""


@pytest.fixture(name="engine", scope="module")
def _engine(model_dir: Path) -> Any:
    config = HostConfig(
        model_dir=model_dir, slots=8, window=2048, stop_token_ids=(2,), kv_cache_mib=64
    )
    engine = OpenVinoEngine(config)
    engine._schemas.verdict = lambda schema: SchemaVerdict(None)
    yield engine
    engine.close()


@pytest.fixture(name="prompt", scope="module")
def _prompt(model_dir: Path) -> list[int]:
    tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
    text = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    return tokenizer.encode(text).ids


def admit(prompt: list[int], request: int, **sampling: Any) -> Admit:
    return Admit(
        request=EngineRequest(request),
        slot=SlotIndex(0),
        prompt=prompt,
        max_tokens=30,
        sampling=Sampling(temperature=0, **sampling),
        stop=[],
    )


def run(engine: OpenVinoEngine) -> tuple[dict[int, list[int]], dict[int, EndReason], set[int]]:
    """Step until nothing is left: tokens, ends and failures by request."""
    tokens: dict[int, list[int]] = {}
    ends: dict[int, EndReason] = {}
    failed: set[int] = set()
    freed: list[int] = []
    while engine.busy():
        result = engine.step()
        for gained in result.gained:
            tokens.setdefault(gained.request, []).extend(gained.tokens)
            if gained.end is not None:
                ends[gained.request] = gained.end
        failed |= {failure.request for failure in result.failed}
        freed += result.freed
    assert len(freed) == len(set(freed))
    assert set(freed) | failed >= set(ends)
    return tokens, ends, failed


def test_innocents_go_on_where_they_were_and_the_culprit_fails(
    engine: OpenVinoEngine, prompt: list[int]
):
    engine.admit(admit(prompt, 1))
    [alone] = run(engine)[0].values()
    for request in (2, 3, 4):
        engine.admit(admit(prompt, request))
    early = {gained.request: list(gained.tokens) for gained in engine.step().gained}
    engine.admit(admit(prompt, 5, json_schema=MALFORMED))
    engine.admit(admit(prompt, 6))

    tokens, ends, failed = run(engine)

    assert failed == {5}
    assert set(ends) == {2, 3, 4, 6}
    # Greedy text is not bit-stable when batches differ: it may ramble to its bound.
    assert set(ends.values()) <= {EndReason.STOP, EndReason.LENGTH}
    for request in (2, 3, 4, 6):
        # Greedy text is not bit-stable when batches differ, so only the sure beginning is compared:
        # it shows that nothing was lost or said twice at the seam.
        answer = [*early.get(EngineRequest(request), []), *tokens[request]]
        assert answer[:SURE_TOKENS] == alone[:SURE_TOKENS]


def test_a_culprit_that_is_alone_fails_and_the_engine_works_on(
    engine: OpenVinoEngine, prompt: list[int]
):
    engine.admit(admit(prompt, 11, json_schema=MALFORMED))
    assert run(engine)[2] == {11}

    engine.admit(admit(prompt, 12))

    _, ends, failed = run(engine)
    assert failed == set()
    assert set(ends) == {12}
    assert set(ends.values()) <= {EndReason.STOP, EndReason.LENGTH}


def test_an_abort_of_a_parked_request_frees_it(engine: OpenVinoEngine, prompt: list[int]):
    for request in (21, 22, 23):
        engine.admit(admit(prompt, request, json_schema=MALFORMED))
    engine.step()
    for request in (21, 22, 23):
        engine.abort(EngineRequest(request))

    _, ends, failed = run(engine)

    assert ends == {}
    assert failed == set()
    assert engine._blocks_left == engine.capabilities.kv_blocks

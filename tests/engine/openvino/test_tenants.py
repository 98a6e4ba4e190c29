"""Whether one tenant can find out what another has asked, from when the first token comes. Counted
in engine steps, which is what its time is made of."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from antiphon.engine.config import HostConfig, PrefixCache
from antiphon.engine.process import HostLauncher
from antiphon.events import Ready, Sampling
from antiphon.verifying.client import Answer, Client

pytestmark = pytest.mark.engine
PATIENCE_S = 100.0
END_OF_TURN = 2
STEP_TOKENS = 64
PROMPT = [1, *(1000 + 7 * n for n in range(8 * STEP_TOKENS - 1))]
COLD_STEPS = 8
ANSWER_TOKENS = 4


class Asker:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, prompt: list[int], salt: str | None, **sampling: float) -> Answer:
        request = await self.client.admit(
            prompt,
            max_tokens=ANSWER_TOKENS,
            salt=salt,
            sampling=Sampling(temperature=0, ignore_eos=True, **sampling),
        )
        return await self.client.over(request)

    async def steps_to_first_token(self, prompt: list[int], salt: str | None) -> int:
        before = len(self.client.steps)
        answer = await self.ask(prompt, salt)
        assert answer.fault is None
        return len(self.client.steps) - before - (ANSWER_TOKENS - 1)


@asynccontextmanager
async def engine(model_dir: Path, prefix_cache: PrefixCache) -> AsyncIterator[Asker]:
    config = HostConfig(
        model_dir=model_dir,
        slots=2,
        window=2048,
        stop_token_ids=(END_OF_TURN,),
        kv_cache_mib=64,
        step_tokens=STEP_TOKENS,
        prefix_cache=prefix_cache,
    )
    with trio.fail_after(PATIENCE_S):
        link = await HostLauncher(config).launch()
        try:
            ready = await link.receive()
            assert isinstance(ready, Ready)
            client = Client(link, ready.capabilities)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.read)
                yield Asker(client)
                nursery.cancel_scope.cancel()
        finally:
            await link.aclose(grace_s=5)


async def test_a_tenant_cannot_time_what_another_has_asked(model_dir: Path):
    async with engine(model_dir, "tenant") as asker:
        assert await asker.steps_to_first_token(PROMPT, "a") == COLD_STEPS
        assert await asker.steps_to_first_token(PROMPT, "a") == 1
        assert await asker.steps_to_first_token(PROMPT, "b") == COLD_STEPS
        # A caller without a tenant is nobody's neighbour either.
        assert await asker.steps_to_first_token(PROMPT, None) == COLD_STEPS
        assert await asker.steps_to_first_token(PROMPT, "a") == 1
        capabilities = asker.client.capabilities
        assert capabilities.prefix_cache
        assert capabilities.isolates_tenants


async def test_a_shared_cache_tells(model_dir: Path):
    async with engine(model_dir, "shared") as asker:
        assert await asker.steps_to_first_token(PROMPT, "a") == COLD_STEPS
        assert await asker.steps_to_first_token(PROMPT, "b") == 1
        assert not asker.client.capabilities.isolates_tenants


async def test_without_a_cache_nothing_is_remembered(model_dir: Path):
    async with engine(model_dir, "off") as asker:
        assert await asker.steps_to_first_token(PROMPT, "a") == COLD_STEPS
        assert await asker.steps_to_first_token(PROMPT, "a") == COLD_STEPS
        assert not asker.client.capabilities.prefix_cache


async def test_a_salt_changes_no_answer(model_dir: Path):
    async with engine(model_dir, "tenant") as asker:
        plain, salted = await asker.ask(PROMPT, None), await asker.ask(PROMPT, "a")

    assert plain.text
    assert salted.text == plain.text


async def test_a_repetition_penalty_beside_a_salt_is_refused_and_harms_nobody(model_dir: Path):
    async with engine(model_dir, "tenant") as asker:
        refused = await asker.ask(PROMPT, "a", repetition_penalty=1.2)
        alone = await asker.ask(PROMPT, None, repetition_penalty=1.2)
        other = await asker.ask(PROMPT, "a", presence_penalty=0.5, frequency_penalty=0.5)

    assert refused.fault is not None
    assert refused.fault.code == "invalid_sampling"
    assert alone.fault is None
    assert other.fault is None
    assert not asker.client.capabilities.salted_repetition_penalty

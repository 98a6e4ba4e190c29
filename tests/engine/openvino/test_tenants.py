"""Whether one tenant can find out what another has asked, from when the first token comes. Counted
in engine steps, which is what its time is made of."""

from pathlib import Path

import pytest

from antiphon.testing.hosted import STEP_TOKENS, hosted

pytestmark = pytest.mark.engine
PROMPT = [1, *(1000 + 7 * n for n in range(8 * STEP_TOKENS - 1))]
COLD_STEPS = 8


async def test_a_tenant_cannot_time_what_another_has_asked(model_dir: Path):
    async with hosted(model_dir, prefix_cache="tenant") as asker:
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
    async with hosted(model_dir, prefix_cache="shared") as asker:
        assert await asker.steps_to_first_token(PROMPT, "a") == COLD_STEPS
        assert await asker.steps_to_first_token(PROMPT, "b") == 1
        assert not asker.client.capabilities.isolates_tenants


async def test_without_a_cache_nothing_is_remembered(model_dir: Path):
    async with hosted(model_dir, prefix_cache="off") as asker:
        assert await asker.steps_to_first_token(PROMPT, "a") == COLD_STEPS
        assert await asker.steps_to_first_token(PROMPT, "a") == COLD_STEPS
        assert not asker.client.capabilities.prefix_cache


async def test_a_salt_changes_no_answer(model_dir: Path):
    async with hosted(model_dir, prefix_cache="tenant") as asker:
        plain, salted = await asker.ask(PROMPT, None), await asker.ask(PROMPT, "a")

    assert plain.text
    assert salted.text == plain.text


async def test_a_repetition_penalty_beside_a_salt_is_refused_and_harms_nobody(model_dir: Path):
    async with hosted(model_dir, prefix_cache="tenant") as asker:
        refused = await asker.ask(PROMPT, "a", repetition_penalty=1.2)
        alone = await asker.ask(PROMPT, None, repetition_penalty=1.2)
        other = await asker.ask(PROMPT, "a", presence_penalty=0.5, frequency_penalty=0.5)

    assert refused.fault is not None
    assert refused.fault.code == "invalid_sampling"
    assert alone.fault is None
    assert other.fault is None
    assert not asker.client.capabilities.salted_repetition_penalty

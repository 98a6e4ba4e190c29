"""A patient prompt is computed in pieces, between which others pass it."""

from pathlib import Path

import pytest

from antiphon.events import EndReason
from antiphon.testing.hosted import STEP_TOKENS, Asker, hosted

pytestmark = pytest.mark.engine
LONG = [1, *(1000 + 7 * n for n in range(12 * STEP_TOKENS - 1))]
SHORT = [1, *(2000 + 11 * n for n in range(STEP_TOKENS // 2))]


async def steps_of_a_short_prompt_behind(asker: Asker, *, patient: bool) -> tuple[int, str]:
    """How many steps it takes to its first token, and what the long one says."""
    client = asker.client
    long = await asker.begin(LONG, patient=patient)
    await client.stepped()
    before = len(client.steps)
    short = await asker.begin(SHORT)
    await client.heard(short)
    steps = len(client.steps) - before
    return steps, (await client.over(long)).text


async def test_a_short_prompt_passes_a_patient_one_and_no_other(model_dir: Path):
    async with hosted(model_dir) as asker:
        passing, pieces = await steps_of_a_short_prompt_behind(asker, patient=True)
    async with hosted(model_dir) as asker:
        queueing, whole = await steps_of_a_short_prompt_behind(asker, patient=False)

    assert passing <= 4
    assert queueing >= 8
    assert pieces == whole


async def test_a_patient_prompt_loses_nothing_by_it(model_dir: Path):
    async with hosted(model_dir) as asker:
        answer = await asker.ask(LONG, patient=True)
        again = await asker.ask(LONG, "tenant", patient=True)

    assert (answer.end, answer.tokens) == (EndReason.LENGTH, 4)
    assert again.text == answer.text
    assert len(asker.client.steps) <= 2 * (12 + 3) + 4
    assert asker.client.violations == []


async def test_what_a_patient_prompt_finds_in_the_cache_costs_it_no_step(model_dir: Path):
    async with hosted(model_dir) as asker:
        await asker.ask(LONG, patient=True)
        before = len(asker.client.steps)
        await asker.ask([*LONG, *SHORT], patient=True)

    assert len(asker.client.steps) - before <= 3 + 3


async def test_a_patient_prompt_can_be_aborted_between_two_pieces(model_dir: Path):
    async with hosted(model_dir) as asker:
        client = asker.client
        request = await asker.begin(LONG, patient=True)
        await client.stepped()
        await client.stepped()
        await client.abort(request)
        cancelled = await client.over(request)
        answer = await asker.ask(SHORT)

    assert cancelled.released is not None
    assert cancelled.released.reason is EndReason.CANCELLED
    assert answer.fault is None
    assert len(client.free) == 2


async def test_while_a_patient_prompt_waits_another_can_be_aborted_in_the_middle_of_its_own(
    model_dir: Path,
):
    """The host ended: it asked a run that had gone whether it was patient."""
    async with hosted(model_dir) as asker:
        client = asker.client
        other = await asker.begin([1, *(3000 + n for n in range(6 * STEP_TOKENS))])
        await client.stepped()
        patient = await asker.begin(LONG, patient=True)
        await client.stepped()
        await client.abort(other)
        cancelled = await client.over(other)
        answer = await client.over(patient)

    assert cancelled.released is not None
    assert cancelled.released.reason is EndReason.CANCELLED
    assert (answer.end, answer.tokens) == (EndReason.LENGTH, 4)
    assert client.violations == []

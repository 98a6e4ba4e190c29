import math
import random

import pytest

from antiphon.simulating.engine_model import EngineModel, StepCosts
from antiphon.simulating.virtual_engine import Run, VirtualEngine


def model(**fields):
    costs = StepCosts(step_s=1.0, decode_s=0.0, prefill_s=0.0)
    whole = {"costs": costs, "slots": 8, "kv_blocks": 1000, "block_size": 16, "step_tokens": 32}
    return EngineModel(name="test", model="m", machine="none", source="", **(whole | fields))


def run(number, prompt, answer, lane=0):
    return Run(number=number, lane=lane, prompt=prompt, todo=prompt, left=answer)


def drained(engine):
    """What happened, with its times, up to when nothing is left to do."""
    first, ended, left = {}, {}, {}
    while engine.next_at < math.inf:
        at = engine.next_at
        happened = engine.advance()
        first |= {each.number: at for each in happened.first}
        ended |= {each.number: at for each in happened.ended}
        left |= {each.number: at for each in happened.left}
    return first, ended, left


def test_a_lone_answer_takes_a_step_for_each_token():
    engine = VirtualEngine(model(), 1)

    engine.begin(run(1, prompt=20, answer=5), 10.0)

    assert drained(engine) == ({1: 11.0}, {1: 15.0}, {})


def test_a_long_prompt_is_prefilled_in_chunks():
    engine = VirtualEngine(model(), 1)

    engine.begin(run(1, prompt=100, answer=1), 0.0)  # 32 + 32 + 32 + 4

    assert drained(engine) == ({1: 4.0}, {1: 4.0}, {})


def test_streams_come_before_prompts_in_a_step():
    engine = VirtualEngine(model(slots=8, step_tokens=16), 1)
    for number in range(4):
        engine.begin(run(number, prompt=1, answer=20), 0.0)
    engine.begin(run(9, prompt=24, answer=1), 0.5)

    first, _, _ = drained(engine)

    # 24 tokens of prompt, 12 a step beside four streams, from the second step on.
    assert first[9] == pytest.approx(3.0)


def test_a_request_joins_at_the_next_boundary():
    engine = VirtualEngine(model(), 1)
    engine.begin(run(1, prompt=1, answer=100), 0.0)
    engine.begin(run(2, prompt=1, answer=1), 41.5)

    first, _, _ = drained(engine)

    assert first[2] == pytest.approx(43.0)


def test_a_step_takes_longer_with_what_is_in_it():
    costs = StepCosts(
        step_s=1.0, decode_s=0.5, prefill_s=0.1, context_s=0.01, prefill_context_s=0.001
    )
    engine = VirtualEngine(model(costs=costs, step_tokens=20), 1)

    engine.begin(run(1, prompt=30, answer=3), 0.0)
    first, ended, _ = drained(engine)

    prefill = (1.0 + 20 * 0.1) + (1.0 + 10 * 0.1 + 10 * 20 * 0.001)
    assert first[1] == pytest.approx(prefill)
    assert ended[1] == pytest.approx(prefill + (1.5 + 0.01 * 31) + (1.5 + 0.01 * 32))


def test_one_that_is_removed_gives_its_place_back_and_never_ends():
    engine = VirtualEngine(model(), 1)
    removed = run(1, prompt=1, answer=100)
    engine.begin(removed, 0.0)
    engine.remove(removed, 9.5)

    first, ended, left = drained(engine)

    assert (first, ended, left) == ({1: 1.0}, {}, {1: 10.0})
    assert engine.tokens(removed) == 10
    assert (engine.decoding, engine.context) == (0, 0)


def test_an_end_that_comes_before_a_removal_wins():
    engine = VirtualEngine(model(), 1)
    ends = run(1, prompt=1, answer=3)
    engine.begin(ends, 0.0)
    engine.remove(ends, 2.5)

    assert drained(engine) == ({1: 1.0}, {1: 3.0}, {})


def test_one_that_is_removed_before_it_has_joined_leaves():
    engine = VirtualEngine(model(), 1)
    engine.begin(run(1, prompt=1, answer=4), 0.0)
    late = run(2, prompt=50, answer=4)
    engine.begin(late, 1.5)
    engine.remove(late, 1.6)

    first, _, left = drained(engine)

    assert left == {2: 2.0}
    assert 2 not in first


def naive(costs, step_tokens, jobs):
    """Step by step, as it is written down: prompts first come, first served, after the streams."""
    waiting = sorted(jobs, key=lambda job: (job[1], job[0]))
    prompts, streams, at = [], {}, 0.0
    first, ended = {}, {}
    while waiting or prompts or streams:
        if not prompts and not streams:
            at = max(at, waiting[0][1])
        while waiting and waiting[0][1] <= at + 1e-9:
            number, _, prompt, answer = waiting.pop(0)
            prompts.append([number, prompt, 0, answer])
        budget = step_tokens - len(streams)
        prefill = prefill_context = 0
        over = []
        for entry in prompts:
            chunk = min(budget, entry[1] - entry[2])
            prefill += chunk
            prefill_context += chunk * entry[2]
            entry[2] += chunk
            budget -= chunk
            if chunk and entry[1] == entry[2]:
                over.append(entry)
        at += costs.of(
            decoding=len(streams),
            context=sum(context for context, _ in streams.values()),
            prefill=prefill,
            prefill_context=prefill_context,
        )
        for number, (context, left) in list(streams.items()):
            streams[number] = (context + 1, left - 1)
            if left == 1:
                del streams[number]
                ended[number] = at
        for entry in over:
            number, prompt, _, answer = entry
            prompts.remove(entry)
            first[number] = at
            if answer == 1:
                ended[number] = at
            else:
                streams[number] = (prompt + 1, answer - 1)
    return first, ended


@pytest.mark.parametrize("seed", range(20))
def test_many_steps_at_once_come_to_the_same_as_one_by_one(seed):
    dice = random.Random(seed)
    costs = StepCosts(
        step_s=0.01,
        decode_s=dice.choice([0.0, 0.001]),
        prefill_s=dice.choice([0.0, 0.0005]),
        context_s=dice.choice([0.0, 1e-5]),
        prefill_context_s=dice.choice([0.0, 1e-6]),
    )
    step_tokens = dice.choice([20, 64, 500])
    jobs = [
        (number, dice.uniform(0, 3), dice.randint(1, 300), dice.randint(1, 60))
        for number in range(12)
    ]
    engine = VirtualEngine(model(costs=costs, slots=16, step_tokens=step_tokens), 1)
    first, ended = {}, {}
    for number, comes_at, prompt, answer in sorted(jobs, key=lambda job: job[1]):
        while engine.next_at < comes_at:
            at = engine.next_at
            happened = engine.advance()
            first |= {each.number: at for each in happened.first}
            ended |= {each.number: at for each in happened.ended}
        engine.begin(run(number, prompt, answer), comes_at)
    rest = drained(engine)

    expected_first, expected_ended = naive(costs, step_tokens, jobs)
    assert first | rest[0] == pytest.approx(expected_first)
    assert ended | rest[1] == pytest.approx(expected_ended)
    assert engine.used.decoded == sum(answer - 1 for _, _, _, answer in jobs)
    assert engine.used.prefilled == sum(prompt for _, _, prompt, _ in jobs)


def test_the_gaps_between_tokens_are_those_of_the_steps():
    costs = StepCosts(step_s=0.02, decode_s=0.0, prefill_s=0.01)
    engine = VirtualEngine(model(costs=costs, step_tokens=32), 2)
    engine.begin(run(1, prompt=1, answer=200, lane=1), 0.0)
    engine.begin(run(2, prompt=30, answer=1, lane=0), 1.0)
    drained(engine)

    assert engine.gaps.quantile(0.5, [1]) == pytest.approx(0.02, rel=0.03)
    assert engine.gaps.quantile(1.0, [1]) == pytest.approx(0.32, rel=0.03)
    assert math.isnan(engine.gaps.quantile(0.5, [0]))

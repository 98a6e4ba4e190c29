"""When a first token would come, from how a pool stands."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.actors.scheduling.forecast import Forecast
from antiphon.actors.scheduling.outlook import Outlook, Shared
from antiphon.actors.scheduling.prediction import Prediction, Predictor
from antiphon.ids import EngineRequest
from antiphon.workload import WorkloadClass

CHAT = WorkloadClass.INTERACTIVE
STEP_S, SEQUENCE_S, TOKEN_S = 0.01, 0.001, 0.0005

IDLE = Outlook(free_slots=4, free_blocks=100, block_size=32, running=0, reserved_blocks=0)
FULL = Outlook(
    free_slots=0, free_blocks=0, block_size=32, running=4, reserved_blocks=40, decoding=4
)


def step_s(decoding: float, prefill: float) -> float:
    return STEP_S + SEQUENCE_S * decoding + TOKEN_S * prefill


def experienced(predictor: Predictor) -> None:
    """It has seen what this engine does, exactly."""
    dice = random.Random(1)
    for _ in range(800):
        decoding, prefill = dice.randrange(1, 20), dice.choice((0, dice.randrange(1, 80)))
        predictor.observe_step(step_s(decoding, prefill), decoding, prefill)


def predictor() -> Predictor:
    taught = Predictor(step_tokens=100)
    experienced(taught)
    return taught


def near(seconds: float) -> object:
    """The few milliseconds between the asking and the engine included."""
    return pytest.approx(seconds, rel=0.1, abs=0.01)


def test_an_idle_engine_reads_the_prompt_step_by_step():
    prediction = predictor().predict(IDLE, 250, 10)

    assert prediction.wait_s == 0
    assert prediction.ttft_s == near(3 * STEP_S + 250 * TOKEN_S)


def test_what_the_cache_has_takes_no_time():
    prediction = predictor().predict(IDLE, 250, 10, 240)

    assert prediction.ttft_s == near(step_s(0, 10))


def test_prompts_before_it_are_read_first():
    busy = replace(IDLE, decoding=10, prefill_tokens=500, step_left_s=0.02)

    prediction = predictor().predict(busy, 40, 10)

    assert prediction.ttft_s == near(0.02 + 6 * step_s(10, 0) + 540 * TOKEN_S)


def test_without_a_slot_it_waits_for_one():
    taught = predictor()
    for _ in range(200):
        taught.observe_length(CHAT, 100, 1000)

    full = replace(FULL, free_blocks=1000)
    one, ten = (taught.predict(replace(full, ahead=ahead), 40, 1000) for ahead in (0, 9))

    assert 0.1 < one.wait_s < 1.0
    # Its own step comes after the one that the engine is in when it is told.
    assert one.prefill_s == near(2 * step_s(4, 0) + 40 * TOKEN_S)
    assert ten.wait_s > 5 * one.wait_s


def test_those_who_join_at_once_give_their_slots_back_too():
    taught = predictor()
    burst = replace(IDLE, ahead=9, ahead_prompt_tokens=360, ahead_blocks=30)

    prediction = taught.predict(burst, 40, 100)

    assert 0 < prediction.wait_s < taught.predict(replace(burst, free_slots=1), 40, 100).wait_s / 2


def test_without_kv_blocks_it_waits_though_there_is_a_slot():
    taught = predictor()
    full = replace(FULL, free_slots=3, free_blocks=5)

    assert taught.slots_short(full, 5 * 32) == 0
    assert taught.slots_short(full, 5 * 32 + 1) == 1
    assert taught.slots_short(full, 30 * 32) == 3
    assert taught.predict(full, 40, 900).wait_s > 0


def test_a_long_prompt_waits_until_those_before_it_are_read():
    taught = predictor()
    long = replace(
        IDLE, lane=WorkloadClass.LONG, first_tokens=2000, prefill_tokens=2000, prefilling=1
    )

    alone, after = taught.predict(IDLE, 1000, 10), taught.predict(long, 1000, 10)

    assert after.wait_s > 2000 * TOKEN_S
    assert after.prefill_s == near(alone.prefill_s)


def test_who_may_have_only_some_slots_waits_for_one_of_these():
    taught = predictor()
    lanes = frozenset({WorkloadClass.LONG, WorkloadClass.BACKGROUND})
    free = replace(IDLE, lane=WorkloadClass.LONG, running=2)
    full = replace(free, shared=Shared(lanes=lanes, slots=2, running=2, ahead=0))
    some = replace(free, shared=Shared(lanes=lanes, slots=2, running=1, ahead=0))

    assert taught.predict(full, 40, 100).wait_s > 0
    assert taught.predict(some, 40, 100).wait_s == 0


def test_a_wait_grows_by_those_who_come_later_and_go_first():
    taught = predictor()
    full = replace(FULL, lane=WorkloadClass.BACKGROUND, free_blocks=1000)
    alone_s = taught.predict(full, 40, 100).wait_s

    def overtaken(rate: float, aging_s: float = 1000.0) -> float:
        among = replace(full, overtaking=rate / alone_s, longest_wait_s=aging_s)
        return taught.predict(among, 40, 100).wait_s / alone_s

    assert overtaken(0.2) == pytest.approx(1.25)
    assert overtaken(0.5) == pytest.approx(2.0)
    # Twice as many as there are slots for: that won't last, and nobody knows how long.
    assert overtaken(2.0) == overtaken(20.0) < 5


def test_a_wait_that_grows_ends_with_age_but_not_before_those_who_are_older():
    taught = predictor()
    lanes = frozenset({WorkloadClass.BACKGROUND})
    full = replace(FULL, lane=WorkloadClass.BACKGROUND, free_blocks=1000, overtaking=1e6)
    aging_s = 100 * taught.predict(replace(full, overtaking=0.0), 40, 100).wait_s

    def wait_s(ahead: int, *, older: int, ages: bool = True) -> float:
        shared = Shared(lanes=lanes, slots=10_000, running=0, ahead=older)
        longest_s = aging_s if ages else 10**6
        among = replace(full, ahead=ahead, shared=shared, longest_wait_s=longest_s)
        return taught.predict(among, 40, 100).wait_s

    assert wait_s(5, older=0) == wait_s(5, older=0, ages=False) < aging_s
    assert wait_s(60, older=0) == aging_s < wait_s(60, older=0, ages=False)
    assert wait_s(1000, older=1000) > 10 * aging_s


def test_a_lane_that_waits_longer_than_predicted_is_put_right():
    taught = predictor()
    before_s = taught.predict(FULL, 40, 100).ttft_s
    for _ in range(200):
        prediction = taught.predict(FULL, 40, 100)
        taught.observe_first_token(prediction, 2.5 * before_s)

    assert taught.predict(FULL, 40, 100).ttft_s == pytest.approx(2.5 * before_s, rel=0.25)
    other = replace(FULL, lane=WorkloadClass.BACKGROUND)
    assert taught.predict(other, 40, 100).ttft_s == pytest.approx(before_s, rel=0.1)


def test_those_on_their_way_with_the_same_error_put_it_right_once():
    taught = predictor()
    prediction = taught.predict(FULL, 40, 100)
    actual_s = 1.5 * prediction.ttft_s

    for _ in range(1000):
        taught.observe_first_token(prediction, actual_s)

    assert taught.predict(FULL, 40, 100).ttft_s <= 1.1 * actual_s


def test_what_no_step_explains_is_learned_too():
    taught = predictor()
    for _ in range(300):
        prediction = taught.predict(IDLE, 40, 100)
        taught.observe_first_token(prediction, step_s(0, 40) + 0.05)

    assert taught.predict(IDLE, 40, 100).ttft_s == pytest.approx(step_s(0, 40) + 0.05, rel=0.1)


def test_one_that_was_forgotten_by_its_client_spoils_nothing():
    taught = predictor()
    before = taught.predict(IDLE, 40, 100).ttft_s

    taught.observe_first_token(taught.predict(IDLE, 40, 100), 600.0)

    assert taught.predict(IDLE, 40, 100).ttft_s < 1.1 * before


def test_before_anything_was_seen_there_is_a_sane_guess_and_no_trust():
    prediction = Predictor().predict(IDLE, 200, 100)

    assert 0.005 < prediction.ttft_s < 1.0
    assert not prediction.confident
    assert predictor().predict(IDLE, 200, 100).confident


def test_a_new_host_is_not_trusted_at_once():
    taught = predictor()
    before = taught.predict(IDLE, 200, 100)

    taught.restarted()
    after = taught.predict(IDLE, 200, 100)

    assert not after.confident
    assert after.ttft_s == pytest.approx(before.ttft_s, rel=0.2)


def test_rates_are_those_of_the_engine():
    rates = predictor().rates(decoding=10)

    assert rates.step_s == near(step_s(10, 0))
    assert rates.decode_tokens_s == pytest.approx(10 / step_s(10, 0), rel=0.1)
    assert rates.prefill_tokens_s == pytest.approx(100 / step_s(0, 100), rel=0.1)


COUNTS = st.integers(-10, 10**7)
SHARED = st.builds(
    Shared,
    lanes=st.frozensets(st.sampled_from(WorkloadClass)),
    slots=COUNTS,
    running=COUNTS,
    ahead=COUNTS,
    releases=st.sampled_from([(), (0.0,) * 19, tuple(float(n) for n in range(19))]),
)


@given(
    st.builds(
        Outlook,
        lane=st.sampled_from(WorkloadClass),
        free_slots=COUNTS,
        free_blocks=COUNTS,
        block_size=st.integers(0, 64),
        running=st.integers(0, 10_000),
        reserved_blocks=COUNTS,
        ahead=COUNTS,
        ahead_prompt_tokens=st.integers(0, 10**9),
        ahead_blocks=COUNTS,
        first_tokens=st.integers(0, 10**9),
        decoding=st.integers(0, 10_000),
        context_tokens=st.integers(0, 10**9),
        prefilling=st.integers(0, 1000),
        prefill_tokens=st.integers(0, 10**9),
        step_left_s=st.floats(0, 100),
        shared=st.none() | SHARED,
        overtaking=st.floats(0, 1e6),
        longest_wait_s=st.floats(0, math.inf),
    ),
    COUNTS,
    COUNTS,
    COUNTS,
    st.floats(),
)
def test_whatever_it_is_asked_it_answers_in_finite_time(outlook, prompt, longest, cached, seconds):
    asked = predictor_of_nothing()

    prediction = asked.predict(outlook, prompt, longest, cached)
    asked.observe_first_token(prediction, seconds)

    assert 0 <= prediction.wait_s < 1e6
    assert 0 < prediction.prefill_s < 1e6
    assert 0 < asked.predict(outlook, prompt, longest, cached).ttft_s < 1e6


def predictor_of_nothing() -> Predictor:
    return Predictor(step_tokens=128)


def forecast_of(*, decoding: int, prompt: int = 40) -> Forecast:
    forecast = Forecast(step_tokens=100)
    experienced(forecast.predictor)
    requests = [EngineRequest(number) for number in range(decoding)]
    for request in requests:
        forecast.begun(request, CHAT, list(range(prompt)), 1000, 0.0)
    while forecast.mirror.prefilling:
        forecast.stepped(0.05, requests, 0.0)
    return forecast


def test_the_rest_of_the_step_that_runs_is_waited_for():
    forecast = forecast_of(decoding=10)
    outlook = replace(FULL, free_slots=10, free_blocks=1000)

    early, late = (forecast.refined(outlook, 40, 100, now) for now in (0.0, 0.015))

    assert early.step_left_s == near(step_s(10, 0))
    assert early.step_left_s - late.step_left_s == pytest.approx(0.015)


def test_a_step_that_should_be_over_is_nearly_over():
    forecast = forecast_of(decoding=10)

    outlook = forecast.refined(FULL, 40, 100, 30.0)

    assert 0 < outlook.step_left_s < 0.01


def test_an_idle_engine_is_as_the_schedule_says():
    forecast = forecast_of(decoding=0)

    assert forecast.refined(IDLE, 40, 100, 5.0) == IDLE


def test_prompts_that_wait_are_taken_to_be_in_the_cache_as_those_before_them_were():
    forecast = forecast_of(decoding=3)
    waiting = replace(FULL, ahead=3, ahead_prompt_tokens=3000, ahead_blocks=120)
    before = forecast.refined(waiting, 40, 100, 0.0).ahead_prompt_tokens

    seen = list(range(1000, 3000))
    for number in range(100, 120):
        forecast.begun(EngineRequest(number), CHAT, seen, 10, 0.0)
        forecast.stepped(0.05, [EngineRequest(number)], 0.0)
        forecast.ended(EngineRequest(number), 5)

    assert forecast.refined(waiting, 40, 100, 0.0).ahead_prompt_tokens < before / 4


def test_a_wait_is_for_those_that_are_inside_and_how_far_they_are():
    forecast = forecast_of(decoding=4)
    for _ in range(5):
        forecast.stepped(step_s(4, 0), (), 0.0)
    soon = forecast.predict(FULL, list(range(500, 540)), 1000, 0.0)
    for request in list(forecast.mirror.inside):
        forecast.mirror.inside[request].max_tokens = 7

    sooner = forecast.predict(FULL, list(range(500, 540)), 999, 0.0)
    forecast.stepped(step_s(4, 0), (), 0.0)
    at_once = forecast.predict(FULL, list(range(500, 540)), 1000, 0.0)

    assert soon.wait_s > 0.2
    assert at_once.wait_s < 0.1 < soon.wait_s
    assert sooner.wait_s == soon.wait_s  # until the next step it isn't worked out again


def test_a_pause_is_no_end_of_an_answer():
    forecast = forecast_of(decoding=1)
    before = forecast.predictor.lengths.mean(CHAT, 4096)

    for number in range(50, 100):
        request = EngineRequest(number)
        forecast.begun(request, CHAT, [1] * 50, 100, 0.0)
        forecast.stepped(0.02, [request], 0.0)
        forecast.ended(request, 1, whole=False)

    assert forecast.predictor.lengths.mean(CHAT, 4096) == before


def test_another_host_has_nothing_of_the_former_one():
    forecast = forecast_of(decoding=4)
    prompt = list(range(40))
    assert forecast.prefixes.cached(prompt) == 32

    forecast.restarted(kv_blocks=100, block_size=32)

    assert not forecast.mirror.busy
    assert forecast.prefixes.cached(prompt) == 0
    forecast.ended(EngineRequest(1), 5)  # a late word of the former host is heard and is nothing
    assert not forecast.mirror.busy


def test_a_prediction_is_the_sum_of_its_parts():
    assert Prediction(wait_s=1.0, prefill_s=0.5).ttft_s == 1.5


def test_an_engine_that_keeps_no_prefixes_is_not_believed_to():
    forecast = forecast_of(decoding=1)
    forecast.stepped(0.02, (), 0.0)
    prompt = list(range(5000, 5800))
    for number in range(10, 20):
        request = EngineRequest(number)
        forecast.begun(request, CHAT, prompt, 100, 0.0)
        for _ in range(9):  # in each conversation's turn it reads all of the prompt again
            forecast.stepped(0.06, (), 0.0)
        forecast.stepped(0.06, [request], 0.0)
        forecast.ended(request, 1)

    free = replace(FULL, free_slots=3, free_blocks=1000)

    assert forecast.predict(free, prompt, 10, 0.0).ttft_s > 600 * TOKEN_S


def test_an_answer_that_goes_on_says_nothing_of_the_cache():
    forecast = forecast_of(decoding=1)
    prompt = list(range(5000, 5800))
    forecast.prefixes.remember(prompt)
    for number in range(10, 20):
        request = EngineRequest(number)
        forecast.begun(request, CHAT, prompt, 100, 0.0, tokens=60)
        for _ in range(9):
            forecast.stepped(0.06, (), 0.0)
        forecast.stepped(0.06, [request], 0.0)
        forecast.ended(request, 70)

    free = replace(FULL, free_slots=3, free_blocks=1000)

    assert forecast.predict(free, prompt, 10, 0.0).ttft_s < 0.2


def test_what_is_usual_in_a_lane_is_what_came_of_late():
    forecast = forecast_of(decoding=0)
    before_s = forecast.typical(IDLE, 0.0).ttft_s

    for number in range(100):
        request = EngineRequest(number)
        forecast.begun(request, CHAT, list(range(number * 1000, number * 1000 + 500)), 10, 0.0)
        forecast.ended(request, 0, whole=False)

    assert before_s == near(step_s(0, 64))
    assert forecast.typical(IDLE, 0.0).ttft_s == near(5 * STEP_S + 480 * TOKEN_S)


def test_a_chat_does_not_wait_for_a_document_that_lets_it_pass():
    """With documents of some thousand tokens inside, predictions for chats were ten times what
    became of them, and some were refused for it."""

    def beside_a_document(*, lets_pass: bool) -> float:
        forecast = Forecast(step_tokens=100)
        forecast.restarted(kv_blocks=1000, block_size=32, lets_pass=lets_pass)
        forecast.begun(
            EngineRequest(1), WorkloadClass.LONG, list(range(4000)), 64, 0.0, patient=True
        )
        forecast.stepped(0.1, [], 0.1)
        outlook = Outlook(free_slots=31, free_blocks=800, block_size=32, running=1,
                          reserved_blocks=127)  # fmt: skip
        return forecast.predict(outlook, list(range(9000, 9050)), 64, 0.15).ttft_s

    assert beside_a_document(lets_pass=True) < 0.2 * beside_a_document(lets_pass=False)

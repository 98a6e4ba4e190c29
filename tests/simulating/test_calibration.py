import random

import pytest

from antiphon.errors import SettingsError
from antiphon.events import Capabilities, EndReason, SlotText, Step
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.settings import EngineSettings
from antiphon.simulating.calibration import Observation, calibrated, fit
from antiphon.simulating.engine_model import StepCosts
from antiphon.simulating.measuring import Mirror

COSTS = StepCosts(
    step_s=0.009, decode_s=0.0008, prefill_s=0.0005, context_s=2e-6, prefill_context_s=3e-7
)


def observed(dice, *, noise=0.0):
    decoding = dice.randint(0, 32)
    work = {
        "decoding": decoding,
        "context": decoding * dice.randint(10, 600),
        "prefill": dice.choice([0, 0, dice.randint(1, 128)]) or (0 if decoding else 16),
        "prefill_context": 0,
    }
    if work["prefill"]:
        work["prefill_context"] = work["prefill"] * dice.randint(0, 1000)
    return Observation(seconds=COSTS.of(**work) * (1 + dice.uniform(-noise, noise)), **work)


def test_costs_are_found_again_in_the_steps_they_made():
    dice = random.Random(1)

    fitted = fit([observed(dice) for _ in range(300)])

    for name in StepCosts.__struct_fields__:
        assert getattr(fitted.costs, name) == pytest.approx(getattr(COSTS, name), rel=0.01)
    assert fitted.error < 0.001


def test_stalls_and_noise_change_little():
    dice = random.Random(2)
    steps = [observed(dice, noise=0.05) for _ in range(600)]
    for index in range(0, 600, 20):
        stalled = steps[index]
        steps[index] = Observation(
            seconds=stalled.seconds * 6,
            decoding=stalled.decoding,
            context=stalled.context,
            prefill=stalled.prefill,
            prefill_context=stalled.prefill_context,
        )

    fitted = fit(steps)

    busy = {"decoding": 32, "context": 32 * 300}
    assert fitted.costs.of(**busy) == pytest.approx(COSTS.of(**busy), rel=0.03)
    prompt = {"decoding": 0, "context": 0, "prefill": 128, "prefill_context": 128 * 500}
    assert fitted.costs.of(**prompt) == pytest.approx(COSTS.of(**prompt), rel=0.05)
    assert fitted.used <= 580


def test_no_cost_is_negative():
    dice = random.Random(3)

    fitted = fit(
        [Observation(seconds=0.01, decoding=dice.randint(1, 9), context=9) for _ in range(60)]
    )

    assert all(getattr(fitted.costs, name) >= 0 for name in StepCosts.__struct_fields__)


def test_too_few_steps_are_refused():
    with pytest.raises(SettingsError, match="too few"):
        fit([Observation(seconds=0.01, decoding=1, context=1)] * 10)


def test_an_engine_model_holds_what_the_engine_said_of_itself():
    dice = random.Random(4)
    capabilities = Capabilities(
        engine="openvino",
        engine_version="1",
        slots=32,
        kv_blocks=2452,
        block_size=32,
        window=8192,
        special_tokens=[],
        logprobs=True,
        json_schema=True,
    )

    model, _ = calibrated(
        [observed(dice) for _ in range(100)],
        capabilities,
        name="here",
        model="m",
        machine="this one",
        engine=EngineSettings(step_tokens=256),
    )

    assert (model.slots, model.kv_tokens, model.step_tokens) == (32, 2452 * 32, 256)
    assert "100 steps of openvino 1" in model.source


def step(number, prefilled=0, texts=()):
    return Step(
        number=number,
        duration_s=0.0,
        prefilled=prefilled,
        texts=[
            SlotText(
                slot=SlotIndex(0),
                request=EngineRequest(request),
                text="",
                tokens=1,
                end=EndReason.LENGTH if ends else None,
            )
            for request, ends in texts
        ],
    )


def test_a_mirror_knows_what_was_in_each_step():
    mirror = Mirror()
    mirror.admitted(EngineRequest(1), 150)
    mirror.stepped(step(1, prefilled=100), 1.0)
    mirror.stepped(step(2, prefilled=50, texts=[(1, False)]), 2.0)
    mirror.admitted(EngineRequest(2), 10)
    mirror.stepped(step(3, prefilled=10, texts=[(1, False), (2, True)]), 2.5)
    mirror.stepped(step(4, texts=[(1, True)]), 3.5)
    mirror.admitted(EngineRequest(3), 5)
    mirror.stepped(step(5, prefilled=5, texts=[(3, True)]), 99.0)

    assert mirror.observations == [
        Observation(seconds=1.0, decoding=0, context=0, prefill=50, prefill_context=5000),
        Observation(seconds=0.5, decoding=1, context=151, prefill=10),
        Observation(seconds=1.0, decoding=1, context=152),
    ]

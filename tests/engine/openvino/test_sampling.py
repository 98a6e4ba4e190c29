"""Every default of the library that would do harm is overruled."""

import openvino_genai
import pytest

from antiphon.engine.openvino.sampling import NATIVE_ERRORS, generation_config, plain_reason
from antiphon.events import Admit, Sampling
from antiphon.ids import EngineRequest, SlotIndex


def config(generated: int = 0, **sampling: object):
    admit = Admit(
        request=EngineRequest(1),
        slot=SlotIndex(0),
        prompt=[1, 2, 3],
        max_tokens=50,
        sampling=Sampling(**sampling),
        stop=["never the library's business"],
    )
    return generation_config(admit, (2, 5), generated)


def test_an_answer_always_has_a_longest_length():
    """The library's own default has none, and would fill the KV cache."""
    assert openvino_genai.GenerationConfig().max_new_tokens > 2**60
    assert config().max_new_tokens == 50


def test_each_request_draws_by_its_own_seed():
    """The library's own is one constant for all."""
    assert openvino_genai.GenerationConfig().rng_seed == openvino_genai.GenerationConfig().rng_seed
    assert config(seed=7).rng_seed == 7
    assert config(seed=2**64 - 1, generated=1).rng_seed == 0


def test_a_request_that_goes_on_has_the_rest_of_its_length_and_other_numbers():
    resumed = config(generated=20, seed=7, min_tokens=30)

    assert resumed.max_new_tokens == 30
    assert resumed.min_new_tokens == 10
    assert resumed.rng_seed != 7


def test_only_end_tokens_are_the_librarys_to_stop_at():
    """Its stop strings can end an answer without a word."""
    told = config()

    assert not told.stop_strings
    assert told.stop_token_ids == {2, 5}
    assert told.eos_token_id == 2
    assert told.num_return_sequences == told.num_beams == 1


@pytest.mark.parametrize("temperature", [0, 0.8])
def test_greedy_is_no_sampling_at_all(temperature: float):
    told = config(temperature=temperature, top_p=0.5, top_k=0)

    assert told.do_sample == (temperature > 0)
    assert temperature == 0 or told.top_p == 0.5


def test_what_the_library_refuses_is_told_without_its_paths():
    with pytest.raises(NATIVE_ERRORS) as refusal:
        config(temperature=0.5, top_p=3.0)

    reason = plain_reason(refusal.value)
    assert "top_p" in reason
    assert "/" not in reason.replace("N/A", "")

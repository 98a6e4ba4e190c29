"""Our sampling parameters in OpenVINO GenAI's words, every one that has a dangerous default set."""

import re
from collections.abc import Sequence
from typing import Any

import numpy
import openvino
import openvino_genai

from antiphon.events import Admit

NATIVE_ERRORS = (RuntimeError, MemoryError, ValueError, IndexError, OverflowError)
"""What pybind11 makes of the C++ exceptions that the library throws."""

_SEED_MASK = (1 << 64) - 1
_CPP_PLACE = re.compile(r"(\[\d\d:\d\d:\d\d\] )?/\S+?\.(cc|cpp|hpp|h):\d+: ?")


def prompt_tensor(tokens: Sequence[int]) -> Any:
    return openvino.Tensor(numpy.array([tokens], dtype=numpy.int64))


def generation_config(admit: Admit, stop_tokens: Sequence[int], generated: int = 0) -> Any:
    """The engine's view of a request of which `generated` tokens exist already and count as prompt.
    Raises one of NATIVE_ERRORS for values the engine refuses."""
    sampling = admit.sampling
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = admit.max_tokens - generated
    config.min_new_tokens = max(0, sampling.min_tokens - generated)
    # A grammar that is complete allows only the end; past it the pipeline would ramble on freely.
    config.ignore_eos = sampling.ignore_eos and sampling.json_schema is None
    config.eos_token_id = stop_tokens[0]
    config.stop_token_ids = set(stop_tokens)
    # Unset it is the same for every request; a resumed one must not draw the same numbers again.
    config.rng_seed = (sampling.seed + generated) & _SEED_MASK
    config.repetition_penalty = sampling.repetition_penalty
    config.presence_penalty = sampling.presence_penalty
    config.frequency_penalty = sampling.frequency_penalty
    config.logprobs = int(sampling.logprobs)
    if sampling.temperature > 0:
        config.do_sample = True
        config.temperature = sampling.temperature
        config.top_p = sampling.top_p
        config.min_p = sampling.min_p
        if sampling.top_k:
            config.top_k = sampling.top_k
    if sampling.json_schema is not None:
        structure = openvino_genai.StructuredOutputConfig()
        structure.json_schema = sampling.json_schema
        config.structured_output_config = structure
    config.validate()
    return config


def prefill_config(stop_tokens: Sequence[int]) -> Any:
    """For a prompt that is only to be computed: its one token is nobody's."""
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = 1
    config.ignore_eos = True
    # Refused unless the second holds the first.
    config.eos_token_id = stop_tokens[0]
    config.stop_token_ids = set(stop_tokens)
    return config


def plain_reason(error: BaseException) -> str:
    """The library's message without source paths and times, short enough for a client."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith("Exception from ")]
    text = _CPP_PLACE.sub("", " ".join(told))
    text = re.sub(r"Check failed: \(.*?\) is false: ", "", text)
    return text[:300] or type(error).__name__

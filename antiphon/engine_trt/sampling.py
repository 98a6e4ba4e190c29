"""Our sampling parameters in TensorRT-LLM's words: a new object for every request, since
`generate_async` writes into it.

`end_id` stays unset, so that the library fills it in itself; stop strings are ours alone.
"""

from collections.abc import Sequence
from typing import Any

from antiphon.engine.contract import AdmitRefused
from antiphon.engine_trt.library import Library
from antiphon.events import Admit

_SEED_MASK = (1 << 63) - 1


def sampling_params(
    admit: Admit, library: Library, stop_tokens: Sequence[int], generated: int = 0
) -> Any:
    """For a request of which `generated` tokens exist already and count as prompt. Raises
    AdmitRefused for what this version can't do."""
    wanted = sampling_keywords(admit, stop_tokens, generated)
    if admit.sampling.json_schema is not None:
        kind = getattr(library.llmapi, "GuidedDecodingParams", None)
        if kind is None:
            raise AdmitRefused("invalid_sampling", "this engine has no guided decoding")
        wanted["guided_decoding"] = kind(json=admit.sampling.json_schema)
    return library.sampling_params(**_understood(wanted, library))


def probe_params(library: Library) -> Any:
    """One token, whatever it is: to find out that the engine works."""
    wanted = {"max_tokens": 1, "detokenize": False, "add_special_tokens": False, "ignore_eos": True}
    return library.sampling_params(**_understood(wanted, library))


def sampling_keywords(admit: Admit, stop_tokens: Sequence[int], generated: int) -> dict[str, Any]:
    """All but the schema. What is at our own default is left to the engine's."""
    sampling = admit.sampling
    keywords: dict[str, Any] = {
        # 32 by default.
        "max_tokens": admit.max_tokens - generated,
        "n": 1,
        "detokenize": False,
        "add_special_tokens": False,
        # A resumed one must not draw the same numbers again.
        "seed": (sampling.seed + generated) & _SEED_MASK,
    }
    if sampling.temperature > 0:
        keywords["temperature"] = sampling.temperature
        keywords["top_p"] = sampling.top_p
        if sampling.top_k:
            keywords["top_k"] = sampling.top_k
        if sampling.min_p:
            keywords["min_p"] = sampling.min_p
    else:
        keywords["top_k"] = 1
    if sampling.repetition_penalty != 1:
        keywords["repetition_penalty"] = sampling.repetition_penalty
    if sampling.presence_penalty:
        keywords["presence_penalty"] = sampling.presence_penalty
    if sampling.frequency_penalty:
        keywords["frequency_penalty"] = sampling.frequency_penalty
    if sampling.min_tokens > generated:
        keywords["min_tokens"] = sampling.min_tokens - generated
    # A grammar that is complete allows only the end.
    if sampling.ignore_eos and sampling.json_schema is None:
        keywords["ignore_eos"] = True
    else:
        keywords["stop_token_ids"] = list(stop_tokens)
    if sampling.logprobs:
        keywords["logprobs"] = 1
    return keywords


def _understood(wanted: dict[str, Any], library: Library) -> dict[str, Any]:
    """Without what makes no difference; what would make one is refused."""
    unknown = wanted.keys() - library.sampling_keywords
    if refused := sorted(unknown - _HARMLESS):
        raise AdmitRefused("invalid_sampling", f"this engine has no {', '.join(refused)}")
    return {key: value for key, value in wanted.items() if key not in unknown}


_HARMLESS = {"n", "detokenize", "add_special_tokens"}

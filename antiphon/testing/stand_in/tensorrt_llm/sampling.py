"""Sampling parameters with the real fields and traps: 32 tokens by default, greedy when nothing is
said, and written into by `generate_async`."""

import json as json_module
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, kw_only=True)
class GuidedDecodingParams:
    json: Any = None
    regex: str | None = None
    grammar: str | None = None
    json_object: bool = False
    structural_tag: str | None = None

    def __post_init__(self) -> None:
        given = (self.json, self.regex, self.grammar, self.structural_tag)
        if sum(value is not None for value in given) + self.json_object > 1:
            raise ValueError("only one guide can be used for a request")
        if isinstance(self.json, str):
            json_module.loads(self.json)


@dataclass(slots=True, kw_only=True)
class SamplingParams:
    end_id: int | None = None
    pad_id: int | None = None
    max_tokens: int | None = 32
    bad: Any = None
    bad_token_ids: list[int] | None = None
    stop: Any = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool = False
    embedding_bias: Any = None
    logits_processor: Any = None
    apply_batched_logits_processor: bool = False
    n: int = 1
    best_of: int | None = None
    use_beam_search: bool = False
    top_k: int | None = None
    top_p: float | None = None
    top_p_min: float | None = None
    top_p_reset_ids: int | None = None
    top_p_decay: float | None = None
    seed: int | None = None
    temperature: float | None = None
    min_tokens: int | None = None
    beam_search_diversity_rate: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    length_penalty: float | None = None
    early_stopping: int | None = None
    no_repeat_ngram_size: int | None = None
    min_p: float | None = None
    beam_width_array: list[int] | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    return_context_logits: bool = False
    return_generation_logits: bool = False
    exclude_input_from_output: bool = True
    return_perf_metrics: bool = False
    additional_model_outputs: Any = None
    lookahead_config: Any = None
    guided_decoding: GuidedDecodingParams | None = None
    ignore_eos: bool = False
    detokenize: bool = True
    add_special_tokens: bool = True
    truncate_prompt_tokens: int | None = None
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    _stream_interval: int | None = None

    def __post_init__(self) -> None:
        if self.n > 1 and self.is_greedy:
            raise ValueError("greedy decoding returns one answer only")
        if self.temperature is not None and self.temperature < 0:
            raise ValueError("temperature must not be negative")
        if self.top_p is not None and not 0 <= self.top_p <= 1:
            raise ValueError("top_p must be in [0, 1]")
        if self.top_k is not None and self.top_k < 0:
            raise ValueError("top_k must not be negative")

    @property
    def is_greedy(self) -> bool:
        unset = self.temperature is None and self.top_p is None and self.top_k is None
        return unset or self.top_k == 1 or self.top_p == 0 or self.temperature == 0

    def setup(self, end_id: int) -> None:
        """What `_setup` does to the object. Stricter than the real one, which would go on with what
        the last request left in it."""
        if self._stream_interval is not None:
            raise RuntimeError("this SamplingParams was used for another request")
        self._stream_interval = 1
        if self.end_id is not None:
            if self.stop is not None or self.bad is not None:
                raise ValueError("stop and bad words are not processed by tokenizer")
            return
        self.end_id = end_id
        self.pad_id = end_id

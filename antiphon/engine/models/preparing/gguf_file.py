"""What a GGUF file says about itself, and whether OpenVINO's reader can take it.

Only a preparing child imports this: `gguf` brings numpy.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf

from antiphon.engine.models.prepared import Facts
from antiphon.engine.models.preparing.vocabulary import PRE_TOKENIZERS, TokenType
from antiphon.ports import SamplingDefaults

_ARCHITECTURES = ("llama", "qwen2", "qwen3")
_TENSOR_TYPES = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K")
"""Other types end deep in the reader with "gguf_tensor_to_f16 failed" (openvino.genai #2464)."""
_END_OF_GENERATION = frozenset(
    ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "</s>")
)
"""Tokens that end an answer whatever `eos_token_id` says: fine-tunes often leave that at the base
model's (llama.cpp knows the same names)."""


class Unusable(Exception):
    """The file is a model that this engine can't take; the message says why in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufModel:
    pre: str
    tokens: list[str]
    types: list[int]
    merges: list[str]
    chat_template: str
    facts: Facts


def read_gguf(path: Path) -> GgufModel:
    """Raises Unusable."""
    try:
        return _describe(gguf.GGUFReader(path))
    # The reader trusts the file, so a damaged one fails anywhere in numpy or in a decode.
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise Unusable(f"the GGUF file is damaged or cut short ({error})") from error


def _describe(reader: gguf.GGUFReader) -> GgufModel:
    fields = reader.fields

    def field(name: str, default: Any = None) -> Any:
        return fields[name].contents() if name in fields else default

    _check_engine(field("general.architecture"), (t.tensor_type.name for t in reader.tensors))
    pre = _check_vocabulary(field("tokenizer.ggml.model"), field("tokenizer.ggml.pre"))
    tokens: list[str] = field("tokenizer.ggml.tokens", [])
    types: list[int] = field("tokenizer.ggml.token_type", [TokenType.NORMAL] * len(tokens))
    template = field("tokenizer.chat_template")
    if not isinstance(template, str):
        raise Unusable("it has no chat template: a base model, not a chat model")
    window = field(f"{field('general.architecture')}.context_length")
    if not isinstance(window, int) or not tokens:
        raise Unusable("it names no context length or has no vocabulary")
    specials = [i for i, kind in enumerate(types) if kind == TokenType.CONTROL]
    ends = {field("tokenizer.ggml.eos_token_id"), field("tokenizer.ggml.eot_token_id")}
    ends |= {index for index in specials if tokens[index] in _END_OF_GENERATION}
    stop_tokens = sorted(index for index in ends if index is not None)
    if not stop_tokens:
        raise Unusable("it names no end-of-sequence token")
    bos, eos = (field(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos"))
    return GgufModel(
        pre=pre,
        tokens=tokens,
        types=types,
        merges=field("tokenizer.ggml.merges", []),
        chat_template=template,
        facts=Facts(
            window=window,
            bos_token=None if bos is None else tokens[bos],
            eos_token=None if eos is None else tokens[eos],
            stop_tokens=stop_tokens,
            special_tokens=specials,
            sampling=_sampling(field),
        ),
    )


def _check_engine(architecture: object, tensor_types: Iterable[str]) -> None:
    if architecture not in _ARCHITECTURES:
        raise Unusable(
            f"architecture {architecture}: OpenVINO reads GGUF files of {_list(_ARCHITECTURES)} "
            "only; use the Hugging Face checkpoint"
        )
    unreadable = sorted(set(tensor_types) - set(_TENSOR_TYPES))
    if unreadable:
        raise Unusable(
            f"tensor type {_list(unreadable)}: OpenVINO reads {_list(_TENSOR_TYPES)} only"
        )


def _check_vocabulary(model: object, pre: object) -> str:
    if model != "gpt2":
        raise Unusable(f"tokenizer {model}: only byte-level BPE (gpt2) can be read from a GGUF")
    if not isinstance(pre, str) or pre not in PRE_TOKENIZERS:
        raise Unusable(f"pre-tokenizer {pre}: only {_list(PRE_TOKENIZERS)} are known")
    return pre


def _sampling(field: Any) -> SamplingDefaults:
    """Newer files carry the publisher's advice under `general.sampling.*`."""
    silence = SamplingDefaults()
    return SamplingDefaults(
        temperature=float(field("general.sampling.temp", silence.temperature)),
        top_p=float(field("general.sampling.top_p", silence.top_p)),
        top_k=int(field("general.sampling.top_k", silence.top_k)),
        repetition_penalty=float(
            field("general.sampling.penalty_repeat", silence.repetition_penalty)
        ),
    )


def _list(words: Iterable[str]) -> str:
    return ", ".join(words)

"""`tokenizer.json` from the vocabulary inside a GGUF file.

GGUF names a pre-tokenizer instead of describing it; here is the description of each one we know, as
the model's own `tokenizer.json` has it. Pure: dictionaries in, a dictionary out.
"""

import enum
from dataclasses import dataclass
from typing import Any

_GPT2_SPLIT: dict[str, Any] = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
_BYTES_ONLY = {**_GPT2_SPLIT, "use_regex": False}


def _split_by(pattern: str) -> dict[str, Any]:
    regex = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    return _sequence({**regex, "invert": False}, _BYTES_ONLY)


def _sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{numbers}"
    r"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scheme:
    pre_tokenizer: dict[str, Any]
    normalizer: dict[str, Any] | None = None
    ignore_merges: bool = False


_SCHEMES: dict[str, _Scheme] = {
    "gpt-2": _Scheme(pre_tokenizer=_GPT2_SPLIT),
    "smollm": _Scheme(
        pre_tokenizer=_sequence({"type": "Digits", "individual_digits": True}, _GPT2_SPLIT)
    ),
    # A whole word that is in the vocabulary wins over its merges (tiktoken's rule).
    "llama-bpe": _Scheme(
        pre_tokenizer=_split_by(_WORDS.format(numbers=r"\p{N}{1,3}")), ignore_merges=True
    ),
    "qwen2": _Scheme(
        pre_tokenizer=_split_by(_WORDS.format(numbers=r"\p{N}")), normalizer={"type": "NFC"}
    ),
}

PRE_TOKENIZERS = tuple(_SCHEMES)


class TokenType(enum.IntEnum):
    """GGUF's `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def tokenizer_json(
    *, pre: str, tokens: list[str], types: list[int], merges: list[str]
) -> dict[str, Any]:
    """The file for the `tokenizers` library. `pre` must be one of PRE_TOKENIZERS."""
    scheme = _SCHEMES[pre]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": index,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kind == TokenType.CONTROL,
            }
            for index, (token, kind) in enumerate(zip(tokens, types, strict=True))
            if kind in (TokenType.CONTROL, TokenType.USER_DEFINED)
        ],
        "normalizer": scheme.normalizer,
        "pre_tokenizer": scheme.pre_tokenizer,
        "post_processor": None,
        "decoder": _GPT2_SPLIT,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": scheme.ignore_merges,
            "vocab": {token: index for index, token in enumerate(tokens)},
            # Byte-level tokens hold no space: the first one separates the pair.
            "merges": [merge.split(" ", 1) for merge in merges],
        },
    }

"""How many KV blocks fit the memory they may take, from the model's own graph. Arithmetic only.

What this says is checked against what the pipeline really allocates.
"""

from dataclasses import dataclass

from antiphon.engine.config import KvPrecision

BLOCK_TOKENS = 32
"""Tokens of a KV block on a CPU; on a GPU it would be 16."""

MIB = 1024 * 1024

_SCALE_BYTES = 8
"""A float32 scale and zero point: for each group of a token's value, each channel of a block of
keys."""


@dataclass(frozen=True, slots=True)
class KvHeads:
    """One layer's keys or values: `heads` vectors of `size` numbers a token."""

    heads: int
    size: int


def block_bytes(
    keys: list[KvHeads], values: list[KvHeads], precision: KvPrecision, group: int = 0
) -> int:
    """Bytes of one block over all layers. `group` numbers of a value share a scale; 0 is all."""
    if precision == "f16":
        return sum(2 * BLOCK_TOKENS * part.heads * part.size for part in [*keys, *values])
    by_channel = sum(part.heads * part.size * (BLOCK_TOKENS + _SCALE_BYTES) for part in keys)
    by_token = sum(
        part.heads * BLOCK_TOKENS * (part.size + part.size // (group or part.size) * _SCALE_BYTES)
        for part in values
    )
    return by_channel + by_token


def blocks_in(mib: int, bytes_of_block: int) -> int:
    """How many whole blocks fit; at least one, since 0 would mean growth without bound."""
    return max(1, mib * MIB // bytes_of_block)


def blocks_for(tokens: int) -> int:
    """Blocks that prompt and longest answer together may come to fill."""
    return -(-tokens // BLOCK_TOKENS)

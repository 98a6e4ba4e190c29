"""Many names for each token, so that the prefix cache of an engine without salts has one.

The pipeline finds blocks by a hash of the token ids. The model is made to read only the low bits of
an id, so the high bits of the first ids of a prompt can hold a tenant's salt: the same answer, to
the bit, and another hash for that block and all that come after it.
"""

import hashlib
import secrets
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy
import openvino
from openvino import opset13 as ops

_NODE = "antiphon_token_ids"
_ID_BITS = 31
"""The CPU plugin computes with 32-bit integers, one bit of which is the sign."""
_TENANTS = 4096
"""Whose names are kept; the others' are made anew."""


def write_with_aliases(source: Path, folder: Path) -> None:
    """Write `openvino_model.xml` and `.bin` of `source` into `folder`, which may be the same.

    Raises RuntimeError where the library can't read or write it, or it is no language model.
    """
    model = openvino.Core().read_model(source / "openvino_model.xml")
    _add_aliases(model)
    # The weights are mapped from the file that may be replaced, so the new one gets its own name.
    openvino.save_model(model, folder / f"{_NODE}.xml", compress_to_fp16=False)
    del model
    # A disk that filled up leaves a short file and no error; reading it back finds that.
    openvino.Core().read_model(folder / f"{_NODE}.xml")
    for kind in ("bin", "xml"):
        (folder / f"{_NODE}.{kind}").replace(folder / f"openvino_model.{kind}")


def alias_bits(model: Any) -> int | None:
    """How many low bits of an id the model reads; None where it reads them all."""
    for target in model.input("input_ids").get_target_inputs():
        node = target.get_node()
        if node.get_friendly_name() == _NODE:
            mask = node.input_value(1).get_node().get_data()
            return int(mask.item()).bit_length()
    return None


class Salter:
    """Gives prompts of one salt names of their own, other ones in each process."""

    def __init__(self, bits: int) -> None:
        secret = secrets.token_bytes(32)
        choices = (1 << (_ID_BITS - bits)) - 1

        @lru_cache(_TENANTS)
        def offsets(salt: str) -> tuple[int, ...]:
            # 64 bytes name the first 16 tokens, half a block; at 13 bits each a salt of 208.
            digest = hashlib.blake2b(salt.encode(), key=secret).digest()
            words = numpy.frombuffer(digest, dtype=numpy.uint32)
            return tuple((1 + int(word) % choices) << bits for word in words)

        self._offsets = offsets

    def salted(self, prompt: Sequence[int], salt: str) -> list[int]:
        """The same tokens by other names."""
        named = [token | high for token, high in zip(prompt, self._offsets(salt), strict=False)]
        return [*named, *prompt[len(named) :]]


def _add_aliases(model: Any) -> None:
    if alias_bits(model) is not None:
        return
    tokens = model.input("input_ids").get_node().output(0)
    width = model.output("logits").partial_shape[2]
    if width.is_dynamic:
        raise RuntimeError("the model does not say the size of its vocabulary")
    readers = list(tokens.get_target_inputs())
    bits = (width.get_length() - 1).bit_length()
    mask = ops.constant(numpy.array((1 << bits) - 1, dtype=numpy.int64))
    masked = ops.bitwise_and(tokens, mask.output(0))
    masked.set_friendly_name(_NODE)
    for reader in readers:
        reader.replace_source_output(masked.output(0))
    model.validate_nodes_and_infer_types()

"""The settings of the OpenVINO engine: the section `openvino`, read and checked by `settings`."""

from typing import Literal

import msgspec

from antiphon.errors import SettingsError


class OpenVinoSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What only the OpenVINO engine asks for, and what it computes with. `docs/engines.md` has what
    each was measured to cost."""

    kv_group: int = 0
    """How many numbers of a value share a scale in a KV cache of `engine.kv_precision` u8; 0 is a
    whole head. Fewer is more exact, and takes more memory a token."""
    compute_precision: Literal["auto", "f32", "bf16", "f16"] = "auto"
    """What is multiplied. `auto` is bf16 where the processor has it; f32 is more exact."""
    activation_group: int = 32
    """How many activations share a scale where they are multiplied as int8, beside weights of 4 or
    8 bits; 0 leaves them as they are, which is more exact and slower."""
    pin_threads: bool = True
    """Each inference thread stays on its core. Two engines on one machine would choose the same
    cores, so with several pools here it is off, whatever this says."""
    core_type: Literal["any", "performance", "efficiency"] = "any"
    """On processors that have both."""


def check_openvino(settings: OpenVinoSettings) -> None:
    """What no single field's type can tell. Raises SettingsError."""
    for key in ("kv_group", "activation_group"):
        size = getattr(settings, key)
        if size and (size < _SMALLEST_GROUP or size & (size - 1)):
            # The plugin takes any other number too, and then goes another, slow way or crashes.
            problem = f"must be 0 or a power of two from {_SMALLEST_GROUP} on"
            raise SettingsError(f"openvino.{key}", problem)


_SMALLEST_GROUP = 16

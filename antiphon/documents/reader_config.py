"""What a reader process is told when it starts: one frozen value, passed as JSON on its command
line. The file comes later, as a frame."""

from typing import Literal

import msgspec

EXIT_BROKEN = 4
"""The exit status of a reader that had a file, and couldn't go on with it."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one file may cost."""

    cpu_s: float = 60.0
    memory_bytes: int = 1024 * 1024 * 1024
    file_bytes: int = 64 * 1024 * 1024
    unpacked_bytes: int = 256 * 1024 * 1024
    characters: int = 10_000_000
    pages: int = 5_000


class ReaderConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`nice` is added to the process's own niceness. `faults` is a plan for tests of the server
    (`antiphon.faults`)."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    nice: int = 0
    limits: Limits = Limits()
    faults: str | None = None


def encode_config(config: ReaderConfig) -> str:
    return msgspec.json.encode(config).decode()


def decode_config(text: str) -> ReaderConfig:
    """Raises msgspec.ValidationError; only a launcher of another version could cause it."""
    return msgspec.json.decode(text, type=ReaderConfig)

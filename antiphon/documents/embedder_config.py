"""What an embedding process is told when it starts: one frozen value, passed as JSON on its command
line."""

from typing import Literal

import msgspec


class EmbedderConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`nice` is added to the niceness of the thread that embeds passages, and to no other's: for a
    question somebody waits. `faults` is a plan for tests of the server (`antiphon.faults`)."""

    index_bytes: int
    nice: int = 10
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    faults: str | None = None


def encode_config(config: EmbedderConfig) -> str:
    return msgspec.json.encode(config).decode()


def decode_config(text: str) -> EmbedderConfig:
    """Raises msgspec.ValidationError; only a launcher of another version could cause it."""
    return msgspec.json.decode(text, type=EmbedderConfig)

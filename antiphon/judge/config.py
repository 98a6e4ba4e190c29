"""What a judge process is told when it starts: one frozen value, passed as JSON on its command
line. Rules and texts come later, as frames."""

from typing import Literal

import msgspec


class JudgeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`nice` is added to the process's own niceness. `faults` is a plan for tests of the server
    (`antiphon.faults`)."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    nice: int = 0
    """A judge works for a millisecond at a time, and somebody waits for it: out of the engine's way
    it would take longer, and the engine no less."""
    faults: str | None = None


def encode_config(config: JudgeConfig) -> str:
    return msgspec.json.encode(config).decode()


def decode_config(text: str) -> JudgeConfig:
    """Raises msgspec.ValidationError; only a launcher of another version could cause it."""
    return msgspec.json.decode(text, type=JudgeConfig)

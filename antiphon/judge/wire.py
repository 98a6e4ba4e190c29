"""The frames of the judging contract as bytes. Whatever is no such frame raises JudgeLost: with
half a frame nothing can be said any more."""

from types import MappingProxyType
from typing import Any

import msgspec

from antiphon.errors import JudgeLost
from antiphon.judging import JudgeCommand, JudgeFrame
from antiphon.processes.frames import FrameDecoder, encode


def _plain(value: Any) -> Any:
    """Verdicts may hold mappings that can't be written to."""
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise NotImplementedError(type(value))


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_plain)


def encode_command(command: JudgeCommand) -> bytes:
    """Raises JudgeLost when it is too long to send."""
    return encode(command, JudgeLost)


def encode_frame(frame: JudgeFrame) -> bytes:
    """Raises JudgeLost when it is too long to send."""
    return encode(frame, JudgeLost, _ENCODER)


def command_decoder() -> FrameDecoder[JudgeCommand]:
    """The judge's end."""
    return FrameDecoder(msgspec.msgpack.Decoder(JudgeCommand), JudgeLost)


def frame_decoder() -> FrameDecoder[JudgeFrame]:
    """The server's end."""
    return FrameDecoder(msgspec.msgpack.Decoder(JudgeFrame), JudgeLost)

"""The frames of the engine contract. Pure; both ends use it. Whatever is no such frame raises
HostProtocolError."""

import msgspec

from antiphon.errors import HostProtocolError
from antiphon.events import HostCommand, HostFrame
from antiphon.processes.frames import MAX_FRAME_BYTES, FrameDecoder, encode

__all__ = ["MAX_FRAME_BYTES", "command_decoder", "encode_frame", "frame_decoder"]


def encode_frame(frame: HostCommand | HostFrame) -> bytes:
    """One whole frame, ready to write. Raises HostProtocolError when it is too long to send."""
    return encode(frame, HostProtocolError)


def command_decoder() -> FrameDecoder[HostCommand]:
    """The host's end."""
    return FrameDecoder(msgspec.msgpack.Decoder(HostCommand), HostProtocolError)


def frame_decoder() -> FrameDecoder[HostFrame]:
    """The server's end."""
    return FrameDecoder(msgspec.msgpack.Decoder(HostFrame), HostProtocolError)

"""The frames of the embedding contract as bytes. Whatever is no such frame raises EmbedderLost:
with half a frame nothing can be said any more."""

import msgspec

from antiphon.embedding_frames import EmbedderCommand, EmbedderFrame
from antiphon.errors import EmbedderLost
from antiphon.processes.frames import FrameDecoder, encode


def encode_command(command: EmbedderCommand) -> bytes:
    """Raises EmbedderLost when it is too long to send."""
    return encode(command, EmbedderLost)


def encode_frame(frame: EmbedderFrame) -> bytes:
    """Raises EmbedderLost when it is too long to send."""
    return encode(frame, EmbedderLost)


def command_decoder() -> FrameDecoder[EmbedderCommand]:
    """The process's end."""
    return FrameDecoder(msgspec.msgpack.Decoder(EmbedderCommand), EmbedderLost)


def frame_decoder() -> FrameDecoder[EmbedderFrame]:
    """The server's end."""
    return FrameDecoder(msgspec.msgpack.Decoder(EmbedderFrame), EmbedderLost)

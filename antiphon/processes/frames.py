"""Frames on a byte stream: a 4-byte big-endian length, then msgpack. Pure; both ends use it, and
both rooms that have child processes. What a frame says is theirs.

A frame that is too long, is not msgpack or is not of the contract raises the error of the room.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""A prompt of a million tokens is 5 MB; anything near this is garbage read as a length."""

GARBAGE = b"\x00\x00\x00\x01\xc1"
"""A frame that is malformed for sure: msgpack never uses the byte 0xc1. For fault plans."""

_PREFIX_BYTES = 4

T = TypeVar("T")

Malformed = Callable[[str], Exception]
"""Makes the error that a room raises for a frame that its contract forbids."""


_ENCODER = msgspec.msgpack.Encoder()


def encode(frame: Any, malformed: Malformed, encoder: msgspec.msgpack.Encoder = _ENCODER) -> bytes:
    """One whole frame, ready to write. Raises what `malformed` makes when it is too long to
    send."""
    body = encoder.encode(frame)
    if len(body) > MAX_FRAME_BYTES:
        raise malformed(f"a frame of {len(body)} bytes is too long to send")
    return len(body).to_bytes(_PREFIX_BYTES, "big") + body


class FrameDecoder(Generic[T]):
    """Turns any split of the byte stream back into frames of one union."""

    def __init__(self, decoder: msgspec.msgpack.Decoder[T], malformed: Malformed) -> None:
        self._decoder = decoder
        self._malformed = malformed
        self._buffer = bytearray()
        self._need = 0

    @property
    def pending_bytes(self) -> int:
        """Bytes of a frame that has begun; at the end of a stream they are a torn frame."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[T]:
        """All frames that `data` completes. Raises what `malformed` makes; the decoder is then
        spent."""
        buffer = self._buffer
        buffer += data
        # A long frame arrives in many pieces; without this each piece would be looked at again.
        if len(buffer) < self._need:
            return []
        frames: list[T] = []
        at = 0
        end = len(buffer)
        with memoryview(buffer) as view:
            while end - at >= _PREFIX_BYTES:
                length = int.from_bytes(view[at : at + _PREFIX_BYTES], "big")
                if length > MAX_FRAME_BYTES:
                    raise self._malformed(f"a frame of {length} bytes is too long")
                stop = at + _PREFIX_BYTES + length
                if stop > end:
                    break
                frames.append(self._decode(view[at + _PREFIX_BYTES : stop]))
                at = stop
            self._need = 0 if end - at < _PREFIX_BYTES else _PREFIX_BYTES + length
        del buffer[:at]
        return frames

    def _decode(self, body: memoryview) -> T:
        try:
            return self._decoder.decode(body)
        except msgspec.DecodeError as error:
            raise self._malformed(f"malformed frame: {error}") from error
        finally:
            body.release()

"""Small pictures, whole and as real programs write them, and such that aren't what they seem."""

import base64
import struct
import zlib

GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
"""1 × 1."""
WEBP = base64.b64decode("UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAUAmJaQAA3AA/vz0AAA=")
"""1 × 1, lossy."""
WEBP_LOSSLESS = base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
"""1 × 1."""


def png(width: int = 640, height: int = 480, *, shade: int = 0) -> bytes:
    """Grey, one bit a pixel; its rows are there only where they are few."""
    row = b"\0" + bytes([shade]) * ((width + 7) // 8)
    rows = row * (height if width * height <= 1_000_000 else 1)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def jpeg(width: int = 320, height: int = 200, *, before: int = 0) -> bytes:
    """The segments that say what it is, with so many bytes of others before its frame."""
    others = b""
    while before > 0:
        size = min(before, 65_000)
        others += b"\xff\xe1" + struct.pack(">H", size + 2) + bytes(size)
        before -= size
    frame = struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\x00"
    return (
        b"\xff\xd8"
        + b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
        + others
        + b"\xff\xc0"
        + struct.pack(">H", len(frame) + 2)
        + frame
        + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\x7f\xff\xd9"
    )


def data_url(data: bytes, declared: str = "image/png") -> str:
    return f"data:{declared};base64,{base64.b64encode(data).decode()}"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

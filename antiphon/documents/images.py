"""Pictures: their format and size, from the first bytes. Nothing is decoded.

By hand: the fields are fixed by their formats, and a library of codecs is what files attack.
"""

import struct

from antiphon.documents.building import DocumentBuilder
from antiphon.documents.refusing import refuse
from antiphon.reading_files import BlockKind, Unreadable

_NAMES = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WebP",
    "image/bmp": "BMP",
}
_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})
"""JPEG markers among those of frames that are none (ITU T.81, table B.1)."""


def image_type(data: bytes) -> str | None:
    """Which of the formats that are known here the file begins as."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    # Two letters alone would take texts for pictures: what is reserved must be 0.
    if data[:2] == b"BM" and data[6:10] == bytes(4):
        return "image/bmp"
    return None


def read_image(data: bytes, builder: DocumentBuilder) -> None:
    """One sentence on the picture. Raises UnreadableFile."""
    try:
        width, height = _size(data, builder.media_type)
    except (struct.error, IndexError):
        refuse(Unreadable.DAMAGED, "The picture is incomplete.")
    if not width or not height:
        refuse(Unreadable.DAMAGED, "The picture has no size.")
    name = _NAMES[builder.media_type]
    builder.add(BlockKind.PARAGRAPH, f"A {name} picture of {width} × {height} pixels.")
    builder.notice("Only the picture's format and size were read, not what it shows.")


def _size(data: bytes, media_type: str) -> tuple[int, int]:
    match media_type:
        case "image/png":
            width, height = struct.unpack_from(">II", data, 16)
        case "image/gif":
            width, height = struct.unpack_from("<HH", data, 6)
        case "image/bmp":
            width, height = struct.unpack_from("<ii", data, 18)
        case "image/webp":
            return _webp_size(data)
        case _:
            return _jpeg_size(data)
    return abs(width), abs(height)


def _webp_size(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X" if len(data) >= 30:
            width = int.from_bytes(data[24:27], "little") + 1
            return width, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """From segment to segment until one begins a frame."""
    at = 2
    while True:
        while data[at] == 0xFF:
            at += 1
        marker = data[at]
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            height, width = struct.unpack_from(">HH", data, at + 4)
            return width, height
        (length,) = struct.unpack_from(">H", data, at + 1)
        if length < 2 or 0xD0 <= marker <= 0xD9:
            return 0, 0
        at += 1 + length
        if data[at] != 0xFF:
            return 0, 0

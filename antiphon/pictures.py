"""Pictures as bytes: their format and size, by their first bytes. Nothing is decoded. Pure.

By hand: the fields are fixed by their formats, and a library of codecs is what files attack. What a
client says of a picture is never believed.
"""

import math
import struct
from dataclasses import dataclass

NAMES = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WebP",
    "image/bmp": "BMP",
}
SEEN = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What a model may be shown, as OpenAI has it."""
_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})
"""JPEG markers among those of frames that are none (ITU T.81, table B.1)."""
_PATCH = 28
_FEWEST, _MOST = 4, 16_384


class Damaged(ValueError):
    """It begins as a picture and isn't one; its text says why, to people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """In pixels."""

    media_type: str
    width: int
    height: int


def image_type(data: bytes) -> str | None:
    """Which of the formats that are known here the bytes begin as."""
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


def size_of(data: bytes, media_type: str) -> tuple[int, int]:
    """Width and height. Raises Damaged."""
    try:
        width, height = _size(data, media_type)
    except (struct.error, IndexError):
        raise Damaged("The picture is incomplete.") from None
    if not width or not height:
        raise Damaged("The picture has no size.")
    return width, height


def read_picture(data: bytes) -> Picture | None:
    """What a model may be shown; None for all else. Raises Damaged, also for one whose end is
    missing."""
    media_type = image_type(data)
    if media_type not in SEEN:
        return None
    width, height = size_of(data, media_type)
    if not _is_whole(data, media_type):
        raise Damaged("The picture is incomplete.")
    return Picture(media_type=media_type, width=width, height=height)


def tokens_of(width: int, height: int) -> int:
    """About how many a model takes for it, as Qwen2-VL's model card counts: one for each 28 × 28
    pixels, and from 4 to 16,384. What a model really takes is known to its server alone."""
    patches = math.ceil(width / _PATCH) * math.ceil(height / _PATCH)
    return min(max(patches, _FEWEST), _MOST)


def _size(data: bytes, media_type: str) -> tuple[int, int]:
    match media_type:
        case "image/png":
            # The first chunk must be the header (PNG 3rd edition, 5.6).
            if data[8:16] != b"\0\0\0\x0dIHDR":
                return 0, 0
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
        case b"VP8X":
            struct.unpack_from("<6x", data, 24)
            width = int.from_bytes(data[24:27], "little") + 1
            return width, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            mark, bits = struct.unpack_from("<BI", data, 20)
            return ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1) if mark == 0x2F else (0, 0)
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return 0, 0


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


def _is_whole(data: bytes, media_type: str) -> bool:
    match media_type:
        case "image/png":
            return _png_ends(data)
        case "image/webp":
            (length,) = struct.unpack_from("<I", data, 4)
            return bool(length + 8 <= len(data))
        case "image/gif":
            return data.rstrip(b"\0").endswith(b";")
        case _:
            return b"\xff\xd9" in data[2:]


def _png_ends(data: bytes) -> bool:
    """From chunk to chunk, up to the one that ends it."""
    at, has_data = 8, False
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind = data[at + 4 : at + 8]
        if kind == b"IEND":
            return has_data
        has_data = has_data or kind == b"IDAT"
        at += 12 + length
    return False

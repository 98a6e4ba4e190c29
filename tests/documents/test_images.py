"""Pictures are known by their first bytes, and described by them."""

import struct

import pytest

from antiphon.errors import UnreadableFile
from antiphon.reading_files import Unreadable
from antiphon.testing.extracts import extract

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + bytes(9)
JPEG = (
    b"\xff\xd8"
    + b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF" + bytes(10)
    + b"\xff\xc4" + struct.pack(">H", 4) + bytes(2)
    + b"\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, 480, 640) + bytes(10)
)  # fmt: skip
GIF = b"GIF89a" + struct.pack("<HH", 640, 480) + bytes(9)
BMP = b"BM" + struct.pack("<IIIIii", 99, 0, 54, 40, 640, -480) + bytes(20)
WEBP = b"RIFF" + struct.pack("<I", 99) + b"WEBP"
VP8 = WEBP + b"VP8 " + bytes(4) + bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", 640, 480)
VP8L = WEBP + b"VP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 639 | 479 << 14)
VP8X = WEBP + b"VP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (GIF, "image/gif"),
        (BMP, "image/bmp"),
        (VP8, "image/webp"),
        (VP8L, "image/webp"),
        (VP8X, "image/webp"),
    ],
)
def test_format_and_size_are_read_and_nothing_else(data: bytes, media_type: str):
    found = extract(data, "a.txt", "text/plain")

    assert found.media_type == media_type
    assert "640 × 480 pixels" in found.text()
    assert "not what it shows" in found.notices[0]


@pytest.mark.parametrize("data", [PNG[:18], JPEG[:25], GIF[:7], VP8X[:26], b"\xff\xd8\xff\xd9\0\0"])
def test_a_picture_that_is_cut_short_is_refused(data: bytes):
    with pytest.raises(UnreadableFile) as refused:
        extract(data, "a.png")

    assert refused.value.code == Unreadable.DAMAGED


def test_a_text_that_begins_as_a_bitmap_is_a_text():
    assert extract("BMW builds cars.", "a.txt").media_type == "text/plain"

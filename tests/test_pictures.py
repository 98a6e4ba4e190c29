"""What a picture is, by its bytes."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.pictures import Damaged, Picture, image_type, read_picture, tokens_of
from antiphon.testing.images import GIF, WEBP, WEBP_LOSSLESS, jpeg, png

WHOLE = {
    "png": (png(640, 480), "image/png", 640, 480),
    "jpeg": (jpeg(320, 200), "image/jpeg", 320, 200),
    "jpeg behind two segments": (jpeg(5, 7, before=70_000), "image/jpeg", 5, 7),
    "gif": (GIF, "image/gif", 1, 1),
    "webp": (WEBP, "image/webp", 1, 1),
    "lossless webp": (WEBP_LOSSLESS, "image/webp", 1, 1),
}


@pytest.mark.parametrize("name", WHOLE)
def test_format_and_size_are_read_from_the_bytes(name):
    data, media_type, width, height = WHOLE[name]

    assert read_picture(data) == Picture(media_type=media_type, width=width, height=height)


@pytest.mark.parametrize("name", WHOLE)
def test_a_picture_that_is_cut_anywhere_is_none(name):
    data = WHOLE[name][0]
    cuts = range(1, len(data)) if len(data) < 1000 else range(1, len(data), 997)

    for cut in cuts:
        try:
            assert read_picture(data[:cut]) is None, cut
        except Damaged:
            pass


def test_more_pixels_than_there_could_be_are_only_a_number():
    picture = read_picture(png(1_000_000_000, 1_000_000_000))

    assert picture is not None
    assert picture.width * picture.height == 10**18


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"%PDF-1.7 \x89PNG\r\n\x1a\n",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"BM" + bytes(60),
        b"RIFF\x04\0\0\0WAVE",
        b"GIF88a" + bytes(20) + b";",
    ],
)
def test_what_does_not_begin_as_a_picture_is_none(data):
    assert read_picture(data) is None


@pytest.mark.parametrize(
    "data",
    [
        png(0, 5),
        png(5, 0),
        b"\x89PNG\r\n\x1a\n" + b"\0\0\0\x0dJUNK" + png()[16:],
        # A chunk that claims four gigabytes, and then nothing.
        png()[:33] + b"\xff\xff\xff\xffIDAT",
        jpeg(5, 0),
        b"\xff\xd8\xff" + b"\xff" * 100_000,
        b"\xff\xd8\xff\xe0\x00\x00" + bytes(50),
        b"GIF89a\x00\x00\x00\x00;",
        b"RIFF\xff\xff\xff\x7fWEBPVP8X" + bytes(30),
        WEBP[:23] + b"\0\0\0" + WEBP[26:],
    ],
    ids=range(10),
)
def test_what_begins_as_one_and_is_none_is_damaged(data):
    assert image_type(data) is not None

    with pytest.raises(Damaged):
        read_picture(data)


def test_an_archive_behind_a_picture_does_not_change_what_it_is():
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("page.html", "<script>alert(1)</script>")

    picture = read_picture(png(9, 9) + archive.getvalue())

    assert picture == Picture(media_type="image/png", width=9, height=9)


@given(
    st.sampled_from([each[0] for each in WHOLE.values()]),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=30),
    st.binary(max_size=50),
)
def test_whatever_the_bytes_they_are_a_picture_or_refused(data, changes, tail):
    changed = bytearray(data)
    for place, value in changes:
        changed[place % len(changed)] = value
    try:
        picture = read_picture(bytes(changed) + tail)
    except Damaged:
        return

    assert picture is None or (picture.width > 0 and picture.height > 0)


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(1, 1, 4), (28, 28, 4), (280, 280, 100), (281, 280, 110), (10**6, 10**6, 16_384)],
)
def test_an_image_takes_a_token_for_each_patch_within_bounds(width, height, tokens):
    assert tokens_of(width, height) == tokens

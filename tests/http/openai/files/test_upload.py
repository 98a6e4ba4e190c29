import itertools
import random

import pytest
import trio

from antiphon.errors import InvalidRequest
from antiphon.http.openai.files.upload import FormReader

BOUNDARY = b"frontier"


class Draft:
    """Keeps what is written."""

    def __init__(self):
        self.written = b""

    async def write(self, data):
        await trio.lowlevel.checkpoint()
        self.written += data


class Pieces:
    """A body that comes in these pieces."""

    def __init__(self, pieces):
        self._pieces = iter(pieces)

    async def next_piece(self):
        await trio.lowlevel.checkpoint()
        return next(self._pieces, None)


def body_of(content):
    return (
        b'--frontier\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n'
        b'--frontier\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        + content
        + b"\r\n--frontier--\r\n"
    )


async def read(pieces, content):
    draft = Draft()
    form = await FormReader(BOUNDARY, draft, 10_000_000).read(Pieces(pieces))
    assert draft.written == content
    assert (form.size, form.fields) == (len(content), {"purpose": "user_data"})


@pytest.mark.parametrize("content", [b"hello", b"", b"\r\n", b"a\r\n--frontie\r\n\r\r\n--\n-"])
async def test_wherever_a_body_is_cut_in_two_its_file_is_the_same(content):
    body = body_of(content)

    for cut in range(1, len(body)):
        await read([body[:cut], body[cut:]], content)


async def test_a_body_in_bytes_one_at_a_time_is_read_like_any():
    await read([bytes([byte]) for byte in body_of(b"a\r\n-b")], b"a\r\n-b")


@pytest.mark.parametrize("seed", range(20))
async def test_a_body_cut_anywhere_holds_the_same_file(seed):
    rng = random.Random(seed)
    words = [b"\r", b"\n", b"-", b"--frontie", b"\r\n--frontie", b"x" * 50, b"--frontierx"]
    content = b"".join(rng.choices(words, k=200))
    body = body_of(content)
    cuts = sorted({0, len(body), *(rng.randrange(len(body)) for _ in range(60))})

    await read([body[a:b] for a, b in itertools.pairwise(cuts)], content)


async def test_a_long_line_is_not_held_back():
    reader = FormReader(BOUNDARY, Draft(), 10_000_000)

    assert reader._without_partial_boundary(b"\r\n" + b"x" * 5000) == b"\r\n" + b"x" * 5000
    assert reader._without_partial_boundary(b"x\r\n--fr") == b"x"


@pytest.mark.parametrize("missing", range(1, 13))
async def test_a_body_that_ends_within_its_last_boundary_is_refused(missing):
    body = body_of(b"hello")[:-2]

    with pytest.raises(InvalidRequest):
        await FormReader(BOUNDARY, Draft(), 10_000_000).read(Pieces([body[:-missing]]))

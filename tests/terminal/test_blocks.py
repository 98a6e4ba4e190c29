"""Markdown cut into blocks while it is written."""

import random

import pytest

from antiphon.terminal.blocks import Blocks

FENCED = "Before\n\n```python\na = 1\n\nb = 2\n```\n\nAfter\n"
NESTED = "````\n```\n\nstill inside\n```\n````\n\nout\n"
A_LIST = "1. one\n\n   more of one\n\n2. two\n\nafter\n"
TEXTS = [
    "one line",
    "first\n\nsecond\n\nthird",
    "first\n\n\n\nsecond\n",
    "\n\nleading\n\nlines\n",
    FENCED,
    NESTED,
    A_LIST,
    "~~~\nnever closed\n\nand on",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\nafter",
    "",
]


def cut(text: str, size: int = 1) -> tuple[list[str], str]:
    blocks = Blocks()
    done = [
        block
        for start in range(0, len(text), size)
        for block in blocks.feed(text[start : start + size])
    ]
    return done, blocks.finish()


def test_a_block_is_done_when_the_next_one_begins():
    assert cut("first\n\nsecond\n\nthird\n") == (["first\n\n", "second\n\n"], "third\n")


def test_an_empty_line_in_a_fence_ends_nothing():
    done, last = cut(FENCED)

    assert done == ["Before\n\n", "```python\na = 1\n\nb = 2\n```\n\n"]
    assert last == "After\n"


def test_a_fence_is_closed_by_one_that_is_as_long():
    done, _ = cut(NESTED)

    assert done == ["````\n```\n\nstill inside\n```\n````\n\n"]


def test_what_is_indented_belongs_to_its_item():
    done, last = cut(A_LIST)

    assert done == ["1. one\n\n   more of one\n\n", "2. two\n\n"]
    assert last == "after\n"


@pytest.mark.parametrize("text", TEXTS)
def test_nothing_is_lost_or_said_twice_however_it_comes(text: str):
    rng = random.Random(1)
    whole = cut(text, max(1, len(text)))

    for _ in range(20):
        done, last = cut(text, rng.randint(1, 9))
        assert "".join(done) + last == text
        assert (done, last) == whole


def test_what_is_drawn_again_is_one_block_of_a_long_answer():
    blocks = Blocks()
    longest = 0
    for _ in range(2000):
        for _ in blocks.feed("A paragraph of some words.\n\n"):
            pass
        longest = max(longest, len(blocks.rest))

    assert longest < 100

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.policy.repetition import Repetition, least
from antiphon.verdicts import Action, Finding, Stage

FINDING = Finding(rule="loop", stage=Stage.OUTPUT, action=Action.BLOCK)


def repetition(times=5, longest=8):
    return Repetition(times, longest, FINDING)


def fed(tracker, *pieces):
    found = [finding for piece in pieces for finding in tracker.feed(piece)]
    return [(finding.start, finding.end) for finding in [*found, *tracker.finish()]]


def naive(text, times, longest):
    """Each maximal run of a primitive piece that is long enough."""
    found = set()
    for piece in range(1, longest + 1):
        start = 0
        for at in range(piece, len(text) + 1):
            if at < len(text) and text[at] == text[at - piece]:
                continue
            run = text[start:at]
            primitive = not any(
                all(one == other for one, other in zip(run, run[size:], strict=False))
                for size in range(1, piece)
            )
            if at - start >= least(times, piece, longest) and primitive:
                found.add((start, start + least(times, piece, longest)))
            start = at - piece + 1
    return sorted(found)


def test_a_piece_that_comes_again_and_again_is_found_where_it_began():
    assert fed(repetition(), "Well: " + "and then " * 3 + "no, no, " * 9) == [(32, 64)]


def test_a_short_piece_must_fill_as_much_as_four_of_the_longest():
    assert fed(repetition(), "=" * 31) == []
    assert fed(repetition(), "=" * 32) == [(0, 32)]


def test_a_longer_piece_than_the_rule_says_is_not_found():
    assert fed(repetition(), "123456789" * 40) == []


def test_a_repetition_is_told_once_however_long_it_gets():
    assert fed(repetition(), "ab" * 500) == [(0, 32)]
    assert fed(repetition(), "ab" * 50 + "." + "ab" * 50) == [(0, 32), (101, 133)]


def test_many_times_may_be_asked_for():
    assert fed(repetition(times=100), "abcd" * 99) == []
    assert fed(repetition(times=100), "abcd" * 150) == [(0, 400)]


def test_nothing_is_held():
    tracker = repetition()

    tracker.feed("ab" * 50)

    assert tracker.held_from == 100


PIECES = st.lists(
    st.tuples(st.text("ab", min_size=1, max_size=6), st.integers(1, 14)), max_size=8
).map(lambda parts: "".join(piece * times for piece, times in parts))


@given(text=PIECES, times=st.integers(3, 6), longest=st.integers(1, 6))
def test_what_comparing_everything_finds_is_found(text, times, longest):
    assert fed(repetition(times, longest), text) == sorted(
        naive(text, times, longest), key=lambda span: span[1]
    )


@given(text=PIECES, data=st.data())
def test_wherever_the_output_is_cut_the_same_is_found(text, data):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    assert fed(repetition(3, 4), *pieces) == fed(repetition(3, 4), text)


@pytest.mark.parametrize(("times", "piece", "expected"), [(20, 1, 256), (20, 64, 1280)])
def test_what_a_repetition_must_fill(times, piece, expected):
    assert least(times, piece, 64) == expected

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.policy.malformed import Malformed
from antiphon.verdicts import Action, Finding, Stage

FINDING = Finding(rule="noise", stage=Stage.OUTPUT, action=Action.BLOCK)


def fed(tracker, *pieces):
    found = [finding for piece in pieces for finding in tracker.feed(piece)]
    return [(finding.start, finding.end) for finding in [*found, *tracker.finish()]]


@pytest.mark.parametrize("char", ["\x00", "\x1b", "\x9f", "\ufffd", chr(0xDC80)])
def test_so_many_characters_of_no_sound_text_are_found(char):
    assert fed(Malformed(3, FINDING), f"ab{char * 2}c{char * 5}") == [(5, 8)]


@pytest.mark.parametrize(
    "text", ["a\n\n\n\t\t\t\r\n\r\n", "\ufffd\ufffda\ufffd\ufffd", "日本語", ""]
)
def test_sound_text_is_not(text):
    assert fed(Malformed(3, FINDING), text) == []


def test_a_run_is_held_until_it_is_long_enough_or_broken():
    tracker = Malformed(3, FINDING)

    tracker.feed("ab\ufffd\ufffd")
    assert tracker.held_from == 2
    tracker.feed("c")
    assert tracker.held_from == 5


@pytest.mark.parametrize("changes", [{"action": Action.ANNOTATE}, {"shadow": True}])
def test_what_changes_nothing_holds_nothing(changes):
    fields = {"rule": "noise", "stage": Stage.OUTPUT, "action": Action.BLOCK} | changes
    tracker = Malformed(3, Finding(**fields))

    tracker.feed("\ufffd\ufffd")

    assert tracker.held_from == 2


@given(text=st.text("a\ufffd\x00", max_size=30), data=st.data())
def test_wherever_the_output_is_cut_the_same_is_found_and_none_of_it_was_let_go(text, data):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    tracker, found, gone = Malformed(3, FINDING), [], 0

    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        new = tracker.feed(text[start:end])
        assert all(finding.start >= gone for finding in new)
        found += [(finding.start, finding.end) for finding in new]
        gone = tracker.held_from

    assert found == fed(Malformed(3, FINDING), text)

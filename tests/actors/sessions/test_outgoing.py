"""What a turn says on its way to the reader: gate, choices, ends."""

from itertools import count

from antiphon.actors.sessions.guard import Guard
from antiphon.actors.sessions.outgoing import Outgoing
from antiphon.testing.judging import PhraseWindow, findings_in
from antiphon.turn_events import ChoiceEnded, Delta, FinishReason, Refused
from antiphon.verdicts import Action, Stage, Verdict

BLOCKS = {"bomb": Action.BLOCK}
later = count(1.0).__next__
"""A moment at which whatever waits is due."""


def an_outgoing(choices: int = 1, *, is_open: bool = True, scans: bool = False) -> Outgoing:
    def guard() -> Guard:
        window = PhraseWindow(BLOCKS)
        return Guard(window, version="1", scans=scans, note=lambda finding, text: None)

    return Outgoing(guard, lambda rule: f"no {rule}", choices=choices, is_open=is_open)


def text(choice: int, text: str) -> Delta:
    return Delta(choice=choice, text=text)


def end(choice: int, reason: FinishReason = FinishReason.STOP) -> ChoiceEnded:
    return ChoiceEnded(choice=choice, finish_reason=reason)


CUT = FinishReason.CONTENT_FILTER


def test_where_nothing_is_judged_everything_leaves_as_it_is():
    outgoing = Outgoing(None, str, choices=1, is_open=True)
    outgoing.take(text(0, "a bomb"))
    outgoing.take(end(0))

    assert outgoing.leaving() == [text(0, "a bomb"), end(0)]
    assert outgoing.is_over
    assert outgoing.verdicts == ()


def test_nothing_leaves_before_the_input_was_judged_and_then_all_of_it_does():
    outgoing = an_outgoing(is_open=False)
    outgoing.take(text(0, "Hello"))
    outgoing.take(end(0))

    assert outgoing.leaving() == []
    assert not outgoing.is_over
    outgoing.open()
    assert outgoing.leaving() == [text(0, "Hello"), end(0)]
    assert outgoing.is_over


def test_of_a_blocked_input_nothing_leaves_but_a_refusal_for_each_choice():
    outgoing = an_outgoing(2, is_open=False)
    outgoing.take(text(0, "Hello"))
    outgoing.take(end(0))
    outgoing.block("hate", (1, 3))

    assert outgoing.leaving() == [
        Refused(choice=0, text="no hate", messages=(1, 3)),
        end(0, CUT),
        Refused(choice=1, text="no hate", messages=(1, 3)),
        end(1, CUT),
    ]
    assert outgoing.is_over
    outgoing.take(text(1, "late"))
    assert outgoing.leaving() == []


def test_a_blocked_choice_ends_and_the_others_go_on():
    outgoing = an_outgoing(2)
    outgoing.take(text(0, "a bomb"))
    outgoing.take(text(1, "a boat"))

    assert outgoing.cut() == [0]
    assert outgoing.leaving() == [
        text(0, "a "),
        Refused(choice=0, text="no bomb"),
        end(0, CUT),
        text(1, "a boat"),
    ]
    assert not outgoing.is_over
    outgoing.take(end(1))
    assert outgoing.leaving() == [end(1)]
    assert outgoing.is_over
    assert [verdict.blocked_by for verdict in outgoing.verdicts] == ["bomb", None]


def test_a_choice_that_is_blocked_behind_the_gate_is_cut_at_once_and_told_later():
    outgoing = an_outgoing(is_open=False)
    outgoing.take(text(0, "bomb"))

    assert outgoing.cut() == [0]
    assert outgoing.leaving() == []
    outgoing.open()
    assert outgoing.leaving() == [Refused(choice=0, text="no bomb"), end(0, CUT)]


def test_scans_are_due_by_choice_and_one_that_blocks_cuts_its_own():
    outgoing = an_outgoing(2, scans=True)
    outgoing.take(text(0, "one"))
    outgoing.take(text(1, "two"))

    assert outgoing.due(later()) == [(0, "one"), (1, "two")]
    assert outgoing.due(later()) == []
    bad = findings_in("one", {"one": Action.BLOCK}, Stage.OUTPUT)
    outgoing.scanned(0, Verdict(version="1", findings=bad))
    outgoing.scanned(1, Verdict(version="1"))
    assert outgoing.cut() == [0]
    assert outgoing.leaving() == [
        Refused(choice=0, text="no one"),
        end(0, CUT),
        text(1, "two"),
    ]


def test_a_choice_ends_after_its_last_scan():
    outgoing = an_outgoing(scans=True)
    outgoing.take(text(0, "one"))
    [(choice, _)] = outgoing.due(later())
    outgoing.take(end(0))

    assert not outgoing.is_over
    outgoing.scanned(choice, Verdict(version="1"))
    assert outgoing.leaving() == [text(0, "one"), end(0)]
    assert outgoing.is_over


def test_what_is_generated_anew_is_judged_anew():
    outgoing = an_outgoing()
    outgoing.take(text(0, "bo"))
    outgoing.reset()
    outgoing.take(text(0, "mbx"))

    assert outgoing.leaving() == [text(0, "mbx")]

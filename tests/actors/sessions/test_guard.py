"""One choice's output on its way out: windows, scans, and what may leave when."""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from antiphon.actors.sessions.guard import BEFORE, Guard, scan_every_s
from antiphon.events import TokenLogprob
from antiphon.testing.judging import PhraseWindow, findings_in
from antiphon.turn_events import FinishReason
from antiphon.verdicts import Action, Finding, Stage, Verdict

BLOCKS = {"bomb": Action.BLOCK}
MASKS = {"secret": Action.TRANSFORM}
FINE = Verdict(version="1")
later = count(1.0).__next__
"""A moment at which whatever waits is due."""


def a_guard(
    phrases=BLOCKS,
    *,
    scans: bool = False,
    noted: list | None = None,
    withheld: list | None = None,
    every_s: float = 0.01,
) -> Guard:
    return Guard(
        PhraseWindow(phrases),
        version="1",
        scans=scans,
        note=lambda finding, text: None if noted is None else noted.append((finding.rule, text)),
        withheld=lambda rule, text: None if withheld is None else withheld.append((rule, text)),
        every_s=lambda: every_s,
    )


def verdict_on(text: str, phrases) -> Verdict:
    return Verdict(version="1", findings=findings_in(text, phrases, Stage.OUTPUT))


def tokens(*texts: str) -> list[TokenLogprob]:
    return [TokenLogprob(text=text, data=text.encode(), logprob=-0.5) for text in texts]


def told(entries) -> list[str]:
    return [entry.text for entry in entries]


def test_text_that_can_match_nothing_leaves_at_once():
    guard = a_guard()

    assert guard.feed("Hello").text == "Hello"
    assert guard.finish(FinishReason.STOP).text == ""
    assert guard.is_over
    assert guard.finish_reason is FinishReason.STOP


def test_the_beginning_of_a_match_is_held_and_leaves_when_it_was_none():
    guard = a_guard()

    assert guard.feed("a bo").text == "a "
    assert guard.feed("at").text == "boat"


def test_what_is_held_at_the_end_leaves_with_it():
    guard = a_guard()
    guard.feed("bom")

    assert guard.finish(FinishReason.LENGTH).text == "bom"


def test_a_block_lets_out_what_was_before_it_and_nothing_after():
    guard = a_guard()

    assert guard.feed("a bo").text == "a "
    assert guard.feed("mb and more").text == ""
    assert guard.feed("!").text == ""
    assert guard.finish(FinishReason.STOP).text == ""
    assert (guard.blocked_by, guard.finish_reason) == ("bomb", FinishReason.CONTENT_FILTER)
    assert guard.is_over


def test_a_match_of_the_very_first_and_the_very_last_characters_is_blocked():
    first, last = a_guard(), a_guard()
    last.feed("a ")

    assert first.feed("bomb").text == ""
    assert last.feed("bom").text == ""
    assert last.feed("b").text == ""
    assert (first.blocked_by, last.blocked_by) == ("bomb", "bomb")


def test_a_transform_works_in_the_stream():
    guard = a_guard(MASKS)

    out = [guard.feed(text).text for text in ("my sec", "ret is", " out")]

    assert "".join(out) == "my [removed] is out"
    assert guard.blocked_by is None


def test_the_text_of_a_match_is_told_with_it_wherever_it_was_cut():
    noted: list[tuple[str, str]] = []
    guard = a_guard(MASKS, noted=noted)

    for text in ("my se", "cr", "et, a secret"):
        guard.feed(text)

    assert noted == [("secret", "secret"), ("secret", "secret")]
    assert [finding.rule for finding in guard.verdict.findings] == ["secret"]


def test_log_probabilities_leave_with_their_text():
    guard = a_guard()

    assert told(guard.feed("a bo", tokens("a ", "bo")).logprobs) == ["a "]
    assert told(guard.feed("at", tokens("at")).logprobs) == ["bo", "at"]


def test_log_probabilities_of_what_is_replaced_or_cut_never_leave():
    masked, cut = a_guard(MASKS), a_guard()

    out = [
        *masked.feed("my sec", tokens("my ", "sec")).logprobs,
        *masked.feed("ret it", tokens("ret", " it")).logprobs,
    ]
    rest = [
        *cut.feed("a bo", tokens("a ", "bo")).logprobs,
        *cut.feed("mb now", tokens("mb", " now")).logprobs,
        *cut.finish(FinishReason.STOP).logprobs,
    ]

    assert told(out) == ["my ", " it"]
    assert told(rest) == ["a "]


def test_tokens_that_do_not_make_up_their_text_leave_together():
    guard = a_guard()
    halves = [
        TokenLogprob(text="", data=b"\xc3", logprob=-1.0),
        TokenLogprob(text="?", data=b"\xa9 b", logprob=-1.0),
    ]

    assert guard.feed("é b", halves).logprobs == ()
    assert len(guard.feed("oat").logprobs) == 2


def test_where_it_is_scanned_nothing_leaves_before_its_scan_has_passed():
    guard = a_guard({}, scans=True)

    assert not guard.feed("Hello")
    assert guard.due(later()) == "Hello"
    assert not guard.feed(" there")
    assert guard.due(later()) is None  # one at a time
    assert guard.scanned(FINE).text == "Hello"
    assert guard.due(later()) == "Hello there"
    assert guard.scanned(FINE).text == " there"


def test_a_scan_sees_what_left_before_as_far_as_that_is_near():
    guard = a_guard({}, scans=True)
    guard.feed("x" * 1000)
    guard.due(later())
    guard.scanned(FINE)
    guard.feed("y")

    assert guard.due(later()) == "x" * BEFORE + "y"


def test_the_end_waits_for_the_last_scan():
    guard = a_guard({}, scans=True)
    guard.feed("Hello")
    guard.due(later())
    guard.finish(FinishReason.STOP)

    assert not guard.is_over
    assert guard.scanned(FINE).text == "Hello"
    assert guard.is_over


def test_a_scan_that_blocks_drops_what_waits():
    guard = a_guard({}, scans=True)
    guard.feed("a bomb")
    text = guard.due(later())
    guard.feed(" and more")

    assert not guard.scanned(verdict_on(text or "", BLOCKS))
    assert guard.due(later()) is None
    assert guard.is_over
    assert (guard.blocked_by, guard.finish_reason) == ("bomb", FinishReason.CONTENT_FILTER)


def test_a_scan_that_blocks_after_the_end_was_generated_still_blocks():
    guard = a_guard({}, scans=True)
    guard.feed("a bomb")
    text = guard.due(later())
    guard.finish(FinishReason.STOP)
    guard.scanned(verdict_on(text or "", BLOCKS))

    assert guard.finish_reason is FinishReason.CONTENT_FILTER


def test_text_before_a_block_of_the_window_still_waits_for_its_scan():
    guard = a_guard(scans=True)
    guard.feed("fine ")
    assert guard.due(later()) == "fine "
    guard.feed("words bomb")

    assert not guard.is_over
    assert guard.scanned(FINE).text == "fine "
    assert guard.due(later()) == "fine words "
    assert guard.scanned(FINE).text == "words "
    assert guard.is_over
    assert guard.blocked_by == "bomb"


def test_a_scans_transform_replaces_what_has_not_left():
    guard = a_guard({}, scans=True)
    guard.feed("a sec", tokens("a ", "sec"))
    guard.due(later())
    guard.scanned(FINE)
    guard.feed("ret b", tokens("ret", " b"))

    piece = guard.scanned(verdict_on(guard.due(later()) or "", MASKS))

    assert (piece.text, piece.logprobs) == ("[removed] b", ())


def test_what_is_known_of_a_long_answer_does_not_grow_with_it():
    guard = a_guard({}, scans=True)
    for score in (0.2, 0.9, 0.4):
        guard.feed("x")
        guard.due(later())
        found = Finding(rule="r", stage=Stage.OUTPUT, action=Action.ANNOTATE, score=score)
        guard.scanned(Verdict(version="1", findings=(found,)))

    [finding] = guard.verdict.findings
    assert finding.score == 0.9


@given(
    words=st.lists(st.sampled_from(["bomb", "secret", "bo", "sec", " ", "a", "mb"]), max_size=12),
    cuts=st.lists(st.integers(1, 4), min_size=1, max_size=20),
    scans=st.booleans(),
    order=st.randoms(use_true_random=False),
)
def test_whatever_the_interleaving_no_match_ever_leaves(words, cuts, scans, order):
    """Generated text and scan verdicts come in any order, and the text in any pieces."""
    phrases = {"bomb": Action.BLOCK, "secret": Action.TRANSFORM}
    text = "".join(words)
    guard, out, logprobs = a_guard(phrases, scans=scans), [], []
    at = turn = 0
    waiting: str | None = None

    def say(piece):
        out.append(piece.text)
        logprobs.extend(told(piece.logprobs))

    while not guard.is_over:
        waiting = waiting if waiting is not None else guard.due(later())
        if waiting is not None and (order.random() < 0.5 or at >= len(text)):
            say(guard.scanned(FINE))
            waiting = None
        elif at < len(text):
            piece = text[at : at + cuts[turn % len(cuts)]]
            at, turn = at + len(piece), turn + 1
            say(guard.feed(piece, tokens(*piece)))
        elif guard.finish_reason is None:
            say(guard.finish(FinishReason.STOP))

    said = "".join(out)
    expected, is_blocked = text.replace("secret", "[removed]"), "bomb" in text
    assert said == (expected[: expected.index("bomb")] if is_blocked else expected)
    assert (guard.blocked_by is not None) == is_blocked
    # Those of the replaced and the cut would spell it.
    before = text[: text.index("bomb")] if is_blocked else text
    assert "".join(logprobs) == before.replace("secret", "")


def test_what_a_windows_block_keeps_from_the_reader_is_told_once():
    withheld: list[tuple[str, str]] = []
    guard = a_guard(withheld=withheld)

    delivered = guard.feed("how to make a bo").text + guard.feed("mb at home").text
    guard.feed("more")
    guard.finish(FinishReason.STOP)

    assert delivered == "how to make a "
    assert withheld == [("bomb", "bomb at home")]


def test_what_a_scans_block_keeps_from_the_reader_is_all_that_waited():
    withheld: list[tuple[str, str]] = []
    guard = a_guard(scans=True, withheld=withheld)
    guard.feed("one ")
    text = guard.due(later())
    guard.feed("two bo")
    assert text is not None

    guard.scanned(verdict_on(text, {"one": Action.BLOCK}))

    assert withheld == [("one", "one two bo")]


def test_text_waits_for_the_moment_at_which_all_streams_are_scanned():
    guard = a_guard(scans=True, every_s=0.25)
    guard.feed("one ")
    assert guard.due(10.1) == "one "  # the first is never kept waiting
    guard.scanned(FINE)

    guard.feed("two ")
    assert guard.due(10.2) is None
    guard.feed("three ")
    assert guard.due_at == 10.25
    assert guard.due(10.25) == "one two three "
    guard.scanned(FINE)

    guard.feed("end")
    assert guard.due(10.26) is None
    guard.finish(FinishReason.STOP)
    assert guard.due(10.26) == "one two three end"


def test_the_more_turns_there_are_the_rarer_are_scans_within_bounds():
    often = [scan_every_s(turns) for turns in (0, 1, 4, 32, 1000)]

    assert often == sorted(often)
    assert often[0] == often[1] <= 0.01
    assert often[-1] <= 0.3

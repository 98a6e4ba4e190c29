"""One choice on its way out: its text, and then its calls, each judged."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.actors.sessions.guard import Guard
from antiphon.actors.sessions.lane import Lane
from antiphon.ids import FileId
from antiphon.testing.judging import REPLACEMENT, PhraseWindow, findings_in
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.turn_events import ChoiceEnded, Cited, Delta, FinishReason, Said
from antiphon.verdicts import Action, Stage, Verdict

PHRASES = {"bomb": Action.BLOCK, "secret": Action.TRANSFORM, "1234": Action.TRANSFORM}


def a_lane(*, scans: bool = False) -> Lane:
    def guard() -> Guard:
        window = PhraseWindow({} if scans else PHRASES)
        return Guard(window, version="1", scans=scans, note=lambda finding, text: None)

    return Lane(0, guard)


def text(text: str) -> Delta:
    return Delta(choice=0, text=text)


def started(call: int = 0) -> CallStarted:
    return CallStarted(choice=0, call=call, id=f"call_{call}", name="f")


def more(text: str, call: int = 0) -> CallDelta:
    return CallDelta(choice=0, call=call, text=text)


def whole(call: int = 0) -> CallEnded:
    return CallEnded(choice=0, call=call)


END = ChoiceEnded(choice=0, finish_reason=FinishReason.TOOL_CALLS)


def take(lane: Lane, *events: Said | ChoiceEnded) -> list[Said]:
    return [said for event in events for said in lane.take(event)]


def arguments_in(events: list[Said]) -> str:
    return "".join(event.text for event in events if isinstance(event, CallDelta))


def text_in(events: list[Said]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


def scan(lane: Lane) -> list[Said]:
    """Have what is due judged, by the phrases."""
    due = lane.due(float("inf"))
    assert due is not None
    return lane.scanned(Verdict(version="1", findings=findings_in(due, PHRASES, Stage.OUTPUT)))


def test_text_calls_and_end_leave_in_their_order():
    lane = a_lane()
    events = (text("Hi."), started(), more('{"a":'), more("1}"), whole(), started(1), more("{}", 1))
    told = take(lane, *events, whole(1), END)

    assert text_in(told) == "Hi."
    assert arguments_in(told) == '{"a":1}{}'
    assert [type(event) for event in told if not isinstance(event, Delta | CallDelta)] == [
        *(CallStarted, CallEnded, CallStarted, CallEnded)
    ]
    assert lane.finish_reason is FinishReason.TOOL_CALLS
    assert lane.blocked_by is None


def test_nothing_of_a_blocked_match_leaves_in_arguments_and_no_end_of_the_call():
    lane = a_lane()
    told = take(lane, started(), more('{"a": "a bo'), more('mb"}'), whole(), END)

    assert arguments_in(told) == '{"a": "a '
    assert whole() not in told
    assert lane.blocked_by == "bomb"
    assert lane.finish_reason is FinishReason.CONTENT_FILTER


def test_text_is_judged_to_its_end_before_a_call_begins():
    lane = a_lane()
    told = take(lane, text("a bo"), started(), more("{}"), whole(), END)

    assert text_in(told) == "a bo"
    assert told.index(text("bo")) < told.index(started())


def test_a_replacement_within_a_string_leaves_the_call_whole():
    lane = a_lane()
    told = take(lane, started(), more('{"a": "my secret", '), more('"b": 1}'), whole(), END)

    assert json.loads(arguments_in(told)) == {"a": f"my {REPLACEMENT}", "b": 1}
    assert told[-1] == whole()
    assert lane.blocked_by is None


def test_a_replacement_that_leaves_no_json_ends_the_choice_as_blocked():
    lane = a_lane()
    told = take(lane, started(), more('{"a": '), more("1234}"), whole(), END)

    assert arguments_in(told) == '{"a": '
    assert whole() not in told
    assert lane.blocked_by == "1234"
    assert lane.finish_reason is FinishReason.CONTENT_FILTER


def test_where_a_classifier_scans_nothing_of_the_next_leaves_before_the_last_has_passed():
    lane = a_lane(scans=True)

    assert take(lane, text("Hi."), started(), more("{}"), whole(), END) == []
    assert scan(lane) == [text("Hi."), started()]
    assert lane.finish_reason is None
    assert scan(lane) == [more("{}"), whole()]
    assert lane.finish_reason is FinishReason.TOOL_CALLS


def test_arguments_that_a_classifier_blocks_do_not_leave():
    lane = a_lane(scans=True)
    take(lane, text("Hi."), started(), more('{"a": "bomb"}'), whole(), END)
    scan(lane)

    assert scan(lane) == []
    assert lane.blocked_by == "bomb"
    assert [finding.rule for finding in lane.verdict.findings] == ["bomb"]


def test_a_call_that_is_cut_has_no_end():
    lane = a_lane()
    told = take(
        lane, started(), more('{"a'), ChoiceEnded(choice=0, finish_reason=FinishReason.LENGTH)
    )

    assert arguments_in(told) == '{"a'
    assert whole() not in told
    assert lane.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize("scans", [False, True])
@settings(deadline=None)
@given(data=st.data())
def test_whatever_is_cut_wherever_no_blocked_text_leaves_and_whole_calls_are_json(scans, data):
    parts = st.sampled_from(["bomb", "bo", "mb", "secret", "1234", "x", " "])
    values = st.lists(st.lists(parts, max_size=4).map("".join), min_size=1, max_size=3)
    calls = [
        json.dumps({"a": value, "n": 1234} if data.draw(st.booleans()) else {"a": value})
        for value in data.draw(values)
    ]
    said = "".join(data.draw(st.lists(parts, max_size=4)))
    size = data.draw(st.integers(1, 7))
    lane = a_lane(scans=scans)
    told = take(lane, *(text(said[at : at + size]) for at in range(0, len(said), size)))
    for number, call in enumerate(calls):
        cuts = (more(call[at : at + size], number) for at in range(0, len(call), size))
        told += take(lane, started(number), *cuts, whole(number))
    told += take(lane, END)
    while lane.finish_reason is None:
        told += scan(lane)

    assert "bomb" not in text_in(told)
    for number, _ in enumerate(calls):
        mine = [each for each in told if isinstance(each, CallDelta) and each.call == number]
        left = arguments_in(list(mine))
        assert "bomb" not in left
        assert "secret" not in left
        if whole(number) in told:
            assert isinstance(json.loads(left), dict)
    assert all(whole(number) in told for number, _ in enumerate(calls)) or lane.blocked_by


def cited(at: int) -> Cited:
    return Cited(choice=0, at=at, file=FileId("file-a"), filename="a.pdf")


def test_a_citation_follows_the_text_that_it_is_for():
    lane = a_lane()

    out = take(lane, text("It is bo"), cited(8), text("b."), END)

    kinds = [type(event).__name__ for event in out]
    assert text_in(out) == "It is bob."
    [citation] = [event for event in out if isinstance(event, Cited)]
    assert citation.at == 8
    before = out[: kinds.index("Cited")]
    assert len(text_in(before)) >= 8, "its text may have been held as the beginning of a phrase"


def test_a_citation_in_text_that_was_replaced_is_still_in_the_text():
    lane = a_lane()

    out = take(lane, text("a secret secret secret"), cited(22), END)

    [citation] = [event for event in out if isinstance(event, Cited)]
    assert citation.at <= len(text_in(out))


def test_nothing_is_cited_of_text_that_was_blocked():
    lane = a_lane()

    out = take(lane, text("fine"), cited(4), text(" a bomb"), cited(11), END)

    assert [event.at for event in out if isinstance(event, Cited)] == [4]


def test_a_citation_waits_for_the_scan_of_its_text():
    lane = a_lane(scans=True)

    held = take(lane, text("It is so"), cited(8))
    passed = scan(lane)

    assert held == []
    assert [type(event).__name__ for event in passed] == ["Delta", "Cited"]

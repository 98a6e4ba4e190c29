"""The pure core of a session."""

import msgspec

from antiphon.actors.sessions.transcript import Transcript
from antiphon.errors import HostLost
from antiphon.events import EndReason, SlotText
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.turn_events import ChoiceEnded, Delta, FinishReason, TurnEnded, TurnFailed, Usage

ONE, TWO = EngineRequest(1), EngineRequest(2)


def news(request: EngineRequest, text: str, tokens: int, end: EndReason | None = None) -> SlotText:
    return SlotText(slot=SlotIndex(0), request=request, text=text, tokens=tokens, end=end)


def test_text_becomes_a_delta_of_its_choice():
    transcript = Transcript(5, {ONE: 0, TWO: 1})

    assert list(transcript.on_text(news(TWO, "hi", 1))) == [Delta(choice=1, text="hi")]


def test_a_step_that_held_all_its_text_back_says_nothing_and_counts_its_tokens():
    transcript = Transcript(5, {ONE: 0})

    assert list(transcript.on_text(news(ONE, "", 3))) == []
    assert transcript.usage == Usage(prompt_tokens=5, completion_tokens=3)
    assert transcript.begun


def test_choices_end_as_they_are_generated_and_the_turn_when_it_is_told():
    transcript = Transcript(5, {ONE: 0, TWO: 1})

    first = list(transcript.on_text(news(ONE, "a", 2, EndReason.STOP)))
    second = list(transcript.on_text(news(TWO, "", 4, EndReason.LENGTH)))

    assert first == [
        Delta(choice=0, text="a"),
        ChoiceEnded(choice=0, finish_reason=FinishReason.STOP),
    ]
    assert second == [ChoiceEnded(choice=1, finish_reason=FinishReason.LENGTH)]
    assert not transcript.ended
    assert transcript.end() == TurnEnded(usage=Usage(prompt_tokens=5, completion_tokens=6))
    assert transcript.ended


def test_news_of_an_ended_choice_mean_nothing():
    transcript = Transcript(5, {ONE: 0, TWO: 1})
    list(transcript.on_text(news(ONE, "a", 2, EndReason.STOP)))

    assert list(transcript.on_text(news(ONE, "b", 3))) == []
    assert transcript.usage.completion_tokens == 2


def test_a_failure_ends_the_turn_once_and_keeps_what_was_used():
    transcript = Transcript(5, {ONE: 0})
    list(transcript.on_text(news(ONE, "a", 2)))
    error = HostLost("killed")

    assert list(transcript.fail(error)) == [
        TurnFailed(error=error, usage=Usage(prompt_tokens=5, completion_tokens=2))
    ]
    assert list(transcript.fail(error)) == []
    assert list(transcript.on_text(news(ONE, "b", 3, EndReason.STOP))) == []


def test_what_is_unfinished_is_what_must_be_given_back():
    transcript = Transcript(5, {ONE: 0, TWO: 1})
    list(transcript.on_text(news(ONE, "a", 2, EndReason.STOP)))
    list(transcript.on_text(news(TWO, "a", 1)))

    assert transcript.unfinished == {TWO: 1}
    assert not transcript.ended


def test_an_engine_end_without_success_waits_for_its_reason():
    transcript = Transcript(5, {ONE: 0})

    assert list(transcript.on_text(news(ONE, "", 1, EndReason.CAPACITY))) == []
    assert not transcript.ended


def test_what_is_cut_is_what_still_runs_and_nothing_of_it_is_heard_again():
    transcript = Transcript(5, {ONE: 0, TWO: 1})
    list(transcript.on_text(news(ONE, "a", 2)))
    list(transcript.on_text(news(TWO, "b", 1, EndReason.STOP)))

    assert transcript.cut([0, 1]) == {ONE: 2}
    assert transcript.cut([0]) == {}
    assert list(transcript.on_text(news(ONE, "c", 3))) == []
    assert transcript.end().usage == Usage(prompt_tokens=5, completion_tokens=3)


def test_what_was_cut_before_it_brought_anything_is_free():
    transcript = Transcript(5, {ONE: 0})
    transcript.cut([0])

    assert transcript.end().usage == Usage(prompt_tokens=0, completion_tokens=0)


def test_what_was_cached_is_what_nobody_computed_for_this_turn():
    transcript = Transcript(50, {ONE: 0, TWO: 1})

    for request, cached in ((TWO, 49), (ONE, 32), (ONE, None)):
        told = msgspec.structs.replace(news(request, "a", 1), cached_tokens=cached)
        list(transcript.on_text(told))

    assert transcript.usage.cached_tokens == 32


def test_no_more_is_cached_than_the_prompt_has():
    transcript = Transcript(5, {ONE: 0})

    list(transcript.on_text(msgspec.structs.replace(news(ONE, "a", 1), cached_tokens=9)))

    assert transcript.usage.cached_tokens == 5

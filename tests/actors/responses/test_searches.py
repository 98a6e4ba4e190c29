"""The story of a response that begins with a search in files, and whose text cites them."""

import pytest

from antiphon.actors.responses.retold import told
from antiphon.actors.responses.script import Script
from antiphon.ids import FileId
from antiphon.narration import (
    CitationAdded,
    Ended,
    ItemClosed,
    ItemOpened,
    Opened,
    PartClosed,
    PartOpened,
    Queued,
    ResponseEvent,
    SearchMoved,
    SearchOpened,
    SearchStage,
    Started,
    TextAdded,
    TextClosed,
    decode_events,
    encode_events,
)
from antiphon.records import ResponseStatus
from antiphon.testing.answers import a_response
from antiphon.turn_events import ChoiceEnded, Cited, Delta, FinishReason, TurnEnded, Usage

FILE = FileId("file-a")
RESULT = {"file_id": FILE, "filename": "a.pdf", "score": 0.5, "attributes": {}, "text": "40 bar"}
TURN = (
    Delta(choice=0, text="It is 40 bar"),
    Cited(choice=0, at=12, file=FILE, filename="a.pdf"),
    Delta(choice=0, text="."),
    ChoiceEnded(choice=0, finish_reason=FinishReason.STOP),
    TurnEnded(usage=Usage(prompt_tokens=3, completion_tokens=9)),
)


def a_story() -> tuple[Script, list[ResponseEvent]]:
    script = Script(a_response("resp_1"))
    script.search(["the pressure?"], [RESULT])
    events = [each for event in TURN for each in script.on_turn(event)]
    return script, [*events, *script.end(ResponseStatus.COMPLETED)]


def test_a_search_is_the_first_item_and_citations_are_part_of_the_text():
    script, events = a_story()

    assert [type(event) for event in events] == [
        *(Opened, Started, SearchOpened, SearchMoved, SearchMoved, SearchMoved, ItemClosed),
        *(ItemOpened, PartOpened, TextAdded, CitationAdded, TextAdded, TextClosed, PartClosed),
        *(ItemClosed, Ended),
    ]
    stages = [event.stage for event in events if isinstance(event, SearchMoved)]
    assert stages == list(SearchStage)
    searched, message = script.output(1)
    assert (searched.type, searched.status) == ("file_search_call", "completed")
    assert searched.body["queries"] == ["the pressure?"]
    assert searched.body["results"] == [RESULT]
    assert searched.id.startswith("fs_")
    [part] = message.body["content"]
    assert part["text"] == "It is 40 bar."
    assert part["annotations"] == [
        {"type": "file_citation", "file_id": FILE, "filename": "a.pdf", "index": 12}
    ]
    assert message.tokens == 8, "all that was generated is the message's"


def test_it_is_told_only_once_there_is_anything_to_tell():
    script = Script(a_response("resp_1"))

    script.search(["x"], [])

    assert not script.opened, "the turn may still be refused, as if it had never been"


def test_a_search_in_the_background_is_told_when_the_work_begins():
    script = Script(a_response("resp_1"))
    queued = script.queue()
    script.search(["x"], [])

    events = script.on_turn(TURN[0])

    assert [type(event) for event in queued] == [Opened, Queued]
    assert [type(event) for event in events[:3]] == [Started, SearchOpened, SearchMoved]


@pytest.mark.parametrize("length", range(17))
def test_wherever_its_log_breaks_off_it_can_be_ended(length: int):
    _, events = a_story()
    kept = decode_events(encode_events(events[:length]))

    script = Script.resumed(a_response("resp_1"), kept)
    script.end(ResponseStatus.FAILED)

    for item in script.output(1):
        assert item.status in {"completed", "incomplete"}


def test_a_response_without_a_log_is_told_from_its_output():
    script, events = a_story()
    ended = script.response(ResponseStatus.COMPLETED, 1)

    again = told(ended)

    rebuilt = Script.resumed(a_response("resp_1"), again)
    assert [item.body for item in rebuilt.output(1)] == [item.body for item in ended.output]
    assert [type(event) for event in again if not isinstance(event, TextAdded)] == [
        type(event) for event in events if not isinstance(event, TextAdded)
    ]

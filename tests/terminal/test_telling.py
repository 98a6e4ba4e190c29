"""What is said beside answers."""

import msgspec
import pytest

from antiphon.errors import ApiUnreachable
from antiphon.terminal.answer import Stopped
from antiphon.terminal.telling import advice_on, fates, pictures, sources, told_of_stop
from antiphon.terminal.wire import Item, Response, ShownFile, ShownImage

FILES = (
    ShownFile(filename="a.txt", fate="whole"),
    ShownFile(filename="b.md", fate="excerpts", excerpts=3),
    ShownFile(filename="c.md", fate="excerpts", excerpts=1),
    ShownFile(filename="d.pdf", fate="failed", reason="It has no text."),
    ShownFile(filename="e.pdf", fate="not_ready"),
    ShownFile(filename="f.txt", fate="deleted"),
)


def test_files_that_were_shown_are_told_in_a_line():
    assert fates(FILES, is_seen=True) == "a.txt: shown whole; b.md: 3 excerpts; c.md: 1 excerpt"


def test_files_that_were_not_shown_are_told_with_the_reason():
    assert fates(FILES, is_seen=False) == (
        "d.pdf: not shown, it couldn't be read: It has no text.; "
        "e.pdf: not shown, still being read: ask again in a moment; "
        "f.txt: not shown, it was deleted"
    )


def test_pictures_that_were_not_shown_are_counted_with_the_reason():
    seen = [ShownImage(fate=fate) for fate in ("shown", "no_vision", "left_out", "left_out")]

    assert pictures(seen) == [
        "The model didn't see 1 picture: it can't see any.",
        "The model didn't see 2 pictures: there are too many to show all of them.",
    ]
    assert pictures(seen[:1]) == []


def test_each_file_that_an_answer_is_from_is_named_once():
    plan, note = (
        {"type": "file_citation", "file_id": f"file-{name}", "filename": f"{name}.txt"}
        for name in ("plan", "note")
    )
    link = {"type": "url_citation", "url": "https://example.com"}
    content = [{"type": "output_text", "text": "x", "annotations": [plan, link, note, plan]}]
    search = {"id": "fs_1", "type": "file_search_call", "queries": ["x"]}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": content}

    response = msgspec.convert({"id": "resp_1", "output": [search, message]}, Response)

    assert sources(response.output) == "from plan.txt, note.txt"
    assert sources([Item(content="plain")]) == ""


@pytest.mark.parametrize("stopped", Stopped)
def test_a_server_that_did_not_say_so_has_not_stopped_it(stopped: Stopped):
    told = told_of_stop(stopped)

    assert ("has ended it" in told) == (stopped is Stopped.STOPPED)


def test_a_lost_answer_is_not_called_lost_for_good():
    lost = ApiUnreachable("http://127.0.0.1:8000", "connection refused", is_cut=True)

    assert "may still run" in advice_on(lost)
    assert "Start one" in advice_on(ApiUnreachable("http://127.0.0.1:9", "connection refused"))

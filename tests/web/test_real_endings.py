"""The page in front of the real model: answers that wait, are stopped, blocked or interrupted, and
those that lose their network or their server."""

import os
import re
import signal
import socket

import pytest

from antiphon.testing.browsers import ChatPage
from antiphon.testing.cut_proxy import cut_proxy
from antiphon.testing.page_records import held, items, responses, text_of, until_freed
from antiphon.testing.process import running_server

pytestmark = pytest.mark.engine

QUESTION = "What is the capital of France? Answer in one sentence."
STORY = "Tell me a very long story about a whale."


@pytest.fixture
def chat(real, chat_page) -> ChatPage:
    return chat_page(real).asking(temperature=0).open()


def test_stop_frees_the_slot(real, chat):
    request = chat.asked_as(STORY)
    chat.until_longer(40)
    meanwhile = held(real, request)
    chat.press("Stop answering")
    chat.until_idle()
    until_freed(real, request)

    assert (meanwhile, held(real, request)) == (["decode"], [])
    assert chat.notices == ["You stopped this answer."]
    assert len(chat.answer) > 40


def test_who_waits_is_told_why(real, chat_page):
    stories = [chat_page(real).asking(temperature=0).open() for _ in range(2)]
    for each in stories:
        each.ask(STORY)
        each.until_longer(0)
    third = chat_page(real).asking(temperature=0, max_output_tokens=24).open()
    third.ask(QUESTION)
    third.last.get_by_text("Waiting: all places are taken by other answers").wait_for()
    stories[0].press("Stop answering")
    third.until_idle()
    stories[1].press("Stop answering")

    assert "Paris" in third.answer
    assert not any("Waiting" in notice for notice in third.notices)
    for each in stories:
        each.until_idle()
        assert each.notices == ["You stopped this answer."]


def test_a_message_that_is_blocked_says_so(chat):
    chat.asked("Where does the blue heron sleep?")

    assert chat.answer == ""
    assert chat.last.locator(".refusal").inner_text() == "I can't help with that."
    assert chat.notices == ["Blocked by the server's rules."]


def test_an_answer_whose_length_is_over_says_so(chat):
    chat.asking(temperature=0, max_output_tokens=16).asked(STORY)

    assert chat.notices == ["The answer ends here: it has reached the longest length."]


def test_an_answer_is_interrupted_when_its_engine_dies_and_asked_for_again(real, chat):
    chat.ask(STORY)
    chat.until_longer(80)
    engine = real.log.events("engine_ready")[-1]["pid"]
    os.kill(engine, signal.SIGKILL)
    chat.last.get_by_text("Interrupted.").wait_for()
    chat.until_idle()
    kept = chat.answer
    [failed] = responses(real, chat.conversation)
    real.log.wait_for("engine_ready", within_s=60, matching=lambda line: line["pid"] != engine)
    chat.asking(temperature=0, max_output_tokens=24).press("Try again")
    chat.page.locator(".versions", has_text="2/2").wait_for()
    chat.until_idle()

    assert failed["status"] == "failed"
    assert len(kept) > 80
    assert chat.notices == ["The answer ends here: it has reached the longest length."]
    assert chat.answer


def test_an_answer_goes_on_when_its_page_is_loaded_again(real, chat):
    chat.ask(STORY)
    chat.until_longer(40)
    conversation = chat.conversation
    chat.reload()
    chat.until_longer(120)
    chat.press("Stop answering")
    chat.until_idle()

    assert len(responses(real, conversation)) == 1


def test_a_network_that_is_cut_costs_nothing(real, chat):
    chat.ask(STORY)
    chat.until_longer(40)
    chat.page.context.set_offline(True)
    chat.last.get_by_text("You are offline.").wait_for()
    before = len(chat.answer)
    chat.page.context.set_offline(False)
    chat.until_longer(before + 80)
    during = chat.notices
    shown = chat.answer
    chat.press("Stop answering")
    chat.until_idle()
    [response] = responses(real, chat.conversation)

    assert during == []
    assert letters(text_of(response)).startswith(letters(shown))
    assert letters(chat.answer) == letters(text_of(response))


def test_a_connection_that_breaks_costs_no_answer_and_makes_no_second_one(real, chat_page):
    """First when the server has taken the message, and nobody heard that; then in mid-answer."""
    with cut_proxy(real.api) as proxy:
        chat = chat_page(real)
        chat.url = proxy.api
        chat.asking(temperature=0, max_output_tokens=400).open()
        proxy.lose(b"text/event-stream")
        chat.ask(STORY)
        chat.until_longer(40)
        was_lost = proxy.lost.is_set()
        cut = proxy.cut()
        chat.until_longer(len(chat.answer) + 80)
        chat.until_idle()
    [response] = responses(real, chat.conversation)

    assert was_lost
    assert cut >= 1
    assert letters(chat.answer) == letters(text_of(response))
    assert len(items(real, chat.conversation)) == 2


def test_a_server_that_is_killed_in_mid_answer_keeps_what_had_come(model_dir, chat_page, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = {
        "ANTIPHON_BIND": f"127.0.0.1:{port}",
        "ANTIPHON_DATABASE_URL": f"sqlite:///{tmp_path}/antiphon.db",
    }
    with running_server(**options) as first:
        chat = chat_page(first).asking(temperature=0).open()
        chat.ask(STORY)
        chat.until_longer(200)
        os.kill(first.process.pid, signal.SIGKILL)
        chat.last.get_by_text("The connection is lost.").wait_for()
        shown = chat.answer
    with running_server(**options) as second:
        chat.last.get_by_text("Interrupted.").wait_for()
        chat.until_idle()
        kept = chat.answer
        [failed] = responses(second, chat.conversation)
        chat.asking(temperature=0, max_output_tokens=24).press("Try again")
        chat.page.locator(".versions", has_text="2/2").wait_for()
        chat.until_idle()

        assert failed["status"] == "failed"
        assert len(kept) > 50
        assert letters(shown).startswith(letters(kept))
        assert chat.answer


def letters(text: str) -> str:
    """Without the marks of Markdown, and what it makes of spaces."""
    return re.sub(r"[\W\d_]+", "", text)

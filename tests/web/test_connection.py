"""A connection that breaks costs nobody an answer, and nobody gets two."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from antiphon.testing.cut_proxy import cut_proxy
from antiphon.testing.page_records import items, responses
from antiphon.testing.page_script import script
from antiphon.testing.page_server import page_settings, scripted_replica
from antiphon.testing.process import ServerProcess, running_server


def asked_over_an_outage(chat) -> None:
    chat.ask("count 150")
    chat.until_text("10")
    chat.page.context.set_offline(True)
    chat.last.get_by_text("You are offline.").wait_for()
    chat.page.context.set_offline(False)
    chat.until_idle()


def test_an_answer_goes_on_where_it_was_when_the_network_is_back(server, chat):
    asked_over_an_outage(chat)

    assert chat.answer == " ".join(str(number + 1) for number in range(150))
    assert len(responses(server, chat.conversation)) == 1
    assert len(items(server, chat.conversation)) == 2


def test_a_screen_reader_says_once_that_the_network_is_away(chat):
    chat.listen()
    asked_over_an_outage(chat)

    sent, away, answer = chat.heard
    assert sent == "Sent."
    assert away.startswith("You are offline.")
    assert answer.startswith("Answer of 150 words")


def test_a_page_that_is_closed_finds_its_answer_again(server, chat):
    chat.ask("count 150")
    chat.until_text("10")
    conversation = chat.conversation
    chat.reload()
    chat.until_idle()

    assert chat.answer.endswith(" 149 150")
    assert len(responses(server, conversation)) == 1


def test_what_was_sent_without_a_network_is_sent_once_it_is_there(server, chat):
    chat.page.context.set_offline(True)
    chat.ask("count 3")
    chat.last.get_by_text("You are offline.").wait_for()
    chat.page.context.set_offline(False)
    chat.until_idle()

    assert chat.answer == "1 2 3"
    assert len(responses(server, chat.conversation)) == 1


def test_a_message_whose_answer_was_lost_is_not_sent_twice(server, chat_page):
    """The server has taken it, and nobody heard that: it is sent again under its key."""
    with cut_proxy(server.api) as proxy:
        chat = chat_page(server)
        chat.url = proxy.api
        chat.open()
        proxy.lose(b"text/event-stream")
        chat.asked("count 20")

        assert proxy.lost.is_set()
        assert chat.answer.endswith(" 19 20")
    assert len(responses(server, chat.conversation)) == 1
    assert len(items(server, chat.conversation)) == 2


@contextmanager
def server_at(port: int, config: Path, folder: Path) -> Iterator[ServerProcess]:
    with running_server(
        config,
        ANTIPHON_BIND=f"127.0.0.1:{port}",
        ANTIPHON_DATA_DIR=str(folder),
        ANTIPHON_DATABASE_URL=f"sqlite:///{folder}/antiphon.db",
        ANTIPHON_POLICY_ENABLED="false",
    ) as process:
        yield process


def test_a_server_that_is_killed_and_started_again_has_the_answer_so_far(chat_page, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with page_settings(tmp_path, [scripted_replica(script, step_s=0.02)]) as config:
        with server_at(port, config, tmp_path) as first:
            chat = chat_page(first).open()
            chat.ask("endless")
            chat.until_text("word60")
            os.kill(first.process.pid, signal.SIGKILL)
            chat.last.get_by_text("The connection is lost.").wait_for()
        with server_at(port, config, tmp_path) as second:
            chat.last.get_by_text("Interrupted.").wait_for(timeout=40_000)
            kept = chat.answer
            conversation = chat.conversation
            chat.reload()
            chat.until_idle()

            assert "word30" in kept
            assert chat.answer == kept
            assert [each["status"] for each in responses(second, conversation)] == ["failed"]
            assert chat.asked("count 3") == "1 2 3"

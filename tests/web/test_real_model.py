"""The page in front of the real model."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from antiphon.testing.process import ServerProcess, running_server

pytestmark = pytest.mark.engine
STORY = "Tell me a very long story about a whale."


@pytest.fixture(scope="module")
def real(model_dir: Path) -> Iterator[ServerProcess]:
    with running_server() as process:
        yield process


def responses(server: ServerProcess, conversation: str) -> list[dict]:
    found = httpx2.get(f"{server.base_url}/responses?conversation={conversation}")
    return found.json()["data"]


def test_a_conversation_from_the_first_word_to_a_second_version(real, chat_page):
    chat = chat_page(real).open()
    first = chat.asked("What is the capital of France? Answer in one sentence.")
    conversation = chat.conversation
    chat.press("Regenerate")
    chat.page.locator(".versions", has_text="2/2").wait_for()
    chat.until_idle()
    second = chat.conversation
    chat.press("Previous version")
    chat.page.locator(".versions", has_text="1/2").wait_for()
    chat.until_idle()

    assert first
    assert second != conversation
    assert (chat.conversation, chat.answer) == (conversation, first)
    assert chat.last.locator(".actions .model").inner_text() == "smollm2-135m-instruct"


def test_stop_frees_the_slot(real, chat_page):
    chat = chat_page(real).open()
    chat.ask(STORY)
    chat.page.wait_for_function("() => document.querySelector('.markdown').textContent.length > 40")
    busy = [slot["state"] for slot in real.slots() if slot["lane"] == "interactive"]
    chat.press("Stop answering")
    chat.until_idle()
    left = [slot["state"] for slot in real.slots() if slot["lane"] == "interactive"]

    assert busy == ["decode"]
    assert left in ([], ["releasing"])
    assert chat.notices == ["You stopped this answer."]


def test_a_network_that_is_cut_costs_nothing(real, chat_page):
    chat = chat_page(real).open()
    chat.ask(STORY)
    chat.page.wait_for_function("() => document.querySelector('.markdown').textContent.length > 40")
    chat.page.context.set_offline(True)
    chat.last.get_by_text("You are offline.").wait_for()
    chat.page.context.set_offline(False)
    chat.page.wait_for_function("() => !document.querySelector('.notice.warning')")
    chat.press("Stop answering")
    chat.until_idle()
    [response] = responses(real, chat.conversation)
    [part] = response["output"][0]["content"]

    assert (
        chat.page.locator(".markdown").evaluate("e => e.textContent.slice(0, 30)")
        == (part["text"].strip()[:30])
    )


def test_a_server_that_is_killed_in_mid_answer_keeps_what_had_come(model_dir, chat_page, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = {
        "ANTIPHON_BIND": f"127.0.0.1:{port}",
        "ANTIPHON_DATABASE_URL": f"sqlite:///{tmp_path}/antiphon.db",
    }
    with running_server(**options) as first:
        chat = chat_page(first).open()
        chat.ask(STORY)
        chat.page.wait_for_function(
            "() => document.querySelector('.markdown').textContent.length > 200"
        )
        os.kill(first.process.pid, signal.SIGKILL)
        chat.last.get_by_text("The connection is lost.").wait_for()
    with running_server(**options):
        chat.last.get_by_text("Interrupted.").wait_for(timeout=60_000)
        kept = chat.answer

        assert len(kept) > 50
        chat.press("Try again")
        chat.page.locator(".versions", has_text="2/2").wait_for()
        chat.page.wait_for_function(
            "() => document.querySelector('.markdown').textContent.length > 20"
        )
        chat.press("Stop answering")
        chat.until_idle()

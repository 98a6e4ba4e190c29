"""Pictures that go with a message: to a model that sees them, and not to one that doesn't."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from antiphon.testing.browsers import ChatPage
from antiphon.testing.images import data_url, png
from antiphon.testing.page_script import script
from antiphon.testing.page_server import page_settings, scripted_replica
from antiphon.testing.process import ServerProcess, running_server
from antiphon.testing.replicas import ScriptedReplica

PICTURE = png(64, 48)


@pytest.fixture(scope="module")
def replica() -> ScriptedReplica:
    return scripted_replica(script)


@pytest.fixture(scope="module")
def seeing(
    browser: Browser, replica: ScriptedReplica, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server whose model sees."""
    with (
        page_settings(tmp_path_factory.mktemp("seeing"), [replica]) as config,
        running_server(config, ANTIPHON_UPSTREAM_VISION="on") as process,
    ):
        yield process


def test_a_model_that_sees_none_is_sent_none_and_it_is_said_before(chat: ChatPage):
    chat.bring("paste", "cat.png", PICTURE, "image/png")
    chat.write("say anything")
    failed = chat.page.locator(".composer .file-chip.failed")

    said = failed.get_by_role("alert").inner_text()
    assert said == "scripted can't see pictures. Remove it."
    assert chat.page.get_by_role("button", name="Send message").is_disabled()
    chat.press("Remove cat.png")
    assert chat.page.get_by_role("button", name="Send message").is_enabled()


@pytest.mark.parametrize("how", ["paste", "drop"])
def test_a_model_that_sees_is_shown_it(seeing, replica, chat_page, how):
    chat = chat_page(seeing).open()
    chat.bring(how, "cat.png", PICTURE, "image/png")
    before = len(replica.bodies)
    chat.asked("say I see a cat")

    assert chat.answer == "I see a cat"
    assert chat.last.locator(".bubble .file-chip").inner_text() == "cat.png"
    # Whatever else it is asked, as for a title, comes without.
    shown = [
        each["content"][0]["image_url"]["url"]
        for body in replica.bodies[before:]
        for each in body["messages"]
        if isinstance(each["content"], list)
    ]
    assert shown[-1] == data_url(PICTURE)
    chat.reload()
    chat.until_idle()
    chat.last.locator(".bubble .file-chip", has_text="cat.png").wait_for()

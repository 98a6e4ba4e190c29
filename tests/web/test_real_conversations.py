"""The page in front of the real model: the list, drafts, several tabs, and the keyboard alone."""

import pytest

from antiphon.testing.browsers import ChatPage
from antiphon.testing.page_records import made, responses, statuses

pytestmark = pytest.mark.engine

QUESTION = "What is the capital of France? Answer in one sentence."
STORY = "Tell me a very long story about a whale."
UNDO_IS_OVER_MS = 9_000


@pytest.fixture
def chat(real, chat_page) -> ChatPage:
    """A tab whose questions have short answers, the same ones each time."""
    return chat_page(real).asking(temperature=0, max_output_tokens=24).open()


def test_ten_conversations_are_listed_and_the_one_that_goes_on_comes_first(real, chat):
    names = [f"Quillon {number}" for number in range(1, 11)]
    ids = made(real, *names)
    chat.reload()
    listed = chat.listed[:10]
    chat.entry("Quillon 4").locator("a").click()
    chat.page.locator(".list a[aria-current=page]", has_text="Quillon 4").wait_for()
    chat.asked(QUESTION)
    chat.page.locator(".list li:first-child", has_text="Quillon 4").first.wait_for()

    assert listed == list(reversed(names))
    assert chat.conversation == ids[3]
    assert chat.page.title().startswith("Quillon 4")


def test_conversations_are_searched_renamed_and_archived(real, chat):
    made(real, "Verjuice", "Verdigris")
    search = chat.page.get_by_role("searchbox", name="Search conversations")
    search.fill("verj")
    chat.page.wait_for_function("() => document.querySelectorAll('.list a').length === 1")
    assert chat.listed == ["Verjuice"]
    chat.choose("Verjuice", "Rename")
    chat.page.get_by_role("textbox", name="New title").fill("Verjuice and salt")
    chat.page.keyboard.press("Enter")
    chat.until_listed("Verjuice and salt")
    search.fill("")
    chat.until_listed("Verdigris")
    chat.choose("Verjuice and salt", "Archive")
    chat.until_listed("Verjuice and salt", is_there=False)
    chat.press("Archive")
    chat.until_listed("Verjuice and salt")
    chat.choose("Verjuice and salt", "Bring back")
    chat.until_listed("Verjuice and salt", is_there=False)
    chat.press("Back to chats")

    chat.until_listed("Verjuice and salt")


def test_a_deletion_is_taken_back_or_done(real, chat):
    keep, lose = made(real, "Keep this", "Lose this")
    chat.page.clock.install()
    chat.reload()
    for title in ("Keep this", "Lose this"):
        chat.choose(title, "Delete")
        chat.until_listed(title, is_there=False)
    chat.page.locator(".toast", has_text="Keep this").get_by_role("button", name="Undo").click()
    chat.until_listed("Keep this")
    with chat.page.expect_response(lambda each: each.request.method == "DELETE") as deleted:
        chat.page.clock.fast_forward(UNDO_IS_OVER_MS)
    deleted.value.finished()

    assert statuses(real, [keep, lose]) == [200, 404]


def test_drafts_are_kept_beside_answers(chat):
    chat.asked(QUESTION)
    chat.write("half a thought")
    chat.press("New chat")
    chat.write("another")
    chat.page.go_back()
    until_draft(chat, "half a thought")
    chat.reload()
    until_draft(chat, "half a thought")
    chat.press("New chat")

    until_draft(chat, "another")


def test_tabs_keep_in_step(real, chat, chat_page):
    chat.asking(temperature=0).ask(STORY)
    chat.until_longer(0)
    other = chat_page(real, beside=chat).open(chat.conversation)
    other.until_longer(80)
    other.press("Stop answering")
    other.until_idle()
    chat.until_idle()
    chat.choose(chat.conversation, "Rename")
    chat.page.get_by_role("textbox", name="New title").fill("In both tabs")
    chat.page.keyboard.press("Enter")
    other.until_listed("In both tabs")
    chat.write("a draft for both")
    other.page.evaluate("() => document.activeElement.blur()")
    until_draft(other, "a draft for both")

    assert chat.notices == other.notices == ["You stopped this answer."]
    assert chat.answer == other.answer
    assert len(responses(real, chat.conversation)) == 1


def test_the_keyboard_is_enough(real, chat):
    [known] = made(real, "Zeugma")
    keys = chat.page.keyboard
    keys.press("Control+KeyK")
    keys.type("zeugma")
    chat.page.wait_for_function("() => document.querySelectorAll('.list a').length === 1")
    keys.press("Tab")
    keys.press("Enter")
    chat.page.wait_for_function("id => location.pathname.endsWith(id)", arg=known)
    keys.press("Shift+Escape")
    keys.type(QUESTION)
    keys.press("Enter")
    chat.turns.first.wait_for()
    chat.until_idle()
    answer = chat.answer
    assert chat.page.evaluate("() => document.activeElement.ariaLabel") == "Message"

    for _ in range(20):
        keys.press("Shift+Tab")
        if chat.page.evaluate("() => document.activeElement.ariaLabel") == "Regenerate":
            break
    keys.press("Enter")
    chat.page.locator(".versions", has_text="2/2").wait_for()
    chat.until_idle()
    chat.asking(temperature=0)
    keys.press("Control+Shift+KeyO")
    keys.type(STORY)
    keys.press("Enter")
    chat.until_longer(20)
    keys.press("Escape")
    chat.until_idle()

    assert answer
    assert chat.turns.count() == 1
    assert chat.notices == ["You stopped this answer."]


def until_draft(chat: ChatPage, text: str) -> None:
    chat.page.wait_for_function(
        "text => document.querySelector('.composer textarea').value === text", arg=text
    )

"""What the server keeps is what every browser shows."""

from antiphon.testing.browsers import ChatPage


def thumb(chat: ChatPage, name: str) -> str | None:
    button = chat.last.get_by_role("button", name=name)
    button.wait_for()
    return button.get_attribute("aria-pressed")


def test_a_rating_is_shown_in_every_browser_with_its_reason(chat, chat_page, server):
    chat.asked("say one")
    chat.press("Bad answer")
    reason = chat.last.get_by_role("textbox", name="Why? (optional)")
    reason.fill("too short")
    chat.press("Send")
    chat.last.get_by_text("Thank you.").wait_for()

    other = chat_page(server).open(chat.conversation)
    other.until_text("one")

    assert (thumb(other, "Bad answer"), thumb(other, "Good answer")) == ("true", "false")
    other.press("Bad answer")
    told = other.last.get_by_role("textbox", name="Why? (optional)")
    told.wait_for()
    assert told.input_value() == "too short"
    other.press("Good answer")
    other.last.locator('[aria-label="Good answer"][aria-pressed="true"]').wait_for()
    assert told.input_value() == ""


def test_a_branch_from_the_beginning_gets_a_title_of_its_own(chat):
    chat.asked("say egret")
    chat.until_listed("Say egret")
    chat.press("Edit message")
    chat.page.get_by_role("textbox", name="Edit your message").fill("say turnstone")
    chat.page.keyboard.press("Enter")
    chat.page.locator(".versions", has_text="2/2").wait_for()
    chat.until_idle()

    chat.until_listed("Say turnstone")
    assert chat.answer == "turnstone"


def test_a_branch_keeps_the_title_that_a_person_wrote(chat):
    chat.asked("say sanderling")
    chat.choose(chat.conversation, "Rename")
    chat.page.get_by_role("textbox", name="New title").fill("My birds")
    chat.page.keyboard.press("Enter")
    chat.until_listed("My birds")
    assert chat.page.title() == "My birds · Antiphon"
    chat.press("Edit message")
    chat.page.get_by_role("textbox", name="Edit your message").fill("say plover")
    chat.page.keyboard.press("Enter")
    chat.page.locator(".versions", has_text="2/2").wait_for()
    chat.until_idle()

    assert chat.page.title().startswith("My birds")

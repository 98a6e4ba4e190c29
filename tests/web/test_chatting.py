"""What people do most: they write, and read."""

import re

from antiphon.testing.page_records import held, until_freed
from antiphon.testing.process import ServerProcess


def test_an_answer_streams_and_is_told_with_its_model(chat):
    assert chat.asked("say Hello **world**, this is `code`.") == "Hello world, this is code."
    assert chat.last.locator("strong").inner_text() == "world"
    assert chat.last.locator(".actions .model").inner_text() == "scripted"


def test_a_conversation_is_listed_with_its_title_and_opened_again(chat):
    chat.asked("say one")
    chat.asked("say two")
    conversation = chat.conversation
    assert conversation.startswith("conv_")
    entry = chat.page.locator(f'.list a[href="/c/{conversation}"]')
    entry.filter(has_text=re.compile("^Say one$")).wait_for()

    chat.press("New chat")
    assert chat.turns.count() == 0
    entry.click()
    chat.until_text("two")

    assert chat.turns.count() == 2
    assert chat.page.title().startswith("Say one")


def test_a_reload_shows_the_same(chat):
    chat.asked("say # Title\n\n- one\n- two\n\n```python\nprint(1)\n```")
    before = chat.answer

    chat.reload()
    chat.until_idle()

    assert chat.answer == before
    assert chat.last.locator("h1").inner_text() == "Title"
    assert chat.last.locator(".code .hljs-built_in").count() == 1


def test_stop_frees_the_slot_and_keeps_what_had_come(server: ServerProcess, chat):
    request = chat.asked_as("endless")
    chat.until_text("word5")
    meanwhile = held(server, request)
    chat.press("Stop answering")
    chat.until_idle()
    until_freed(server, request)

    assert (meanwhile, held(server, request)) == (["decode"], [])
    assert "word5" in chat.answer
    assert chat.notices == ["You stopped this answer."]


def test_nothing_is_said_of_an_end_that_is_taken_back(chat):
    chat.page.evaluate(
        """() => {
          window.told = new Set();
          new MutationObserver(() => {
            for (const each of document.querySelectorAll('.notice')) told.add(each.textContent);
          }).observe(document.querySelector('.turns'), { childList: true, subtree: true });
        }"""
    )
    chat.asked("say one")
    told = chat.page.evaluate("() => [...told]")

    assert not any("Stopped" in text for text in told), told


def test_escape_stops(chat):
    chat.ask("endless")
    chat.until_text("word2")
    chat.page.keyboard.press("Escape")
    chat.until_idle()

    assert chat.notices == ["You stopped this answer."]


def test_regenerating_keeps_the_first_answer_as_a_version(chat):
    chat.asked("say one")
    chat.asked("count 3")
    first = chat.conversation
    chat.press("Regenerate")
    chat.page.wait_for_function("first => !location.pathname.endsWith(first)", arg=first)
    chat.page.locator(".versions", has_text="2/2").wait_for()
    chat.until_idle()

    assert chat.turns.count() == 2
    assert chat.answer == "1 2 3"
    chat.press("Previous version")
    chat.page.locator(".versions", has_text="1/2").wait_for()
    assert chat.conversation == first
    chat.page.wait_for_function("() => document.querySelectorAll('.list li').length > 0")
    families = chat.page.locator(".list a").evaluate_all("all => all.map(a => a.dataset.root)")
    assert families.count(first) == 1


def test_an_edited_message_begins_a_branch(chat):
    chat.asked("say first")
    chat.asked("say second")
    chat.turns.first.hover()
    chat.turns.first.get_by_role("button", name="Edit message").click()
    chat.page.get_by_role("textbox", name="Edit your message").fill("say other")
    chat.page.keyboard.press("Enter")
    chat.page.locator(".versions", has_text="2/2").wait_for()
    chat.until_idle()

    assert (chat.turns.count(), chat.answer) == (1, "other")
    chat.press("Previous version")
    chat.until_text("second")
    assert chat.turns.count() == 2


def test_thumbs_take_a_reason(server: ServerProcess, chat):
    chat.asked("say rated")
    chat.press("Bad answer")
    chat.page.get_by_role("textbox", name="Why?").fill("too short")
    chat.page.keyboard.press("Enter")
    chat.last.get_by_text("Thank you.").wait_for()
    chat.reload()
    chat.until_idle()

    pressed = chat.last.get_by_role("button", name="Bad answer")
    assert pressed.get_attribute("aria-pressed") == "true"


def test_an_answer_can_be_copied(server: ServerProcess, chat):
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.asked("say **bold** words")
    chat.press("Copy answer")
    chat.page.get_by_role("button", name="Copied").wait_for()

    assert chat.page.evaluate("() => navigator.clipboard.readText()") == "**bold** words"


def test_a_draft_is_kept_for_each_conversation(chat):
    chat.asked("say one")
    chat.write("half a thought")
    chat.press("New chat")
    chat.write("another")
    chat.page.go_back()
    chat.page.wait_for_function(
        "() => document.querySelector('textarea').value === 'half a thought'"
    )
    chat.press("New chat")

    assert chat.field.input_value() == "another"
    chat.reload()
    assert chat.field.input_value() == "another"

"""Files that go with a message: how they come in, and what is told of them."""

import pytest


@pytest.mark.parametrize("how", ["paste", "drop"])
def test_a_file_is_brought_and_sent(chat, how):
    chat.bring(how, "notes.txt", "The meeting is on Monday.")
    told = chat.page.locator(".composer .file-chip.ready").inner_text()
    chat.asked("say I have read it")

    assert told.split("\n") == ["notes.txt", "25 B"]
    assert chat.answer == "I have read it"
    assert chat.last.locator(".bubble .file-chip").inner_text() == "notes.txt"
    assert chat.page.locator(".composer .file-chip").count() == 0
    chat.reload()
    chat.until_idle()
    chat.last.locator(".bubble .file-chip", has_text="notes.txt").wait_for()


def test_an_answer_names_the_files_that_it_is_from(chat):
    chat.bring("drop", "plan.txt", "The meeting is on Monday.")
    chat.asked("say It is on Monday【1】.")

    assert chat.answer == "It is on Monday."
    assert chat.last.locator(".sources").inner_text().split("\n") == ["Sources", "plan.txt"]


def test_files_are_picked_and_one_can_be_taken_out_again(chat):
    chat.page.locator("input[type=file]").set_input_files(
        [
            {"name": "one.txt", "mimeType": "text/plain", "buffer": b"one"},
            {"name": "two.txt", "mimeType": "text/plain", "buffer": b"two"},
        ]
    )
    chat.page.locator(".composer .file-chip.ready").nth(1).wait_for()
    chat.press("Remove one.txt")

    assert chat.page.locator(".composer .file-chip bdi").all_inner_texts() == ["two.txt"]


def test_an_upload_that_fails_says_why_and_isn_t_sent(chat):
    chat.page.context.set_offline(True)
    chat.bring("paste", "lost.txt", "text")
    failed = chat.page.locator(".composer .file-chip.failed")
    chat.write("say anything")

    assert failed.locator("small").inner_text() == "The connection was lost."
    assert chat.page.get_by_role("button", name="Send message").is_disabled()
    chat.page.context.set_offline(False)
    chat.press("Remove lost.txt")
    assert chat.page.get_by_role("button", name="Send message").is_enabled()


def test_a_file_that_can_t_be_read_is_told_with_the_answer(chat):
    chat.bring("drop", "broken.pdf", "%PDF-1.7 this is no PDF", "application/pdf")
    chat.asked("say hm")

    assert chat.answer == "hm"
    assert any("broken.pdf” could not be read" in notice for notice in chat.notices)

"""Several tabs, many conversations, and what is done with them as a whole."""

from antiphon.testing.page_records import made, statuses, until_gone

UNDO_IS_OVER_MS = 9_000


def test_an_answer_that_runs_in_one_tab_is_followed_in_another(server, chat, chat_page):
    chat.asked("say one")
    other = chat_page(server, beside=chat).open(chat.conversation)
    other.until_text("one")
    chat.ask("count 100")
    other.until_text("20")
    chat.until_idle()
    other.until_idle()

    assert other.turns.count() == 2
    assert other.answer == chat.answer
    assert other.answer.endswith(" 100")


def test_what_is_shown_is_not_drawn_anew_when_another_tab_goes_on(server, chat, chat_page):
    chat.asked("count 30")
    other = chat_page(server, beside=chat).open(chat.conversation)
    other.until_text("30")
    chat.last.locator(".markdown").evaluate("each => { each.dataset.drawn = 'once'; }")
    other.asked("say two")
    chat.until_text("two")
    chat.until_idle()

    assert chat.turns.count() == 2
    assert chat.turns.first.locator(".markdown").get_attribute("data-drawn") == "once"


def test_a_stop_in_one_tab_is_seen_in_the_other(server, chat, chat_page):
    chat.ask("endless")
    chat.until_text("word3")
    other = chat_page(server, beside=chat).open(chat.conversation)
    other.until_text("word10")
    other.press("Stop answering")
    chat.until_idle()

    assert chat.notices == ["You stopped this answer."]


def test_a_deletion_can_be_taken_back_and_else_is_one(server, chat, chat_page):
    keep, lose = made(server, "Keep me, please", "Lose me, please")
    chat.page.clock.install()
    chat.reload()
    other = chat_page(server, beside=chat).open()
    for title in ("Keep me", "Lose me"):
        chat.choose(title, "Delete")
        chat.until_listed(title, is_there=False)
        other.until_listed(title, is_there=False)
    chat.page.locator(".toast", has_text="Keep me").get_by_role("button", name="Undo").click()
    chat.until_listed("Keep me")
    other.until_listed("Keep me")
    with chat.page.expect_response(is_deletion) as deleted:
        chat.page.clock.fast_forward(UNDO_IS_OVER_MS)
    deleted.value.finished()

    assert chat.page.locator(".toast").count() == 0
    assert statuses(server, [keep, lose]) == [200, 404]


def test_a_page_that_is_closed_deletes_what_was_to_be_deleted(server, chat):
    [lose] = made(server, "Lose me early")
    chat.reload()
    chat.choose("Lose me early", "Delete")
    chat.until_listed("Lose me early", is_there=False)
    chat.page.close()

    until_gone(server, lose)


def test_a_conversation_is_renamed_and_archived_and_found(server, chat, chat_page):
    made(server, "Plain name")
    chat.reload()
    other = chat_page(server, beside=chat).open()
    chat.choose("Plain name", "Rename")
    chat.page.get_by_role("textbox", name="New title").fill("Quince jelly")
    chat.page.keyboard.press("Enter")
    chat.until_listed("Quince jelly")
    other.until_listed("Quince jelly")
    chat.choose("Quince jelly", "Archive")
    chat.until_listed("Quince jelly", is_there=False)
    other.until_listed("Quince jelly", is_there=False)

    chat.press("Archive")
    chat.until_listed("Quince jelly")
    chat.choose("Quince jelly", "Bring back")
    chat.press("Back to chats")
    chat.page.get_by_role("searchbox", name="Search conversations").fill("quince")
    chat.page.wait_for_function("() => document.querySelectorAll('.list a').length === 1")

    assert chat.listed == ["Quince jelly"]


def test_a_new_title_is_written_to_its_end_whatever_comes_meanwhile(server, chat):
    made(server, "Half a name")
    chat.reload()
    entry = chat.entry("Half a name")
    entry.hover()
    entry.get_by_role("button").click()
    another_comes(server, chat, "First guest")
    chat.page.get_by_role("menuitem", name="Rename").click()
    field = chat.page.get_by_role("textbox", name="New title")
    field.fill("A whole")
    another_comes(server, chat, "Second guest", is_shown=False)
    field.press_sequentially(" name")
    chat.page.keyboard.press("Enter")

    chat.until_listed("A whole name")
    chat.until_listed("Second guest")


def another_comes(server, chat, title: str, *, is_shown: bool = True) -> None:
    """A conversation, of which the page is told as another tab would tell it."""
    made(server, title)
    with chat.page.expect_response("**/v1/conversations?**") as listed:
        chat.page.evaluate("() => new BroadcastChannel('antiphon').postMessage({ kind: 'list' })")
    listed.value.finished()
    if is_shown:
        chat.until_listed(title)


def test_deleting_a_conversation_deletes_its_versions(server, chat):
    chat.page.clock.install()
    chat.reload()
    chat.asked("say doomed")
    first = chat.conversation
    chat.press("Regenerate")
    chat.page.locator(".versions", has_text="2/2").wait_for()
    chat.until_idle()
    second = chat.conversation
    chat.choose(second, "Delete")
    chat.page.locator(".toast").wait_for()
    chat.page.clock.fast_forward(UNDO_IS_OVER_MS)

    for id in (first, second):
        until_gone(server, id)


def test_a_draft_is_seen_in_the_other_tab(server, chat, chat_page):
    other = chat_page(server, beside=chat).open()
    other.page.evaluate("() => document.activeElement.blur()")
    chat.write("from here")
    other.page.wait_for_function(
        "() => document.querySelector('.composer textarea').value === 'from here'"
    )


def is_deletion(response) -> bool:
    return response.request.method == "DELETE"

"""Several tabs, many conversations, and what is done with them as a whole."""

import httpx2


def made(server, *names: str) -> list[str]:
    """Conversations with these titles."""
    with httpx2.Client(base_url=server.base_url) as client:
        return [client.post("conversations", json={"title": name}).json()["id"] for name in names]


def menu(chat, title: str, choice: str) -> None:
    entry = chat.page.locator(".list li", has_text=title).first
    entry.hover()
    entry.get_by_role("button").click()
    chat.page.get_by_role("menuitem", name=choice).click()


def gone(chat, title: str) -> None:
    chat.page.locator(".list a", has_text=title).first.wait_for(state="detached")


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
    chat.reload()
    other = chat_page(server, beside=chat).open()
    for title in ("Keep me", "Lose me"):
        menu(chat, title, "Delete")
        gone(chat, title)
        gone(other, title)
    chat.page.locator(".toast", has_text="Keep me").get_by_role("button", name="Undo").click()
    chat.page.locator(".list a", has_text="Keep me").wait_for()
    other.page.locator(".list a", has_text="Keep me").wait_for()
    chat.page.locator(".toast", has_text="Lose me").wait_for(state="detached")
    chat.page.wait_for_timeout(600)

    statuses = [
        httpx2.get(f"{server.base_url}/conversations/{id}").status_code for id in (keep, lose)
    ]
    assert statuses == [200, 404]


def test_a_page_that_is_closed_deletes_what_was_to_be_deleted(server, chat, chat_page):
    [lose] = made(server, "Lose me early")
    chat.reload()
    menu(chat, "Lose me early", "Delete")
    gone(chat, "Lose me early")
    chat.page.close()
    other = chat_page(server).open()

    other.page.wait_for_timeout(500)
    assert httpx2.get(f"{server.base_url}/conversations/{lose}").status_code == 404


def test_a_conversation_is_renamed_and_archived_and_found(server, chat, chat_page):
    made(server, "Plain name")
    chat.reload()
    other = chat_page(server, beside=chat).open()
    menu(chat, "Plain name", "Rename")
    chat.page.get_by_role("textbox", name="New title").fill("Quince jelly")
    chat.page.keyboard.press("Enter")
    chat.page.locator(".list a", has_text="Quince jelly").wait_for()
    other.page.locator(".list a", has_text="Quince jelly").wait_for()
    menu(chat, "Quince jelly", "Archive")
    gone(chat, "Quince jelly")
    gone(other, "Quince jelly")

    chat.press("Archive")
    chat.page.locator(".list a", has_text="Quince jelly").wait_for()
    menu(chat, "Quince jelly", "Bring back")
    chat.press("Back to chats")
    chat.page.get_by_role("searchbox", name="Search conversations").fill("quince")
    chat.page.wait_for_function("() => document.querySelectorAll('.list a').length === 1")

    assert chat.listed == ["Quince jelly"]


def test_deleting_a_conversation_deletes_its_versions(server, chat):
    chat.asked("say doomed")
    first = chat.conversation
    chat.press("Regenerate")
    chat.page.locator(".versions", has_text="2/2").wait_for()
    chat.until_idle()
    second = chat.conversation
    chat.page.locator(f'.list a[href="/c/{second}"]').wait_for()
    entry = chat.page.locator(".list li", has=chat.page.locator(f'a[href="/c/{second}"]'))
    entry.hover()
    entry.get_by_role("button").click()
    chat.page.get_by_role("menuitem", name="Delete").click()
    chat.page.locator(".toast").wait_for()
    chat.page.locator(".toast").wait_for(state="detached")
    chat.page.wait_for_timeout(800)

    for id in (first, second):
        assert httpx2.get(f"{server.base_url}/conversations/{id}").status_code == 404


def test_a_draft_is_seen_in_the_other_tab(server, chat, chat_page):
    other = chat_page(server, beside=chat).open()
    other.page.evaluate("() => document.activeElement.blur()")
    chat.write("from here")
    other.page.wait_for_function(
        "() => document.querySelector('.composer textarea').value === 'from here'"
    )

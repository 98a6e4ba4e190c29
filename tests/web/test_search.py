"""Finding a conversation again: by its title, and by what was said in it."""

import httpx2

from antiphon.testing.browsers import PHONE

AT_TOP = """(index) => {
  const top = document.querySelector('.thread').getBoundingClientRect().top;
  const turn = document.querySelectorAll('.turn')[index];
  return Math.abs(turn.getBoundingClientRect().top - top) < 30;
}"""


def begin(chat):
    """A conversation with a title that nothing else has to do with."""
    chat.asked("say hello")
    url = f"{chat.url}/v1/conversations/{chat.conversation}"
    httpx2.post(url, json={"title": "Greetings"}).raise_for_status()


def look_for(chat, text):
    chat.page.get_by_role("searchbox", name="Search conversations").fill(text)


def test_a_conversation_is_found_by_what_was_said_in_it_and_opened_there(chat):
    begin(chat)
    chat.asked("say The kingfisher sleeps.")
    found = chat.conversation
    for number in range(6):
        chat.asked(f"count 40{number}")
    chat.press("New chat")
    chat.asked("say something else")

    look_for(chat, "SLEEPS kingfisher")
    entry = chat.entry(found)
    entry.locator("small").wait_for()

    assert chat.page.locator(".list li").count() == 1
    assert entry.locator("small").inner_text().startswith("Answer: The kingfisher sleeps.")
    assert set(entry.locator("mark").all_inner_texts()) <= {"kingfisher", "Kingfisher", "sleeps"}
    assert chat.page.locator(".sidebar [role=status]").inner_text() == "1 chat found"
    entry.locator("a").click()
    chat.turns.nth(7).wait_for()
    assert chat.conversation == found
    chat.page.wait_for_function(AT_TOP, arg=1)


def test_titles_are_shown_before_the_server_has_answered(chat):
    chat.asked("say pelican")
    chat.until_listed("Say pelican")
    chat.page.route("**/v1/conversations/search*", lambda route: None)

    look_for(chat, "PELI")

    chat.until_listed("Say pelican")
    assert chat.page.locator(".list .hint").inner_text() == "Searching…"


def test_an_answer_that_comes_late_is_dropped(chat):
    chat.asked("say A bittern and a stork.")
    kept = []
    chat.page.route("**/search?query=bittern*", lambda route: kept.append(route))
    look_for(chat, "bittern")
    with chat.page.expect_request("**/search?query=bittern*"):
        pass
    look_for(chat, "no such words")
    nothing = chat.page.locator(".list .hint", has_text="Nothing found.")
    nothing.wait_for()

    kept[0].fulfill(json={"data": [{"id": "conv_late", "metadata": {}}], "has_more": False})
    chat.page.wait_for_timeout(200)

    assert nothing.is_visible()


def test_an_archived_conversation_is_found_and_marked(chat):
    chat.asked("say The avocet is put away.")
    id = chat.conversation
    chat.choose(id, "Archive")
    chat.until_listed(id, is_there=False)

    look_for(chat, "avocet")
    chat.until_listed(id)

    assert chat.entry(id).locator(".tag").inner_text() == "Archived"
    look_for(chat, "")
    chat.until_listed(id, is_there=False)


def test_a_search_that_has_not_looked_at_everything_says_so_and_goes_on(chat):
    chat.asked("say The dunlin.")
    id = chat.conversation
    chat.page.route(
        "**/search?query=dunlin&limit=*",
        lambda route: (
            route.continue_()
            if "after=" in route.request.url
            else route.fulfill(json={"data": [], "last_id": "", "has_more": True})
        ),
    )

    look_for(chat, "dunlin")
    chat.page.locator(".list .hint", has_text="Nothing found in the newest chats.").wait_for()
    chat.page.unroute("**/search?query=dunlin&limit=*")
    chat.press("Search older chats")

    chat.until_listed(id)


def test_what_was_found_is_shown_as_text(chat):
    begin(chat)
    chat.asked("say <img src=x onerror=window.hacked=1> in a grebe")

    look_for(chat, "grebe")
    excerpt = chat.entry(chat.conversation).locator("small")
    excerpt.wait_for()

    assert "<img src=x" in excerpt.inner_text()
    assert chat.page.locator(".list img").count() == 0
    assert chat.page.evaluate("window.hacked") is None


def test_a_blocked_message_is_not_found(chat):
    begin(chat)
    chat.asked("the blue heron has a nestbox")

    look_for(chat, "nestbox")

    chat.page.locator(".list .hint", has_text="Nothing found.").wait_for()


def test_on_a_phone_what_was_found_is_opened_over_the_list(chat_page, server):
    chat = chat_page(server, viewport=PHONE).open()
    begin(chat)
    chat.asked("say The godwit is here.")
    id = chat.conversation
    chat.press("Conversations")
    look_for(chat, "godwit")
    chat.entry(id).locator("small").wait_for()
    chat.entry(id).locator("a").click()

    chat.page.wait_for_function("() => document.body.dataset.list === 'closed'")

"""What the page says of a server that can't do, or won't do, all that was asked."""

import contextlib
from pathlib import Path

import pytest

from antiphon.testing.page_script import script
from antiphon.testing.page_server import page_server, page_settings, scripted_replica
from antiphon.testing.process import running_server
from antiphon.testing.tenants import antiphon


def test_who_waits_is_told_why(chat_page, tmp_path):
    with page_server(tmp_path, script, slots=1, ANTIPHON_POLICY_ENABLED="false") as server:
        first = chat_page(server).open()
        first.ask("endless")
        first.until_text("word2")
        second = chat_page(server).open()
        second.ask("count 3")
        second.last.get_by_text("Waiting: all places are taken by other answers").wait_for()
        first.press("Stop answering")
        second.until_idle()

        assert second.answer == "1 2 3"
        assert second.notices == []


def test_a_blocked_message_says_so_and_can_be_written_anew(chat):
    chat.asked("tell me of the blue heron")

    assert chat.answer == ""
    assert chat.last.locator(".refusal").inner_text() == "I can't help with that."
    assert chat.notices == ["Blocked by the server's rules."]
    chat.press("Edit message")
    assert chat.page.get_by_role("textbox", name="Edit your message").is_visible()


def test_an_answer_that_is_cut_by_the_rules_says_so(chat):
    chat.asked("heron")

    assert "green heron" not in chat.answer
    assert chat.answer.startswith("There is a lake")
    assert chat.notices == ["The rest of this answer was blocked by the server's rules."]


def test_another_model_says_that_it_answers_and_why(chat_page, tmp_path):
    with contextlib.ExitStack() as stack:
        replicas = [scripted_replica(script), scripted_replica(script)]
        config = stack.enter_context(page_settings(tmp_path, replicas[:1], slots=1))
        other = tmp_path / "small"
        other.mkdir()
        small = stack.enter_context(page_settings(other, replicas[1:]))
        upstream = small.read_text().partition("[upstream]")[2].partition("[generation]")[0]
        text = config.read_text().replace("[engine]", 'smaller = "small"\n[engine]', 1)
        config.write_text(
            f"{text}[queue]\nmax_requests = 1\n"
            '[pools.second]\nmodel = "small"\nmodel_name = "small"\n'
            f'[pools.second.engine]\nkind = "upstream"\n[pools.second.upstream]{upstream}'
        )
        server = stack.enter_context(running_server(config, ANTIPHON_POLICY_ENABLED="false"))
        pages = [chat_page(server).open() for _ in range(3)]
        for page in pages[:2]:
            page.ask("endless")
        pages[0].until_text("word2")
        pages[1].last.get_by_text("Waiting: all places are taken").wait_for()
        pages[2].asked("count 3")

        assert pages[2].answer == "1 2 3"
        assert pages[2].notices == ["High demand, using a faster model: small."]


def test_context_that_was_left_out_is_told(chat_page, tmp_path):
    with page_settings(tmp_path, [scripted_replica(script, step_s=0.001)]) as config:
        more = "[context]\nsummaries = false\ntitles = false\n"
        config.write_text(config.read_text().replace("window = 4096", "window = 300") + more)
        with running_server(config, ANTIPHON_POLICY_ENABLED="false") as server:
            chat = chat_page(server).open()
            for number in range(6):
                chat.asked(f"say {number} " + "some words to remember for later " * 5)

            told = chat.notices
    assert any("not shown to the model at all" in notice for notice in told), told
    assert any("This conversation is long" in notice for notice in told)


@pytest.fixture
def guarded(tmp_path: Path):
    """A server that asks for keys, with a plan of three requests a minute."""
    environment = {
        "ANTIPHON_DATA_DIR": str(tmp_path),
        "ANTIPHON_DATABASE_URL": f"sqlite:///{tmp_path}/antiphon.db",
        "ANTIPHON_POLICY_ENABLED": "false",
    }
    with page_settings(tmp_path, [scripted_replica(script)]) as config:
        config.write_text(config.read_text() + "[plans.small]\nrequests_per_minute = 3\n")
        with running_server(config, **environment) as server:
            options = ("--config", str(config))
            key = antiphon(*options, "keys", "create", "--user", "ada", **environment).strip()
            antiphon(*options, "users", "set-plan", "ada", "small", **environment)
            yield server, key


def test_a_server_with_keys_asks_for_one_and_tells_what_is_left(guarded, chat_page):
    server, key = guarded
    chat = chat_page(server)
    chat.page.goto(chat.url)
    field = chat.page.get_by_role("textbox", name="API key")
    field.fill("sk-wrong")
    chat.press("Continue")
    chat.page.get_by_text("The server doesn't know this key.").wait_for()
    field.fill(key)
    chat.press("Continue")
    chat.page.wait_for_selector("html[data-ready]")
    for _ in range(3):
        chat.asked("count 2")
    last = chat.notices
    chat.ask("count 2")
    chat.last.locator(".notice.warning").wait_for()

    assert chat.answer == ""
    assert any(notice.startswith("No requests left; all are back in ") for notice in last), last
    assert "3" in chat.notices[0]
    assert chat.field.input_value() == "count 2"
    kept = chat.page.evaluate(
        "() => [sessionStorage, localStorage].map(s => s.length && 'antiphon.key' in s)"
    )
    assert kept == [True, False]


def test_a_server_that_is_away_is_waited_for(server, chat_page):
    chat = chat_page(server)
    chat.page.route("**/v1/**", lambda route: route.abort())
    chat.page.goto(chat.url)
    away = chat.page.locator(".banner", has_text="The server can't be reached.")
    away.wait_for()
    chat.page.unroute("**/v1/**")
    chat.press("Try now")
    chat.page.wait_for_selector("html[data-ready]")

    assert not away.is_visible()
    assert chat.asked("count 2") == "1 2"

"""The page in front of the real model: what it says of limits, of high demand, of a conversation
that has outgrown the window, and of rules that cut an answer short."""

import contextlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from antiphon.testing.browsers import ChatPage
from antiphon.testing.page_records import items, responses, until_summarised
from antiphon.testing.page_script import dictated
from antiphon.testing.process import ServerProcess, running_server
from antiphon.testing.tenants import antiphon

pytestmark = pytest.mark.engine

QUESTION = "What is the capital of France? Answer in one sentence."
STORY = "Tell me a very long story about a whale."
SHORT = {"temperature": 0, "max_output_tokens": 16}
# A minute, and what a busy machine adds to it.
LONGEST_MINUTE_MS = 120_000
REFUSED = "article.turn:last-child .notice.warning > span"
PLANS = """\
[engine]
slots = 2
[plans.minute]
requests_per_minute = 2
[plans.day]
tokens_per_day = 120
[plans.one]
concurrent = 1
"""
POOLS = """\
model_name = "large"
smaller = "small"
[engine]
slots = 1
threads = 1
kv_cache_mib = 64
[queue]
max_requests = 1
deadline_s = 3600
[generation]
default_max_tokens = 2500
[scheduling]
interactive_objective_s = 0
[pools.second]
model = "smollm2-135m-instruct"
model_name = "small"
[pools.second.engine]
slots = 2
threads = 1
kv_cache_mib = 64
"""
"""The same model twice. Whoever comes while one runs and one waits is too much for the first."""
NARROW = """\
[engine]
slots = 2
kv_cache_mib = 6
[context]
titles = false
summaries = false
"""
"""So little memory that the window is some five hundred tokens."""
SUMMED_UP = """\
[engine]
slots = 2
[context]
titles = false
history_share = 0.05
keep_share = 0.3
summary_tokens = 96
[generation]
default_max_tokens = 24
"""
"""So that a conversation of a few turns is a long one, and summarised."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A server that asks for keys, and a key for a user of each plan."""

    server: ServerProcess
    keys: dict[str, str]


@pytest.fixture(scope="module")
def guarded(
    browser, model_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    config = folder / "antiphon.toml"
    config.write_text(PLANS)
    options = ("--config", str(config))
    database = {"ANTIPHON_DATABASE_URL": f"sqlite:///{folder}/antiphon.db"}
    keys = {}
    for plan in ("minute", "day", "one"):
        keys[plan] = antiphon(*options, "keys", "create", "--user", plan, **database).strip()
        antiphon(*options, "users", "set-plan", plan, plan, **database)
    with running_server(config, **database) as server:
        yield Guarded(server, keys)


@pytest.fixture(scope="module")
def pools(
    browser, model_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    with served(tmp_path_factory.mktemp("pools"), POOLS) as server:
        yield server


@contextlib.contextmanager
def served(folder: Path, settings: str) -> Iterator[ServerProcess]:
    config = folder / "antiphon.toml"
    config.write_text(settings)
    with running_server(config) as server:
        yield server


def test_a_limit_is_told_with_the_time_it_returns_and_then_it_has(guarded, chat_page):
    key = guarded.keys["minute"]
    chat = chat_page(guarded.server).asking(**SHORT).enter(key)
    for _ in range(2):
        chat.asked(QUESTION)
    left = chat.notices
    with chat.page.expect_response("**/v1/responses") as refused:
        chat.ask(QUESTION)
    chat.page.wait_for_selector(REFUSED)
    [told], before, draft = chat.notices, chat.turns.nth(1).inner_text(), chat.field.input_value()
    again = chat.last.get_by_role("button", name="Try again")
    again.focus()
    chat.page.wait_for_function(
        "([place, text]) => document.querySelector(place).textContent !== text",
        arg=[REFUSED, told],
    )
    is_there_still = again.evaluate("each => each === document.activeElement")
    chat.last.get_by_text("You can send it again now.").wait_for(timeout=LONGEST_MINUTE_MS)
    chat.page.keyboard.press("Enter")
    chat.last.locator(".actions .model").wait_for()
    chat.until_idle()
    focused = chat.page.evaluate("() => document.activeElement.ariaLabel")

    assert any(re.fullmatch(r"No requests left; all are back in \d+ seconds\.", e) for e in left)
    found = re.fullmatch(
        r"Rate limit reached: 2 requests per minute\. You can send it again in (\d+) seconds?\.",
        told,
    )
    advice_ms = int(refused.value.headers["retry-after-ms"])
    assert refused.value.status == 429
    assert found is not None
    assert 0 < int(found[1]) <= math.ceil(advice_ms / 1000) <= 61
    assert "No requests left" not in before
    assert draft == QUESTION
    assert is_there_still
    assert focused == "Message"
    assert chat.answer
    assert chat.field.input_value() == ""
    assert len(responses(guarded.server, chat.conversation, key)) == 3
    assert len(items(guarded.server, chat.conversation, key)) == 6


def test_a_limit_of_a_day_is_told_in_hours(guarded, chat_page):
    chat = chat_page(guarded.server).asking(**SHORT).enter(guarded.keys["day"])
    refused = chat.page.locator(REFUSED)
    for _ in range(4):
        chat.press("New chat")
        chat.ask(QUESTION)
        chat.page.wait_for_selector(f"{REFUSED}, .actions .model:not(:empty)")
        if refused.is_visible():
            break

    assert refused.inner_text() == (
        "Rate limit reached: 120 tokens per day. You can send it again in 24 hours."
    )


def test_what_is_more_than_a_limit_by_itself_is_to_be_shortened(guarded, chat_page):
    chat = chat_page(guarded.server).asking(**SHORT).enter(guarded.keys["day"])
    chat.ask(f"{QUESTION} " * 20)
    refused = chat.page.locator(REFUSED)
    refused.wait_for()

    assert refused.inner_text().startswith("Request too large: the limit is 120 tokens per day.")
    assert chat.last.locator(".notice button").inner_text() == "Edit message"


def test_a_second_answer_where_one_is_allowed_waits_for_the_first(guarded, chat_page):
    key = guarded.keys["one"]
    first = chat_page(guarded.server).asking(temperature=0).enter(key)
    first.ask(STORY)
    first.until_longer(0)
    second = chat_page(guarded.server).asking(**SHORT).enter(key)
    second.ask(QUESTION)
    second.page.wait_for_selector(REFUSED)
    told = second.notices
    first.press("Stop answering")
    first.until_idle()
    second.press("Try again")
    second.page.locator(".actions .model").wait_for()
    second.until_idle()

    assert told[0].startswith("Rate limit reached: 1 concurrent")
    assert second.answer


def test_under_high_demand_a_faster_model_answers_and_the_page_says_so(pools, chat_page):
    first, second, third = (chat_page(pools).open() for _ in range(3))
    first.asking(temperature=0).ask(STORY)
    first.until_longer(0)
    second.asking(**SHORT).ask(QUESTION)
    second.last.get_by_text("Waiting: all places are taken by other answers").wait_for()
    third.asking(temperature=0).ask(STORY)
    third.until_longer(40)
    during = third.notices
    third.press("Stop answering")
    third.until_idle()
    first.press("Stop answering")
    second.until_idle()

    told = "High demand, using a faster model: small."
    assert during == [told]
    assert third.notices == [told, "You stopped this answer."]
    assert third.last.locator(".actions .model").inner_text() == "small"
    assert second.last.locator(".actions .model").inner_text() == "large"
    assert not any("demand" in each for each in second.notices)
    [response] = responses(pools, third.conversation)
    assert response["model"] == "small"


def test_what_the_model_was_not_shown_of_a_long_conversation_is_told(
    browser, model_dir, chat_page, tmp_path
):
    with served(tmp_path, NARROW) as server:
        chat = chat_page(server).asking(**SHORT).open()
        told = grown(chat, "not shown to the model at all")
        [run] = [
            each
            for each in responses(server, chat.conversation)[0]["context"]["runs"]
            if each["fate"] == "dropped"
        ]

    count = f"{run['items']} earlier messages" if run["items"] > 1 else "1 earlier message"
    assert told == [f"This conversation is long: {count} not shown to the model at all."]


def test_what_the_model_was_shown_as_a_summary_is_told(browser, model_dir, chat_page, tmp_path):
    with served(tmp_path, SUMMED_UP) as server:
        chat = chat_page(server).asking(**SHORT).open()
        for number in range(4):
            chat.asked(remark(number))
        until_summarised(server)
        told = grown(chat, "shown to the model as a summary")
        runs = responses(server, chat.conversation)[0]["context"]["runs"]

    assert any(each["fate"] == "summarised" for each in runs)
    assert re.search(r"\d+ earlier messages shown to the model as a summary", told[0])


def test_an_answer_that_is_cut_by_the_rules_says_so(real, chat_page):
    chat = chat_page(real).open()
    text = "There is a lake, and beside it stands a green heron, and a boat."
    chat.asking(**dictated(text)).asked("What is there?")

    assert "There is a lake" in chat.answer
    assert "green heron" not in chat.answer
    assert chat.notices == ["The rest of this answer was blocked by the server's rules."]


def remark(number: int) -> str:
    harbour = "In the harbour of town {0} lay {1} ships and {2} boats, and the sea was calm. "
    return (harbour * 3).format(number, number * 7, number * 13)


def grown(chat: ChatPage, told: str) -> list[str]:
    """Go on with a conversation until something is told of its length: that."""
    for number in range(12):
        chat.asked(remark(number))
        found = [each for each in chat.notices if "This conversation is long" in each]
        if any(told in each for each in found):
            return found
    raise AssertionError(f"nobody has said: {told}")

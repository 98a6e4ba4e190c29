"""The operations page in a browser: kept fresh by its script, the same without, for everybody."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest
from playwright.sync_api import Browser, Page

from antiphon.testing.accessibility import violations
from antiphon.testing.browsers import DESKTOP, PHONE
from antiphon.testing.scripted_server import ScriptedServer, scripted_server

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def watched(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    with scripted_server(tmp_path_factory.mktemp("data")) as server:
        ask(server, "req-first")
        yield server


def ask(server: ScriptedServer, id: str) -> None:
    body = {"model": server.model, "input": "hello", "max_output_tokens": 16}
    answer = httpx2.post(
        f"{server.api}/v1/responses", json=body, headers={"x-request-id": id}, timeout=60
    )
    assert answer.status_code == 200, answer.text


@contextmanager
def opened(browser: Browser, url: str, *, stopped: bool = False, **options) -> Iterator[Page]:
    """A page that complains of nothing: no error, and nothing that its policy forbids. With
    `stopped`, its time is the test's."""
    problems: list[str] = []
    context = browser.new_context(**{"viewport": DESKTOP, **options})
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: problems.append(message.text) if message.type == "error" else None,
    )
    if stopped:
        page.clock.install()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(url)
    yield page
    context.close()
    assert problems == []
    host = url.split("/")[2]
    assert all(each.startswith((f"http://{host}/", "data:")) for each in requested), requested


def test_it_shows_what_happens_without_being_loaded_again(browser, watched):
    with opened(browser, f"{watched.ops}/ops") as page:
        page.evaluate("window.untouched = true")
        ask(watched, "req-second")
        page.get_by_role("link", name="req-second").wait_for(timeout=60_000)

        assert page.evaluate("window.untouched")


def test_where_somebody_is_stays_when_things_change_around_it(browser, watched):
    with opened(browser, f"{watched.ops}/ops") as page:
        link = page.get_by_role("link", name="req-first")
        link.focus()
        held = link.element_handle()
        ask(watched, "req-third")
        page.get_by_role("link", name="req-third").wait_for(timeout=60_000)

        assert page.evaluate("document.activeElement.textContent") == "req-first"
        assert page.evaluate("(link) => link === document.activeElement", held)


def test_a_pause_is_kept_and_ended(browser, watched):
    with opened(browser, f"{watched.ops}/ops", stopped=True) as page:
        button = page.get_by_role("button", name="Pause")
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        ask(watched, "req-fourth")
        page.clock.run_for(20_000)
        assert page.get_by_role("link", name="req-fourth").count() == 0

        button.click()
        page.clock.run_for(2_500)
        page.get_by_role("link", name="req-fourth").wait_for(timeout=60_000)


def test_a_request_is_followed_while_it_runs(browser, watched):
    watched.words = lambda admit: itertools.repeat("word ", 2000)
    with (
        httpx2.stream(
            "POST",
            f"{watched.api}/v1/responses",
            json={"model": watched.model, "input": "go on", "stream": True},
            headers={"x-request-id": "req-long"},
            timeout=60,
        ) as answer,
        opened(browser, f"{watched.ops}/ops/requests/req-long") as page,
    ):
        next(answer.iter_raw())
        page.get_by_text("writing", exact=True).first.wait_for(timeout=60_000)
        answer.close()
        page.get_by_text("abort: TurnInterrupted").first.wait_for(timeout=60_000)

        assert page.get_by_role("rowheader", name="slot free").count() == 1
        assert page.get_by_text("disconnect").count() == 1
    watched.words = lambda admit: ("one", " two")


def test_without_scripts_it_is_the_same_page(browser, watched):
    with opened(browser, f"{watched.ops}/ops", java_script_enabled=False) as page:
        page.get_by_role("link", name="req-first").wait_for()
        assert page.get_by_role("button").count() == 0

        page.get_by_role("link", name="req-first").click()
        page.get_by_role("heading", name="Where the time went").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing(browser, watched, axe, scheme, viewport):
    found = {}
    for path in ("/ops", "/ops/requests/req-first", "/ops/prompts"):
        with opened(
            browser,
            watched.ops + path,
            viewport=viewport,
            color_scheme=scheme,
            bypass_csp=True,  # axe isn't of this server
        ) as page:
            found[path] = violations(page, axe)

    assert found == {path: [] for path in found}


def test_it_says_when_nobody_answers_any_more(browser, watched):
    with opened(browser, f"{watched.ops}/ops") as page:
        away = page.get_by_text("this page shows how things were")
        page.route("**/ops", lambda route: route.fulfill(status=200, body="<p>not this page"))
        away.wait_for(timeout=60_000)
        page.unroute("**/ops")
        away.wait_for(state="hidden", timeout=60_000)

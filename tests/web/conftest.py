"""A browser, and two servers, one whose model is a script and one with the real model, for all
tests of the chat page."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from antiphon.testing.accessibility import axe_script
from antiphon.testing.browsers import DESKTOP, ChatPage, chromium, running_browser
from antiphon.testing.page_script import script
from antiphon.testing.page_server import page_server
from antiphon.testing.process import ServerProcess, running_server

RULES = """\
format = 1
[refusal]
default = "I can't help with that."
[[rules]]
id = "heron-asked"
stages = ["input"]
match = { kind = "phrases", phrases = ["blue heron"] }
action = "block"
[[rules]]
id = "heron-told"
stages = ["output"]
match = { kind = "phrases", phrases = ["green heron"] }
action = "block"
"""
REAL = """\
[engine]
slots = 2
[generation]
default_max_tokens = 3000
[policy]
rules = "{rules}"
[aliases.whoever]
models = ["smollm2-135m-instruct"]
"""
"""Two slots are soon taken; and a story of so many tokens doesn't end before a test has had enough
of it."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("no Chromium on this machine: on Debian, apt install chromium")
    with running_browser(path) as browser:
        yield browser


@pytest.fixture(scope="session")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("page")
    more = f'[policy]\nrules = "{rules_in(folder)}"\n'
    with page_server(folder, script, more=more) as process:
        yield process


@pytest.fixture(scope="session")
def real(
    browser: Browser, model_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("real")
    config = folder / "antiphon.toml"
    config.write_text(REAL.format(rules=rules_in(folder)))
    with running_server(config) as process:
        yield process


def rules_in(folder: Path) -> Path:
    path = folder / "rules.toml"
    path.write_text(RULES)
    return path


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_script(Path(__file__).parent / "node", tmp_path_factory.mktemp("axe"))


Opener = Callable[..., ChatPage]


@pytest.fixture
def chat_page(browser: Browser) -> Iterator[Opener]:
    """Opens tabs, each in a browser of its own unless it is to share one; and sees to it that
    none of them had anything to complain of."""
    contexts, pages = [], []

    def opened(server: ServerProcess, beside: ChatPage | None = None, **options: Any) -> ChatPage:
        if beside is None:
            contexts.append(browser.new_context(**{"viewport": DESKTOP, **options}))
            context = contexts[-1]
        else:
            context = beside.page.context
        pages.append(ChatPage(context.new_page(), f"http://{server.api[0]}:{server.api[1]}"))
        return pages[-1]

    yield opened
    problems = [problem for page in pages for problem in page.problems]
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def chat(server: ServerProcess, chat_page: Opener) -> ChatPage:
    """A tab on a page that is ready."""
    return chat_page(server).open()


@pytest.fixture(scope="session")
def place() -> Path:
    """Where the page's own files are."""
    return Path(__file__).resolve().parents[2] / "antiphon/http/web"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs a browser runs with `make page`: how fast a page is on a busy machine is no
    reason to refuse a commit."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.heavy)

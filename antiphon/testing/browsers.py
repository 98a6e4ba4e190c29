"""A browser on the chat page, as people use it: by what is written on things, and by keys."""

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Locator, Page, ViewportSize, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = ("--no-sandbox", "--disable-background-networking")
_PATIENCE_MS = 20_000.0
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}


def chromium() -> str | None:
    """Where it is, if this machine has it."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextlib.contextmanager
def running_browser(path: str) -> Iterator[Browser]:
    """A headless Chromium. Playwright runs an event loop of asyncio's own between two calls, and
    trio-asyncio, once it is imported, would give it one of its kind."""
    asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=_OPTIONS)
            try:
                yield browser
            finally:
                browser.close()
    finally:
        asyncio.set_event_loop_policy(None)


@dataclass(eq=False)
class ChatPage:
    """One tab. `problems` is what the browser complained of; a page that works gives it no
    reason to."""

    page: Page
    url: str
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(_PATIENCE_MS)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))

    def _note(self, message: Any) -> None:
        # That a request was refused, or nobody answered, is the page's to tell.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def open(self, conversation: str = "") -> "ChatPage":
        self.page.goto(f"{self.url}/c/{conversation}" if conversation else f"{self.url}/")
        self.page.wait_for_selector("html[data-ready]")
        return self

    def reload(self) -> None:
        self.page.reload()
        self.page.wait_for_selector("html[data-ready]")

    def write(self, text: str) -> None:
        self.field.fill(text)

    def ask(self, text: str) -> None:
        """Send it, and don't wait."""
        self.write(text)
        self.page.keyboard.press("Enter")

    def asked(self, text: str) -> str:
        """Send it, and wait for the answer."""
        before = self.turns.count()
        self.ask(text)
        self.turns.nth(before).wait_for()
        self.until_idle()
        return self.answer

    def until_idle(self) -> None:
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('.reply')].every(r => r.ariaBusy === 'false')"
        )
        self.page.wait_for_selector(".turn:last-child .markdown.whole", state="attached")

    def until_text(self, text: str) -> None:
        """Until the last answer has it."""
        self.last.locator(".markdown", has_text=text).wait_for()

    def press(self, name: str) -> None:
        """A button, by what it says to those who can't see it."""
        self.page.get_by_role("button", name=name, exact=True).last.click()

    @property
    def field(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def turns(self) -> Locator:
        return self.page.locator(".turn")

    @property
    def last(self) -> Locator:
        return self.turns.last

    @property
    def answer(self) -> str:
        """The last one, as it reads."""
        return self.last.locator(".markdown").inner_text()

    @property
    def notices(self) -> list[str]:
        return self.last.locator(".notice > span").all_inner_texts()

    @property
    def listed(self) -> list[str]:
        """Titles of the conversations."""
        return self.page.locator(".list li > a").all_inner_texts()

    @property
    def conversation(self) -> str:
        """The id of the one that is open."""
        return str(self.page.evaluate("() => location.pathname.split('/c/')[1] ?? ''"))

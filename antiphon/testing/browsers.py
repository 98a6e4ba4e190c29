"""A browser on the chat page, as people use it: by what is written on things, and by keys."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Locator, Page, Route, ViewportSize, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = ("--no-sandbox", "--disable-background-networking")
# How long something takes says how busy the machine is: this only has to tell late from never.
_PATIENCE_MS = 60_000.0
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}

_BRING = """(target, { how, name, type, bytes }) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name, { type }));
  if (how === 'paste') {
    const paste = new ClipboardEvent('paste', { clipboardData: data, cancelable: true });
    target.dispatchEvent(paste);
  } else {
    for (const kind of ['dragover', 'drop']) {
      const options = { dataTransfer: data, cancelable: true, bubbles: true };
      document.body.dispatchEvent(new DragEvent(kind, options));
    }
  }
}"""
_PASTE_TEXT = """(field, text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', text);
  const paste = new ClipboardEvent('paste', { clipboardData, cancelable: true });
  // A browser puts in by itself what nobody else has taken.
  if (field.dispatchEvent(paste)) document.execCommand('insertText', false, text);
}"""
_WATCH_FRAMES = """() => {
  window.longest = 0;
  let last = performance.now();
  const look = (now) => {
    window.longest = Math.max(window.longest, now - last);
    last = now;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
_LISTEN = """() => {
  window.heard = [];
  for (const each of document.querySelectorAll('[aria-live], [role=status], [role=alert]')) {
    new MutationObserver(() => window.heard.push(each.textContent))
      .observe(each, { childList: true, characterData: true, subtree: true });
  }
}"""
_LENGTH = """(length) => {
  const last = [...document.querySelectorAll('.turn .markdown')].at(-1);
  return last && last.textContent.length > length;
}"""
_ALIVE = """(place) => {
  const elements = 'script, style, iframe, object, embed, img, svg, math, form, input, base, link';
  const found = [...place.querySelectorAll(elements)].map((each) => each.localName);
  for (const each of place.querySelectorAll('*')) {
    found.push(...each.getAttributeNames().filter((name) => name.startsWith('on')));
    const link = each.getAttribute('href') ?? each.getAttribute('src');
    if (link !== null && !/^https?:/.test(link)) found.push(link);
  }
  if (window.hacked !== undefined) found.push(`hacked ${window.hacked}`);
  return found;
}"""


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

    def enter(self, key: str) -> "ChatPage":
        """Open a page that asks for a key, and give it one."""
        self.page.goto(self.url)
        self.page.get_by_role("textbox", name="API key").fill(key)
        self.press("Continue")
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

    def asking(self, **fields: Any) -> "ChatPage":
        """From now on the browser asks every question with these fields, too: how long an answer
        may be, say, or which form it has."""

        def asked(route: Route) -> None:
            body = route.request.post_data_json or {}
            route.continue_(post_data=json.dumps(body | fields))

        self.page.route("**/v1/responses", asked)
        return self

    def asked_as(self, text: str) -> str:
        """Send it, and wait until the server has taken it; which request it is there."""
        path = "/v1/responses"
        with self.page.expect_response(lambda each: each.url.endswith(path)) as found:
            self.ask(text)
        return found.value.headers["x-request-id"]

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

    def until_longer(self, length: int) -> None:
        """Until the last answer has more than that many characters."""
        self.page.wait_for_function(_LENGTH, arg=length)

    def bring(self, how: str, name: str, content: str | bytes, kind: str = "text/plain") -> None:
        """Paste a file, or drop it, and wait for what becomes of it."""
        data = content.encode() if isinstance(content, str) else content
        file = {"how": how, "name": name, "type": kind, "bytes": list(data)}
        self.field.evaluate(_BRING, file)
        self.page.locator(".composer .file-chip:is(.ready, .failed)", has_text=name).wait_for()

    def paste(self, text: str) -> None:
        """Into the message, at once."""
        self.field.focus()
        self.field.evaluate(_PASTE_TEXT, text)

    def watch_frames(self) -> None:
        """From now on `longest_frame_ms` is known."""
        self.page.evaluate(_WATCH_FRAMES)

    def listen(self) -> None:
        """From now on `heard` is what a screen reader would say by itself."""
        self.page.evaluate(_LISTEN)

    def choose(self, known: str, choice: str) -> None:
        """From the menu of a conversation in the list."""
        entry = self.entry(known)
        entry.hover()
        entry.get_by_role("button").click()
        self.page.get_by_role("menuitem", name=choice, exact=True).click()

    def until_listed(self, known: str, *, is_there: bool = True) -> None:
        self.entry(known).wait_for(state="attached" if is_there else "detached")

    def press(self, name: str) -> None:
        """A button, by what it says to those who can't see it."""
        self.page.get_by_role("button", name=name, exact=True).last.click()

    @property
    def field(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message", exact=True)

    def entry(self, known: str) -> Locator:
        """Of the list: the conversation with this id, or the newest one that is called so."""
        if known.startswith("conv_"):
            link = self.page.locator(f'a[href="/c/{known}"]')
            return self.page.locator(".list li", has=link)
        return self.page.locator(".list li", has_text=known).first

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
    def alive(self) -> list[str]:
        """What there is in the last answer that text has none of, and what came of it."""
        found: list[str] = self.last.locator(".markdown").evaluate(_ALIVE)
        return found

    @property
    def longest_frame_ms(self) -> float:
        longest: float = self.page.evaluate("() => window.longest")
        return longest

    @property
    def heard(self) -> list[str]:
        heard: list[str] = self.page.evaluate("() => window.heard")
        return heard

    @property
    def notices(self) -> list[str]:
        return self.last.locator(".notice > span").all_inner_texts()

    @property
    def listed(self) -> list[str]:
        """Titles of the conversations."""
        return self.page.locator(".list li > a > .title").all_inner_texts()

    @property
    def conversation(self) -> str:
        """The id of the one that is open."""
        return str(self.page.evaluate("() => location.pathname.split('/c/')[1] ?? ''"))

"""What the pictures of the chat page show, some conversations and one of them open; and those of
the operations page, a server that has answered a little."""

import base64
import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Page

from antiphon.testing.browsers import ChatPage
from antiphon.testing.page_server import page_server, words_of
from antiphon.testing.process import ServerProcess

SCALE = {"desktop": 1.5, "phone": 2}
_TITLES = (
    "Packing list for the Alps",
    "Rename ten thousand photos",
    "Was ist ein Antiphon?",
    "مقدمة في علم الفلك",
    "Cover letter, second try",
    "Sourdough that never rises",
)
_MODEL = "example-model"
_QUESTION = "How do I read a big CSV file in Python without filling my memory?"
_TITLE = "Reading a big CSV file"
_ANSWER = """\
Read it **row by row**: the `csv` module never holds more than one of them.

```python
import csv

with open("big.csv", newline="") as file:
    total = sum(float(row["price"]) for row in csv.DictReader(file))
```

Which way fits depends on what you do with it:

| You want to | Use | Memory |
|---|---|---|
| add things up | `csv.DictReader` | one row |
| filter and group | `pandas`, with `chunksize=` | one chunk |
| ask many questions | SQLite, imported once | a few MB |

If you need the same file every day, SQLite pays off on the second one."""


def _reply(text: str) -> Iterable[str] | None:
    return words_of(_ANSWER) if text == _QUESTION else None


@contextlib.contextmanager
def scenes(folder: Path) -> Iterator[ServerProcess]:
    """A server with some history."""
    more = "[context]\ntitles = false\n"
    with page_server(folder, _reply, step_s=0.002, name=_MODEL, more=more) as server:
        with httpx2.Client(base_url=server.base_url) as client:
            for title in reversed(_TITLES):
                client.post("conversations", json={"title": title})
        yield server


def answered(server: ServerProcess) -> str:
    """A conversation with the question and its answer; its id."""
    with httpx2.Client(base_url=server.base_url) as client:
        made = str(client.post("conversations", json={"title": _TITLE}).json()["id"])
        body = {"model": _MODEL, "input": _QUESTION, "conversation": made}
        client.post("responses", json=body).raise_for_status()
    return made


@dataclass(frozen=True, slots=True)
class Scene:
    """One tab."""

    page: Page
    server: ServerProcess

    def draw(self, path: Path) -> None:
        """What it looks like after an answer."""
        with httpx2.Client(base_url=self.server.base_url) as client:
            made = client.post("conversations", json={"title": _TITLE}).json()["id"]
            chat = ChatPage(self.page, f"http://{self.server.api[0]}:{self.server.api[1]}")
            chat.open(made)
            chat.write(_QUESTION)
            chat.press("Send message")
            chat.until_text("pays off on the second one")
            chat.until_idle()
            self.page.locator(".hljs-keyword").first.wait_for()
            self.page.evaluate("() => document.activeElement.blur()")
            path.write_bytes(self._picture())
            client.delete(f"conversations/{made}")

    def draw_operations(self, path: Path) -> None:
        """What operators see of all that."""
        self.page.goto(f"http://{self.server.ops[0]}:{self.server.ops[1]}/ops")
        self.page.locator("table").first.wait_for()
        path.write_bytes(self._picture())

    def draw_tree(self, path: Path) -> None:
        """The end of that page: the actors that it all runs in."""
        self.page.goto(f"http://{self.server.ops[0]}:{self.server.ops[1]}/ops#tree")
        tree = self.page.locator("section[aria-labelledby=tree]")
        place = tree.evaluate(
            """e => {
                const { left, top, width, height } = e.getBoundingClientRect();
                const [x, y] = [left + scrollX - 16, top + scrollY - 16];
                return { x, y, width: width + 32, height: height + 32, scale: 1 };
            }"""
        )
        path.write_bytes(self._picture(clip=place))

    def _picture(self, **options: Any) -> bytes:
        """As WebP, a third of what it would be as PNG."""
        chromium = self.page.context.new_cdp_session(self.page)
        options |= {"format": "webp", "quality": 88, "captureBeyondViewport": "clip" in options}
        return base64.b64decode(chromium.send("Page.captureScreenshot", options)["data"])

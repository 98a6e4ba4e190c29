"""`python -m bench.page`: the chat page in Chromium, while an answer of 10,000 tokens streams in.

The model is a script, so that what is measured is the page: how soon it can be used, what it
weighs, and how long the longest frame was. Each kind of text is streamed by itself.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from antiphon.testing.browsers import DESKTOP, ChatPage, chromium, running_browser
from antiphon.testing.page_server import page_settings, scripted_replica
from antiphon.testing.process import ServerProcess, running_server
from bench.figure import Figure, at_most, explains, table

_TOKENS = 10_000
_STEP_S = 0.001
_MOST_FRAME_MS = 50.0
_MOST_READY_MS = 1000.0
_MOST_BYTES = 250_000.0
_WITHIN_MS = 300_000.0
_WARM = 2

_WATCH = """() => {
  const seen = window.seen = { longest: 0, over: 0, frames: 0, task: 0, tasks: 0 };
  let last = performance.now();
  const look = (now) => {
    const took = now - last;
    last = now;
    seen.frames += 1;
    seen.longest = Math.max(seen.longest, took);
    if (took > 50) seen.over += 1;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      seen.task = Math.max(seen.task, entry.duration);
      seen.tasks += 1;
    }
  }).observe({ type: 'longtask' });
}"""

_LOADED = """() => ({
  ready: window.performance.getEntriesByName('ready')[0].startTime,
  bytes: performance.getEntriesByType('resource')
    .concat(performance.getEntriesByType('navigation'))
    .reduce((sum, entry) => sum + entry.encodedBodySize, 0),
})"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """What the browser felt of one answer."""

    longest_ms: float
    over: int
    frames: int
    task_ms: float
    characters: int


def words(kind: str) -> Iterator[str]:
    """Tokens of one kind of text, without end."""
    number = 0
    while True:
        number += 1
        match kind:
            case "prose":
                yield "\n\n" if number % 90 == 0 else f" word{number}"
            case "list":
                yield f"\n- item {number}:" if number % 12 == 0 else " word"
            case "code":
                yield (
                    "```python\n"
                    if number == 1
                    else ("\n" if number % 9 == 0 else f" x{number} = {number};")
                )
            case "table":
                row = (
                    "| a | b |\n|---|---|\n" if number == 1 else " |\n|" if number % 9 == 0 else ""
                )
                yield row or (" |" if number % 9 == 5 else f" cell{number}")
            case "paragraph":
                yield f" word{number}"


def script(text: str) -> Iterable[str] | None:
    kind, _, count = text.partition(" ")
    if not count.isdigit():
        return None  # a title is wanted
    return (word for word, _ in zip(words(kind), range(int(count)), strict=False))


def streamed(browser: Browser, server: ServerProcess, kind: str, tokens: int) -> Streamed:
    context = browser.new_context(viewport=DESKTOP)
    chat = ChatPage(context.new_page(), f"http://{server.api[0]}:{server.api[1]}").open()
    for _ in range(_WARM):
        chat.asked(f"{kind} 40")
    chat.page.evaluate(_WATCH)
    chat.page.set_default_timeout(_WITHIN_MS)
    chat.asked(f"{kind} {tokens}")
    seen: dict[str, Any] = chat.page.evaluate("() => window.seen")
    length = chat.page.evaluate(
        "() => [...document.querySelectorAll('.markdown')].at(-1).textContent.length"
    )
    context.close()
    return Streamed(
        longest_ms=seen["longest"],
        over=seen["over"],
        frames=seen["frames"],
        task_ms=seen["task"],
        characters=length,
    )


def loaded(browser: Browser, server: ServerProcess) -> tuple[float, float]:
    """Until it can be used, in ms, and what came over the wire for it; nothing is cached."""
    context = browser.new_context(viewport=DESKTOP)
    chat = ChatPage(context.new_page(), f"http://{server.api[0]}:{server.api[1]}")
    chat.open()
    seen = chat.page.evaluate(_LOADED)
    context.close()
    return seen["ready"], seen["bytes"]


def measure(kinds: list[str], tokens: int, folder: Path) -> Iterator[Figure]:
    path = chromium()
    if path is None:
        raise SystemExit("bench.page: there is no Chromium on this machine")
    replica = scripted_replica(script, step_s=_STEP_S)
    with page_settings(folder, [replica]) as config, running_browser(path) as browser:
        text = config.read_text().replace("window = 4096", f"window = {tokens * 2 + 4096}")
        config.write_text(text.replace("max_tokens = 2000", f"max_tokens = {tokens + 1}"))
        with running_server(config, ANTIPHON_POLICY_ENABLED="false") as server:
            starts = [loaded(browser, server) for _ in range(5)]
            yield at_most("interactive, median of 5", sorted(starts)[2][0], _MOST_READY_MS, "ms")
            yield at_most("weight", starts[0][1], _MOST_BYTES, "bytes")
            for kind in kinds:
                felt = streamed(browser, server, kind, tokens)
                yield at_most(f"{kind}: longest frame", felt.longest_ms, _MOST_FRAME_MS, "ms")
                yield explains(f"{kind}: frames over 50 ms", felt.over, f"of {felt.frames}")
                yield explains(f"{kind}: longest task over 50 ms", felt.task_ms, "ms")
                yield explains(f"{kind}: characters", felt.characters)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=_TOKENS)
    parser.add_argument(
        "--kinds", nargs="+", default=["prose", "list", "code", "table", "paragraph"]
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = list(measure(given.kinds, given.tokens, Path(folder)))
    if given.json:
        print(json.dumps([figure.as_json() for figure in figures], indent=2))
    else:
        print(table(figures))
    return 0 if all(figure.holds is not False for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())

"""A whole server in a process of its own whose model is a script: what a message asks for is what
it gets, word by word. For tests of the chat page, and for its pictures."""

import contextlib
import itertools
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import trio

from antiphon.actors.files.showing import TAIL
from antiphon.testing.process import ServerProcess, running_server
from antiphon.testing.replicas import ScriptedReplica, serve_replica

_ATTACHED = re.compile(r"^\[Attached file: .*\]$", re.MULTILINE)

Reply = Callable[[str], Iterable[str] | None]
"""What answers a message; None where it knows nothing of it."""

SETTINGS = """\
model_name = "{name}"
[engine]
kind = "upstream"
[upstream]
urls = {urls}
model = "m"
slots = {slots}
window = 4096
[generation]
default_max_tokens = 2000
"""


def last_message(body: dict[str, Any]) -> str:
    """What the user said last, without what the model was shown of files, and told of them."""
    said = [message["content"] for message in body["messages"] if message["role"] == "user"]
    last = said[-1] if said else ""
    if not isinstance(last, str):  # it has images
        last = "\n".join(part["text"] for part in last if part["type"] == "text")
    text = last.rpartition(TAIL)[2]
    return _ATTACHED.sub("", text).strip()


def words_of(text: str) -> list[str]:
    """As a model gives them: the space goes with the word behind it."""
    return [f"{' ' if index else ''}{word}" for index, word in enumerate(text.split(" "))]


@contextlib.contextmanager
def served_replica(replica: ScriptedReplica) -> Iterator[str]:
    """Serve it from a thread of its own; its base URL."""
    started = threading.Event()
    place: dict[str, Any] = {}

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            place["url"] = await serve_replica(replica, nursery)
            place["scope"] = nursery.cancel_scope
            place["token"] = trio.lowlevel.current_trio_token()
            started.set()

    thread = threading.Thread(target=trio.run, args=(run,), daemon=True)
    thread.start()
    started.wait()
    try:
        yield place["url"]
    finally:
        with contextlib.suppress(trio.RunFinishedError):
            place["token"].run_sync_soon(place["scope"].cancel)
        thread.join()


def scripted_replica(reply: Reply, *, step_s: float = 0.01) -> ScriptedReplica:
    """A replica that answers messages by `reply`, and all others in four words."""

    def words(body: dict[str, Any]) -> Iterable[str]:
        found = reply(last_message(body))
        return ("I", " have", " no", " answer.") if found is None else found

    return ScriptedReplica(words=words, step_s=step_s, first_s=0.02)


@contextlib.contextmanager
def page_settings(
    folder: Path,
    replicas: Iterable[ScriptedReplica],
    *,
    name: str = "scripted",
    slots: int = 8,
    more: str = "",
) -> Iterator[Path]:
    """A file of settings of a server in front of these replicas."""
    with contextlib.ExitStack() as stack:
        urls = [stack.enter_context(served_replica(each)) for each in replicas]
        path = folder / "antiphon.toml"
        path.write_text(SETTINGS.format(name=name, urls=json.dumps(urls), slots=slots) + more)
        yield path


@contextlib.contextmanager
def page_server(
    folder: Path,
    reply: Reply,
    *,
    step_s: float = 0.01,
    name: str = "scripted",
    slots: int = 8,
    more: str = "",
    **environment: str,
) -> Iterator[ServerProcess]:
    """A server whose model is the script."""
    replica = scripted_replica(reply, step_s=step_s)
    with (
        page_settings(folder, [replica], name=name, slots=slots, more=more) as config,
        running_server(config, **environment) as process,
    ):
        yield process


def endless(word: str = "word") -> Iterator[str]:
    """Words with their numbers, until somebody has had enough."""
    return (f" {word}{number}" for number in itertools.count(1))

"""A whole server at sockets of its own, in a thread, with the default model's tokenizer and an
engine that says what a test has it say. For clients that are programs and know nothing of Trio."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import trio

from antiphon.app import Server
from antiphon.events import Admit
from antiphon.live_settings import LiveSettings
from antiphon.pools import FIRST
from antiphon.serving import listening
from antiphon.settings import Settings
from antiphon.testing.judges import ScriptedJudges
from antiphon.testing.models import prepared_default_model
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities

_START_S = 60.0


@dataclass(slots=True)
class ScriptedServer:
    """`words` is what every answer says from now on, a word at a step; `step_s` how long one
    takes, when the next host starts; `changed` what a reload finds changed."""

    folder: Path
    words: Callable[[Admit], Iterable[str]]
    step_s: float
    changed: dict[str, Any] = field(default_factory=dict)
    api: str = ""
    ops: str = ""
    model: str = ""
    server: Server | None = None

    def settings(self, **fields: Any) -> Settings:
        own = {
            "bind": "127.0.0.1:0",
            "ops_bind": "127.0.0.1:0",
            "data_dir": self.folder,
        }
        return msgspec.structs.replace(Settings(), **(own | fields))

    def running(self) -> int:
        """Slots that are in use, as operators see them."""
        slots = httpx2.get(f"{self.ops}/ops/slots").json()
        return sum(slot["state"] != "free" for slot in slots)


@contextmanager
def scripted_server(
    folder: Path,
    words: Callable[[Admit], Iterable[str]] = lambda admit: ("one", " two", " three", " four"),
    *,
    step_s: float = 0.005,
    slots: int = 4,
    **settings: Any,
) -> Iterator[ScriptedServer]:
    """Serve for the length of the block. Raises what the server ends with before it is ready."""
    scripted = ScriptedServer(folder, words, step_s)
    live = LiveSettings(
        scripted.settings(**settings), lambda: scripted.settings(**(settings | scripted.changed))
    )
    ready, failures = threading.Event(), list[BaseException]()
    token: list[tuple[trio.lowlevel.TrioToken, trio.Event]] = []
    launcher = ScriptedLauncher(
        make=lambda: ScriptedLink(
            answer=lambda admit: scripted.words(admit),
            capabilities=scripted_capabilities(slots=slots, kv_blocks=512, window=4096),
            step_s=scripted.step_s,
        )
    )

    async def serve() -> None:
        with listening(live.current) as listeners:
            server = scripted.server = Server(
                live,
                {FIRST: prepared_default_model()},
                listeners,
                launchers={FIRST: launcher},
                judges=ScriptedJudges(),
            )
            scripted.model = server.name
            scripted.api, scripted.ops = (
                "http://{}:{}".format(*each.getsockname()[:2])
                for each in (listeners.api, listeners.ops)
            )
            stop = trio.Event()
            token.append((trio.lowlevel.current_trio_token(), stop))
            await server.run(stop, ready.set)

    def run() -> None:
        try:
            trio.run(serve)
        except BaseException as error:  # noqa: ASYNC103  # no task: a thread's last frame
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="scripted server")
    thread.start()
    try:
        assert ready.wait(_START_S), "the server did not become ready"
        if failures:
            raise failures[0]
        yield scripted
    finally:
        for trio_token, stop in token:
            try:
                trio.from_thread.run_sync(stop.set, trio_token=trio_token)
            except trio.RunFinishedError:
                pass  # it has ended by itself
        thread.join()

"""The background workers in a tree of their own, over a store in memory and a scripted chat."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import trio

from antiphon.actors.moderation.service import Unmoderated
from antiphon.actors.workers.matter import WorkTools
from antiphon.actors.workers.worker import Workers
from antiphon.actors.workers.writer import Writer
from antiphon.context_settings import ContextSettings
from antiphon.ids import NodeId
from antiphon.moderating import Moderation
from antiphon.settings import GenerationSettings, Settings
from antiphon.supervision.root import Outcome, run_tree
from antiphon.supervision.spec import SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.chat import ScriptedChat
from antiphon.testing.telemetry import RecordingTelemetry
from antiphon.testing.work_store import WorkStore

HERE = NodeId("node_here")


class Ends:
    """Turns that end when the test says so."""

    def __init__(self) -> None:
        self._ended = trio.Event()

    def next_end(self) -> trio.Event:
        return self._ended

    def end(self) -> None:
        self._ended.set()
        self._ended = trio.Event()


@dataclass(slots=True, kw_only=True)
class WorkRig:
    """What runs."""

    workers: Workers
    store: WorkStore
    chat: ScriptedChat
    telemetry: RecordingTelemetry
    ends: Ends
    stop: trio.Event
    outcomes: list[Outcome] = field(default_factory=list)


@asynccontextmanager
async def working(
    store: WorkStore,
    chat: ScriptedChat | None = None,
    *,
    moderation: Moderation | None = None,
    node: NodeId = HERE,
    **context: Any,
) -> AsyncIterator[WorkRig]:
    """Start the workers, and stop them in order afterwards. `context` overlays its settings."""
    chat = chat or ScriptedChat(text=["Nothing to say."])
    settings = msgspec.structs.replace(
        Settings(),
        context=ContextSettings(**context),
        generation=GenerationSettings(default_max_tokens=64),
    )
    telemetry, ends = RecordingTelemetry(), Ends()
    workers = Workers(
        ends,
        WorkTools(
            store=store,
            writer=Writer(chat, lambda: settings.context.model),
            moderation=moderation or Unmoderated(),
            telemetry=telemetry,
            settings=lambda: settings,
            now_ms=lambda: round(trio.current_time() * 1000),
        ),
        node,
    )
    tree = Supervisor(SupervisorSpec(intensity=2, period_s=60.0), [workers.child("workers")])
    stop, ready = trio.Event(), trio.Event()
    rig = WorkRig(
        workers=workers, store=store, chat=chat, telemetry=telemetry, ends=ends, stop=stop
    )
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            rig.outcomes.append(await run_tree(tree, stop=stop, budget_s=20.0, on_ready=ready.set))

        nursery.start_soon(run)
        await ready.wait()
        try:
            yield rig
        finally:
            stop.set()

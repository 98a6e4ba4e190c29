"""A moderation that runs, around scripted judges or real ones: for tests of all that stands behind
its port."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import trio

from antiphon.actors.moderation.edition import make_edition
from antiphon.actors.moderation.reloading import first_edition
from antiphon.actors.moderation.remote import Remote
from antiphon.actors.moderation.service import ModerationService
from antiphon.errors import StoreError
from antiphon.events import Message, Sampling, Turn
from antiphon.ids import ModelName, RequestId
from antiphon.moderating import JudgeLauncher
from antiphon.policy_settings import PolicySettings
from antiphon.ports import Chat
from antiphon.storage import StoreAccess
from antiphon.supervision.root import run_tree
from antiphon.supervision.spec import SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.supervision.tree import Node
from antiphon.telemetry import Telemetry
from antiphon.testing.telemetry import NullTelemetry
from antiphon.verdicts import PolicyEvent

RULES = """
format = 1
version = "rules-1"

[[rules]]
id = "no-apples"
stages = ["input", "output"]
match = { kind = "phrases", phrases = ["apple pie"] }
on_failure = "closed"
keep_text = true

[[rules]]
id = "no-harm"
stages = ["input", "output"]
match = { kind = "classifier" }
on_failure = "open"
"""
"""One rule that fails closed and one that fails open."""


def a_turn(**fields: Any) -> Turn:
    made: dict[str, Any] = {
        "request": RequestId("req_1"),
        "model": ModelName("m"),
        "messages": (Message(role="user", content="hello"),),
        "sampling": Sampling(),
    } | fields
    return Turn(**made)


@dataclass(eq=False)
class EventStore:
    """A StoreAccess that keeps policy events in memory, unless it has a problem."""

    events: list[PolicyEvent] = field(default_factory=list)
    problem: StoreError | None = None
    writes: int = 0

    async def run(self, work: Callable[[Any], Any]) -> Any:
        await trio.lowlevel.checkpoint()
        if self.problem is not None:
            raise self.problem
        return await work(self)

    async def add_policy_events(self, events: Sequence[PolicyEvent]) -> None:
        await trio.lowlevel.checkpoint()
        self.writes += 1
        self.events += events


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The service, and the tree that it runs in."""

    service: ModerationService
    settings: list[PolicySettings]
    """The one in force is the last one."""
    tree: Callable[[], Node]


@asynccontextmanager
async def moderating(
    judges: JudgeLauncher,
    *,
    rules: str | Path = RULES,
    store: EventStore | None = None,
    telemetry: Telemetry | None = None,
    chat: Chat | None = None,
    served: Sequence[str] = ("m",),
    remote: Remote | None = None,
    **settings: Any,
) -> AsyncIterator[Running]:
    """`settings` are those of the policy. Rules are a text, or a file that is watched."""
    path = rules if isinstance(rules, Path) else None
    told = [msgspec.structs.replace(PolicySettings(rules=path), **settings)]
    edition = make_edition("rules.toml", rules, {}) if isinstance(rules, str) else None
    service = ModerationService(
        "root/moderation",
        edition or first_edition(path),
        judges,
        lambda: told[-1],
        cast("StoreAccess", store or EventStore()),
        telemetry or NullTelemetry(),
        chat=lambda: cast("Chat", chat),
        served=lambda: served,
        now_ms=lambda: 1_700_000_000_000,
        remote=remote,
    )
    root = Supervisor(SupervisorSpec(intensity=0), [service.child("moderation")])
    stop, ready = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await run_tree(root, stop=stop, budget_s=20.0, on_ready=ready.set)

        nursery.start_soon(run)
        await ready.wait()
        try:
            yield Running(service=service, settings=told, tree=root.snapshot)
        finally:
            stop.set()


def node(root: Node, path: str) -> Node:
    """The child that stands there."""
    if root.path == path:
        return root
    return next(node(child, path) for child in root.children if path.startswith(child.path))

"""A server's core without HTTP and without a model: driver, scheduler and sessions in their tree,
over a scripted engine."""

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import trio

from antiphon.actors.address import Address
from antiphon.actors.breaker import Breaker
from antiphon.actors.engines.status import EngineStatus
from antiphon.actors.routing.router import RoutedPool, Router
from antiphon.actors.routing.rules import rules_of
from antiphon.actors.scheduling.engine_pool import EnginePool, PoolLimits
from antiphon.actors.scheduling.messages import SchedulerMessage
from antiphon.actors.scheduling.prediction import Prediction
from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.actors.scheduling.scheduler import ScheduleView
from antiphon.actors.sessions.charges import Charges
from antiphon.actors.sessions.directory import Directory
from antiphon.events import Message, Sampling, Turn
from antiphon.ids import ModelName, RequestId
from antiphon.moderating import Moderation
from antiphon.ports import (
    AbuseSignals,
    ChatTokenizer,
    Meter,
    ModelCard,
    SamplingDefaults,
    TurnStream,
)
from antiphon.settings import Settings
from antiphon.supervision.root import run_tree
from antiphon.supervision.spec import ChildSpec, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.telemetry import Telemetry
from antiphon.testing.scripted import ScriptedLauncher
from antiphon.testing.telemetry import RecordingTelemetry
from antiphon.tools import Tool, ToolFormat
from antiphon.turn_events import TurnEnded, TurnEvent, TurnFailed, TurnPlaced
from antiphon.workload import Workload

MODEL = ModelName("scripted")
_SHARDS = 2


class WordTokenizer:
    """One token a word of all contents; the ids are meaningless."""

    longest_token = 1_000
    tool_format: ToolFormat | None = None

    def count_text(self, text: str) -> int:
        return len(text.split())

    def encode_chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[int]:
        return [1] * max(1, sum(len(message.content.split()) for message in messages))


@dataclass(slots=True)
class LiveLimits:
    """What an operator's reload would change."""

    now: PoolLimits

    def change(self, **fields: Any) -> None:
        self.now = replace(self.now, **fields)


@dataclass(slots=True, kw_only=True)
class Rig:
    """The running core. Its shards are open to tests that crash a session."""

    directory: Directory
    router: Router
    ttft_s: dict[ModelName, float]
    """By model: what its pool predicts from now on, instead of what it would."""
    engines: dict[ModelName, EnginePool]
    """All pools by their models, also the first one, whose parts are here by themselves."""
    launcher: ScriptedLauncher
    status: EngineStatus
    view: ScheduleView
    limits: LiveLimits
    breaker: Breaker
    scheduler: Address[SchedulerMessage]
    telemetry: RecordingTelemetry
    tree: Supervisor
    stop: trio.Event
    shards: list[Supervisor] = field(default_factory=list)

    async def open(self, name: str, **turn: Any) -> TurnStream:
        """A turn of one short message; `turn` overlays it."""
        return await self.directory.open_turn(a_turn(name, **turn))

    @property
    def running(self) -> int:
        assert self.view.schedule is not None
        return self.view.schedule.load().running

    @property
    def waiting(self) -> int:
        assert self.view.schedule is not None
        return self.view.schedule.load().waiting


def a_turn(name: str, **fields: Any) -> Turn:
    return Turn(
        **{
            "request": RequestId(name),
            "model": MODEL,
            "messages": (Message(role="user", content="hello there"),),
            "sampling": Sampling(seed=7),
            "max_tokens": 16,
            **fields,
        }
    )


async def read_next(stream: TurnStream) -> TurnEvent:
    """The next event that tells of the answer, and not of where it comes from."""
    while isinstance(event := await stream.next_event(), TurnPlaced):
        pass
    return event


async def read_all(stream: TurnStream) -> list[TurnEvent]:
    """Every one of those up to the terminal one."""
    events: list[TurnEvent] = []
    while not events or not isinstance(events[-1], TurnEnded | TurnFailed):
        events.append(await read_next(stream))
    return events


@asynccontextmanager
async def running_rig(
    launcher: ScriptedLauncher | None = None,
    *,
    bounds: QueueBounds = QueueBounds(max_requests=8, max_tokens=10_000, deadline_s=30.0),
    turn_deadline_s: float = 600.0,
    silence_s: float = 20.0,
    start_timeout_s: float = 10.0,
    telemetry: Telemetry | None = None,
    tokenizer: ChatTokenizer | None = None,
    sends_messages: bool = False,
    others: Mapping[str, ScriptedLauncher] = MappingProxyType({}),
    smaller: Mapping[str, str] = MappingProxyType({}),
    settings: Settings | None = None,
    meter: Meter | None = None,
    moderation: Moderation | None = None,
    abuse: AbuseSignals | None = None,
) -> AsyncIterator[Rig]:
    """Start the core, wait until it is ready, and stop it in order afterwards. `others` are further
    pools, by the names of their models, `smaller` is by model; `settings` are for the router and
    the views."""
    launcher = launcher or ScriptedLauncher()
    recording = telemetry if isinstance(telemetry, RecordingTelemetry) else RecordingTelemetry()
    facts = telemetry or recording
    limits = LiveLimits(
        PoolLimits(
            bounds=bounds,
            turn_deadline_s=turn_deadline_s,
            default_max_tokens=32,
            silence_s=silence_s,
        )
    )

    def pool(id: str, name: str, launcher: ScriptedLauncher) -> EnginePool:
        return EnginePool(
            f"root/{id}",
            ModelCard(name=ModelName(name), created=0, owned_by="test", window=512),
            launcher,
            facts,
            lambda: limits.now,
            tokenizer=tokenizer or WordTokenizer(),
            sampling_defaults=SamplingDefaults(),
            start_timeout_s=start_timeout_s,
            stop_grace_s=3.0,
            scheduler_mailbox=64,
            sends_messages=sends_messages,
            rng=random.Random(0),  # of the back-off's jitter: the same run every time
        )

    engine = pool("pool", MODEL, launcher)
    more = {name: pool(f"pool-{name}", name, each) for name, each in others.items()}
    charges = Charges(meter)
    ttft_s: dict[ModelName, float] = {}

    def routed(name: ModelName, engine: EnginePool) -> RoutedPool:
        def predict(
            workload: Workload, prompt: Sequence[int], max_tokens: int, salt: str | None = None
        ) -> Prediction | None:
            if name in ttft_s:
                return Prediction(wait_s=ttft_s[name], prefill_s=0.0)
            return engine.pool.predict(workload, prompt, max_tokens, salt)

        return RoutedPool(
            pool=replace(engine.pool, predict=predict),
            view=engine.view,
            smaller=ModelName(smaller[name]) if name in smaller else None,
        )

    shards = [
        Supervisor(SupervisorSpec(dynamic=True, max_children=64, intensity=0))
        for _ in range(_SHARDS)
    ]
    tree = Supervisor(
        SupervisorSpec(intensity=2, period_s=60.0),
        [
            *([] if meter is None else [ChildSpec(id="charges", start=charges.run)]),
            engine.supervisor.child("pool"),
            *(each.supervisor.child(f"pool-{name}") for name, each in more.items()),
            *(shard.child(f"shard-{i}") for i, shard in enumerate(shards)),
        ],
    )
    router = Router(
        [routed(ModelName(name), each) for name, each in ({MODEL: engine} | more).items()],
        lambda: rules_of(settings or Settings()),
        facts,
    )
    directory = Directory(
        router,
        [(f"root/shard-{i}", shard) for i, shard in enumerate(shards)],
        facts,
        charges,
        moderation=moderation,
        abuse=abuse,
        context=lambda: (settings or Settings()).context,
    )
    stop, ready = trio.Event(), trio.Event()
    rig = Rig(
        directory=directory,
        router=router,
        ttft_s=ttft_s,
        engines={MODEL: engine} | {ModelName(name): each for name, each in more.items()},
        launcher=launcher,
        status=engine.status,
        view=engine.view,
        limits=limits,
        breaker=engine.pool.breaker,
        scheduler=engine.scheduler,
        telemetry=recording,
        tree=tree,
        stop=stop,
        shards=shards,
    )
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await run_tree(tree, stop=stop, budget_s=20.0, on_ready=ready.set)

        nursery.start_soon(run)
        await ready.wait()
        try:
            yield rig
        finally:
            stop.set()

"""The composition root: settings and a prepared model become the tree.

The only module that may import everything. It decides nothing that a room could decide.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass

import trio
from prometheus_client import CollectorRegistry
from quart_trio import QuartTrio

from antiphon.actors.actor import actor_child
from antiphon.actors.address import Address
from antiphon.actors.engines.driver import EngineDriver
from antiphon.actors.engines.messages import DriverMessage
from antiphon.actors.engines.status import EngineStatus
from antiphon.actors.scheduling.messages import SchedulerMessage
from antiphon.actors.scheduling.pool import Pool
from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.actors.scheduling.scheduler import Scheduler, ScheduleView
from antiphon.actors.sessions.directory import Directory
from antiphon.actors.watchman import Watchman
from antiphon.engine.chat import load_chat_tokenizer
from antiphon.engine.config import HostConfig
from antiphon.engine.models import PreparedModel
from antiphon.engine.process import HostLauncher
from antiphon.http.app import make_api_app
from antiphon.http.ops.app import SlotView, make_ops_app
from antiphon.http.ops.commands import OpsCommands
from antiphon.http.ops.metrics import PrometheusTelemetry
from antiphon.http.server import serve_http
from antiphon.ids import ActorPath, ModelName, SlotIndex
from antiphon.ports import EngineLauncher, ModelCard, Telemetry
from antiphon.settings import HttpSettings, Settings
from antiphon.supervision.context import ChildContext
from antiphon.supervision.operator import Operator
from antiphon.supervision.root import Outcome, run_tree
from antiphon.supervision.runtime import (
    LoopLag,
    RuntimeStatistics,
    measured_loop_lag,
    runtime_statistics,
)
from antiphon.supervision.spec import ChildSpec, Forever, Grace, Strategy, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.supervision.tree import Node

_SHARDS = 8
"""Sessions spread over this many supervisors: one that gives up takes an eighth of them along."""
_SHARD_CHILDREN = 512
_REAP_S = 2.0
_DRIVER_MAILBOX = 4096
"""A Begin and an Abort for each slot, many times over: the scheduler never waits for the driver."""
_SCHEDULER_MAILBOX = 1024
"""Turns that may arrive while an engine is being restarted."""

_UNTOUCHABLE = {
    ActorPath("root/http:ops"): "it is the listener that would have to answer",
    ActorPath("root/watchman"): "its stop is the drain of the whole server, for good",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """The bound sockets. They outlive every incarnation of the children that borrow them."""

    api: socket.socket
    ops: socket.socket


class Server:
    """Everything one server is made of, wired and not yet running."""

    def __init__(
        self,
        settings: Settings,
        model: PreparedModel,
        listeners: Listeners,
        *,
        launcher: EngineLauncher | None = None,
    ) -> None:
        self._settings = settings
        self._model = model
        self._listeners = listeners
        self._launcher = launcher or HostLauncher(host_config(settings, model))
        self.registry = CollectorRegistry()
        self.telemetry: Telemetry = PrometheusTelemetry(self.registry)
        self.name = ModelName(settings.model_name or model.name)
        self.status = EngineStatus(model=self.name, silence_s=settings.engine.silence_s)
        self.schedule = ScheduleView()
        pool_path = f"root/pools/pool:{self.name.replace('/', ':')}"
        self._driver: Address[DriverMessage] = Address(
            f"{pool_path}/driver", capacity=_DRIVER_MAILBOX
        )
        self._scheduler: Address[SchedulerMessage] = Address(
            f"{pool_path}/scheduler", capacity=_SCHEDULER_MAILBOX
        )
        shards = [
            (f"root/sessions/shard-{number}", _dynamic(_SHARD_CHILDREN))
            for number in range(_SHARDS)
        ]
        self.directory = Directory(self._pool(), shards, self.telemetry)
        self._lag: LoopLag
        self.watchman = Watchman(self.directory, drain_s=settings.shutdown.drain_s)
        self.tree = self._tree([shard for _, shard in shards])

    async def run(self, stop: trio.Event, on_ready: Callable[[], None]) -> Outcome:
        """Run the tree until it ends; `stop` orders its stop."""
        with measured_loop_lag() as self._lag:
            return await run_tree(
                self.tree,
                stop=stop,
                budget_s=self._settings.shutdown.budget_s,
                on_ready=on_ready,
            )

    def not_ready(self) -> tuple[str, ...]:
        """Why no traffic should come now; empty when it should."""
        reasons = []
        if self.watchman.draining:
            reasons.append("draining")
        if (problem := self.status.problem(trio.current_time())) is not None:
            reasons.append(f"engine {self.name}: {problem}")
        elif self.schedule.schedule is None:
            reasons.append(f"scheduler {self.name}: starting")
        return tuple(reasons)

    def slots(self) -> tuple[SlotView, ...]:
        """Every slot; none while no engine has been ready."""
        schedule = self.schedule.schedule
        if schedule is None:
            return ()
        now = trio.current_time()
        leases = {lease.slot: lease for lease in schedule.leases()}
        views = []
        for index in range(schedule.slots):
            slot = SlotIndex(index)
            lease = leases.get(slot)
            if lease is None:
                views.append(
                    SlotView(slot=slot, state="free", request_id=None, tokens=0, age_s=0.0)
                )
                continue
            tokens = self.status.tokens.get(lease.ticket.request, 0)
            views.append(
                SlotView(
                    slot=slot,
                    state="releasing" if lease.releasing else "decode" if tokens else "prefill",
                    request_id=lease.ticket.turn,
                    tokens=tokens,
                    age_s=round(now - lease.granted_at, 3),
                )
            )
        return tuple(views)

    def snapshot(self) -> Node:
        """The supervision tree as plain values."""
        return self.tree.snapshot()

    def runtime(self) -> RuntimeStatistics:
        """The event loop, while it runs."""
        return runtime_statistics(self._lag)

    def _pool(self) -> Pool:
        model = self._model
        return Pool(
            card=ModelCard(
                name=self.name, created=model.created, owned_by="antiphon", window=model.window
            ),
            scheduler=self._scheduler.ref,
            status=self.status,
            tokenizer=load_chat_tokenizer(model.folder),
            sampling_defaults=model.sampling,
            default_max_tokens=self._settings.generation.default_max_tokens,
        )

    def _tree(self, shards: list[Supervisor]) -> Supervisor:
        """Ops comes first, so that health answers while the model loads and while streams drain."""
        settings = self._settings
        api = make_api_app(self.directory, settings.http, settings.generation, self.telemetry)
        commands = OpsCommands(
            operator=Operator(lambda: self.tree, _UNTOUCHABLE),
            token=settings.ops_token,
            deadline_s=self._command_s,
        )
        ops = make_ops_app(_Sources(self), settings.http, self.registry, self.telemetry, commands)
        pools = Supervisor(
            SupervisorSpec(intensity=2, period_s=60.0),
            [self._engine_pool().child(f"pool:{self.name.replace('/', ':')}")],
        )
        sessions = Supervisor(
            SupervisorSpec(intensity=_SHARDS, period_s=60.0),
            [shard.child(f"shard-{number}") for number, shard in enumerate(shards)],
        )
        budget_s = settings.shutdown.budget_s
        return Supervisor(
            # Few on purpose: intensities multiply from level to level.
            SupervisorSpec(intensity=2, period_s=60.0),
            [
                _http_child("http:ops", ops, self._listeners.ops, settings.http, budget_s),
                pools.child("pools"),
                sessions.child("sessions"),
                _http_child("http:api", api, self._listeners.api, settings.http, budget_s),
                ChildSpec(id="watchman", start=self.watchman.run, shutdown=Forever()),
            ],
        )

    @property
    def _boot_s(self) -> float:
        return self._settings.engine.start_timeout_s + 10.0

    @property
    def _command_s(self) -> float:
        """Longer than the slowest child, the driver, takes to stop and to start again."""
        return self._settings.engine.stop_grace_s + _REAP_S + self._boot_s

    def _engine_pool(self) -> Supervisor:
        """Driver first: a scheduler's leases mean nothing once its driver has been restarted."""
        settings = self._settings

        def driver() -> EngineDriver:
            return EngineDriver(
                self._launcher,
                self.status,
                self._scheduler.ref,
                self.telemetry,
                start_timeout_s=settings.engine.start_timeout_s,
                stop_grace_s=settings.engine.stop_grace_s,
            )

        def scheduler() -> Scheduler:
            return Scheduler(
                self._driver.ref,
                self.status,
                self.schedule,
                self.telemetry,
                bounds=QueueBounds(
                    max_requests=settings.queue.max_requests,
                    max_tokens=settings.queue.max_tokens,
                    deadline_s=settings.queue.deadline_s,
                ),
                turn_deadline_s=settings.generation.turn_deadline_s,
            )

        return Supervisor(
            SupervisorSpec(strategy=Strategy.REST_FOR_ONE, intensity=5, period_s=60.0),
            [
                actor_child(
                    "driver",
                    driver,
                    self._driver,
                    init_timeout_s=self._boot_s,
                    # It waits for its host that long by itself, and then kills and reaps it.
                    shutdown=Grace(settings.engine.stop_grace_s + _REAP_S),
                ),
                actor_child("scheduler", scheduler, self._scheduler),
            ],
        )


class _Sources:
    """What the operations pages read: snapshots only."""

    def __init__(self, server: Server) -> None:
        self.not_ready = server.not_ready
        self.slots = server.slots
        self.tree = server.snapshot
        self.runtime = server.runtime


def host_config(settings: Settings, model: PreparedModel) -> HostConfig:
    """What the engine host of this model is told."""
    engine = settings.engine
    return HostConfig(
        model_dir=model.folder,
        slots=engine.slots,
        window=model.window,
        stop_token_ids=model.stop_tokens,
        threads=engine.threads,
        kv_cache_mib=engine.kv_cache_mib,
        kv_precision=engine.kv_precision,
        step_tokens=engine.step_tokens,
        prefix_cache=engine.prefix_cache,
        log_level=settings.log_level,
    )


def _http_child(
    id: str,
    app: QuartTrio,
    listener: socket.socket,
    settings: HttpSettings,
    budget_s: float,
) -> ChildSpec:
    async def start(context: ChildContext) -> None:
        await serve_http(
            app,
            listener=listener,
            settings=settings,
            ready=context.ready,
            stopping=context.stopping,
        )

    return ChildSpec(id=id, start=start)


def _dynamic(max_children: int) -> Supervisor:
    return Supervisor(SupervisorSpec(dynamic=True, max_children=max_children, intensity=0))

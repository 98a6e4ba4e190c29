"""The composition root: settings and a prepared model become the tree.

The only module that may import everything. It decides nothing that a room could decide.
"""

import ipaddress
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

import trio
from prometheus_client import CollectorRegistry
from quart_trio import QuartTrio

from antiphon import faults
from antiphon.actors.accounts.accounts import Accounts
from antiphon.actors.breaker import BreakerStatistics, Circuit
from antiphon.actors.responses.directory import RunDirectory
from antiphon.actors.responses.reaper import Reaper
from antiphon.actors.responses.recorder import Recorder
from antiphon.actors.responses.run import RunTools
from antiphon.actors.scheduling.engine_pool import EnginePool, PoolLimits
from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.actors.sessions.directory import Directory
from antiphon.actors.store.service import StoreService
from antiphon.actors.watchman import Watchman
from antiphon.database import contents, is_alone, opener
from antiphon.engine.models import PreparedModel
from antiphon.engine.upstream import Upstream, UpstreamModel
from antiphon.hosts import engine_launcher, model_tokenizer
from antiphon.http.app import make_api_app
from antiphon.http.ops.app import SlotView, make_ops_app
from antiphon.http.ops.commands import OpsCommands
from antiphon.http.ops.metrics import PrometheusTelemetry
from antiphon.http.server import serve_http
from antiphon.ids import ActorPath, ModelName, SlotIndex, new_node_id
from antiphon.live_settings import LiveSettings
from antiphon.ports import Contents, EngineLauncher, EngineLink, ModelCard, ReplicaStatistics
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.storage import OpenStore
from antiphon.supervision.context import ChildContext
from antiphon.supervision.operator import Operator
from antiphon.supervision.root import Outcome, run_tree
from antiphon.supervision.runtime import (
    LoopLag,
    RuntimeStatistics,
    measured_loop_lag,
    runtime_statistics,
)
from antiphon.supervision.spec import ChildSpec, Forever, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.supervision.tree import Node
from antiphon.upstreams import EngineParts, make_upstream, upstream_parts

_SHARDS = 8
"""Sessions spread over this many supervisors: one that gives up takes an eighth of them along."""
_SHARD_CHILDREN = 512

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
        live: LiveSettings,
        model: PreparedModel | UpstreamModel,
        listeners: Listeners,
        *,
        launcher: EngineLauncher | None = None,
        open_store: OpenStore | None = None,
        files: Contents | None = None,
    ) -> None:
        settings = live.current
        self._live = live
        self._listeners = listeners
        self.registry = CollectorRegistry()
        self.telemetry = PrometheusTelemetry(self.registry)
        self.name = ModelName(settings.model_name or model.name)
        self._id = f"pool:{self.name.replace('/', ':')}"
        self.upstream: Upstream | None = None
        if isinstance(model, UpstreamModel):
            self.upstream = make_upstream(live, model)
            self.telemetry.watch_replicas(self.name, self.upstream.statistics)
            parts = upstream_parts(live, model, self.upstream)
        else:
            parts = _host_parts(live, model, launcher)
        self._engine = self._pool_of(parts, model)
        self.status = self._engine.status
        self.schedule = self._engine.view
        self.breaker = self._engine.pool.breaker
        self.telemetry.watch_circuit(self.name, self.breaker.statistics)
        self._store = StoreService(
            "root/store",
            open_store or opener(settings),
            self.telemetry,
            concurrency=settings.database.concurrency,
            deadline_s=settings.database.deadline_s,
            start_wait_s=settings.database.start_wait_s,
        )
        self.store_status = self._store.status
        self.telemetry.watch_store(self.store_status.statistics)
        self.accounts = Accounts(
            self._store.client,
            is_local=_is_loopback(listeners.api),
            now_ms=lambda: time.time_ns() // 1_000_000,
        )
        shards = [
            (f"root/sessions/shard-{number}", _dynamic(_SHARD_CHILDREN))
            for number in range(_SHARDS)
        ]
        self.directory = Directory(self._engine.pool, shards, self.telemetry)
        tools = RunTools(chat=self.directory, store=self._store.client, node=new_node_id())
        self.responses = RunDirectory(tools, shards)
        self._recorder = Recorder(self.responses, tools)
        self._contents = files or contents(settings)
        self._reaper = Reaper(
            self.responses, tools, contents=self._contents, alone=is_alone(settings)
        )
        self._lag: LoopLag
        self.watchman = Watchman(
            # Responses first: what ends them ends their sessions.
            (self.responses, self.directory),
            drain_s=lambda: live.current.shutdown.drain_s,
        )
        self.tree = self._tree([shard for _, shard in shards])

    def _pool_of(self, parts: EngineParts, model: PreparedModel | UpstreamModel) -> EnginePool:
        engine = self._live.current.engine
        return EnginePool(
            f"root/pools/{self._id}",
            ModelCard(
                name=self.name, created=model.created, owned_by="antiphon", window=parts.window
            ),
            parts.launcher,
            self.telemetry,
            self._limits,
            tokenizer=parts.tokenizer,
            sampling_defaults=model.sampling,
            start_timeout_s=engine.start_timeout_s,
            stop_grace_s=engine.stop_grace_s,
            service=parts.service,
            sends_messages=parts.service is not None,
            count_prompt=parts.count_prompt,
        )

    async def run(self, stop: trio.Event, on_ready: Callable[[], None]) -> Outcome:
        """Run the tree until it ends; `stop` orders its stop."""
        with faults.from_setting(self._live.current.faults), measured_loop_lag() as self._lag:
            return await run_tree(
                self.tree,
                stop=stop,
                budget_s=lambda: self._live.current.shutdown.budget_s,
                on_ready=on_ready,
            )

    def not_ready(self) -> tuple[str, ...]:
        """Why no traffic should come now; empty when it should."""
        reasons = []
        if self.watchman.draining:
            reasons.append("draining")
        if (problem := self.store_status.problem()) is not None:
            reasons.append(f"store: {problem}")
        if (problem := self.status.problem(trio.current_time())) is not None:
            reasons.append(f"engine {self.name}: {problem}")
        elif self.schedule.schedule is None:
            reasons.append(f"scheduler {self.name}: starting")
        elif self.upstream is not None and (problem := self.upstream.problem()) is not None:
            reasons.append(f"engine {self.name}: {problem}")
        circuit = self.breaker.statistics()
        # Only until the next try: traffic has to come for the probe that closes it.
        if circuit.circuit == Circuit.OPEN.value and circuit.retry_after_s:
            reasons.append(f"circuit {circuit.name}: open for {circuit.retry_after_s:.1f} s")
        return tuple(reasons)

    def concerns(self) -> tuple[str, ...]:
        """What an operator has to see to although traffic may come."""
        concern = self.store_status.concern()
        return () if concern is None else (f"store: {concern}",)

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

    def breakers(self) -> tuple[BreakerStatistics, ...]:
        """Every circuit breaker there is."""
        return (self.store_status.breaker.statistics(), self.breaker.statistics())

    def replicas(self) -> tuple[ReplicaStatistics, ...]:
        """Every replica of the engine, where it is elsewhere."""
        return () if self.upstream is None else self.upstream.statistics()

    def runtime(self) -> RuntimeStatistics:
        """The event loop, while it runs."""
        return runtime_statistics(self._lag)

    def _limits(self) -> PoolLimits:
        """As the settings are now."""
        settings = self._live.current
        return PoolLimits(
            bounds=QueueBounds(
                max_requests=settings.queue.max_requests,
                max_tokens=settings.queue.max_tokens,
                deadline_s=settings.queue.deadline_s,
            ),
            turn_deadline_s=settings.generation.turn_deadline_s,
            default_max_tokens=settings.generation.default_max_tokens,
            silence_s=settings.engine.silence_s,
        )

    def _tree(self, shards: list[Supervisor]) -> Supervisor:
        """Ops comes first, so that health answers while the model loads and while streams drain."""
        live = self._live
        api = make_api_app(
            self.directory,
            self._http,
            self._generation,
            self.telemetry,
            accounts=self.accounts,
            responses=self.responses,
            store=self._store.client,
            contents=self._contents,
        )
        commands = OpsCommands(
            operator=Operator(lambda: self.tree, _UNTOUCHABLE),
            settings=live,
            token=lambda: live.current.ops_token,
            deadline_s=self._engine.restart_s,
        )
        ops = make_ops_app(_Sources(self), self._http, self.registry, self.telemetry, commands)
        pools = Supervisor(
            SupervisorSpec(intensity=2, period_s=60.0), [self._engine.supervisor.child(self._id)]
        )
        sessions = Supervisor(
            SupervisorSpec(intensity=_SHARDS, period_s=60.0),
            [shard.child(f"shard-{number}") for number, shard in enumerate(shards)],
        )
        return Supervisor(
            # Few on purpose: intensities multiply from level to level.
            SupervisorSpec(intensity=2, period_s=60.0),
            [
                _http_child("http:ops", ops, self._listeners.ops, self._http),
                self._store.child("store"),
                ChildSpec(id="accounts", start=self.accounts.run),
                # Before the sessions, so after them at a stop: what runs still needs these.
                ChildSpec(id="recorder", start=self._recorder.run),
                ChildSpec(id="reaper", start=self._reaper.run),
                pools.child("pools"),
                sessions.child("sessions"),
                _http_child("http:api", api, self._listeners.api, self._http),
                ChildSpec(id="watchman", start=self.watchman.run, shutdown=Forever()),
            ],
        )

    def _http(self) -> HttpSettings:
        return self._live.current.http

    def _generation(self) -> GenerationSettings:
        return self._live.current.generation


def _host_parts(
    live: LiveSettings, model: PreparedModel, launcher: EngineLauncher | None
) -> EngineParts:
    return EngineParts(
        launcher=launcher or _FreshLauncher(live, model),
        tokenizer=model_tokenizer(live.current, model),
        window=model.window,
    )


class _FreshLauncher:
    """Starts each host with the settings of that moment."""

    def __init__(self, live: LiveSettings, model: PreparedModel) -> None:
        self._live = live
        self._model = model

    async def launch(self) -> EngineLink:
        """Raises HostStartFailed."""
        return await engine_launcher(self._live.for_engine(), self._model).launch()


class _Sources:
    """What the operations pages read: snapshots only."""

    def __init__(self, server: Server) -> None:
        self.not_ready = server.not_ready
        self.concerns = server.concerns
        self.slots = server.slots
        self.tree = server.snapshot
        self.runtime = server.runtime
        self.breakers = server.breakers
        self.replicas = server.replicas


def _http_child(
    id: str,
    app: QuartTrio,
    listener: socket.socket,
    settings: Callable[[], HttpSettings],
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


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback

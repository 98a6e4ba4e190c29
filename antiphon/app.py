"""The composition root: settings and prepared models become the tree.

The only module that may import everything. It decides nothing that a room could decide.
"""

import ipaddress
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import trio
from prometheus_client import CollectorRegistry
from quart_trio import QuartTrio

from antiphon import faults
from antiphon.actors.abuse.abuse import Abuse
from antiphon.actors.accounts.accounts import Accounts
from antiphon.actors.metering.meter import StoreMeter
from antiphon.actors.metering.plans import Plans
from antiphon.actors.moderation.service import Unmoderated
from antiphon.actors.prompts.naming import named_prompts, prompt_for
from antiphon.actors.prompts.prompts import SystemPrompts
from antiphon.actors.responses.directory import RunDirectory
from antiphon.actors.responses.reaper import Reaper
from antiphon.actors.responses.recorder import Recorder
from antiphon.actors.responses.run import RunTools
from antiphon.actors.routing.router import Router
from antiphon.actors.routing.rules import rules_of
from antiphon.actors.sessions.charges import Charges
from antiphon.actors.sessions.directory import Directory
from antiphon.actors.store.service import StoreService
from antiphon.actors.watchman import Watchman
from antiphon.actors.workers.matter import WorkTools
from antiphon.actors.workers.worker import Workers
from antiphon.actors.workers.writer import Writer
from antiphon.database import contents, is_alone, opener
from antiphon.filing import Filing
from antiphon.http.abuse import AbuseGate
from antiphon.http.app import make_api_app
from antiphon.http.brakes import Brakes
from antiphon.http.openai.prompting import Prompting
from antiphon.http.ops.app import make_ops_app
from antiphon.http.ops.commands import OpsCommands
from antiphon.http.ops.metrics import PrometheusTelemetry
from antiphon.http.ops.policy import PolicySource
from antiphon.http.server import serve_http
from antiphon.ids import ActorPath, new_node_id
from antiphon.judges import make_moderation
from antiphon.live_settings import LiveSettings
from antiphon.moderating import JudgeLauncher
from antiphon.pools import Models, host_pids, make_pools
from antiphon.ports import Contents, EngineLauncher
from antiphon.reloading import Reload
from antiphon.server_status import ServerStatus
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.storage import OpenStore
from antiphon.supervision.context import ChildContext
from antiphon.supervision.operator import Operator
from antiphon.supervision.root import Outcome, run_tree
from antiphon.supervision.runtime import LoopLag, measured_loop_lag
from antiphon.supervision.spec import ChildSpec, Forever, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor

_SHARDS = 8
"""Sessions spread over this many supervisors: one that gives up takes an eighth of them along."""
_SHARD_CHILDREN = 512

_POOLS_INTENSITY = 10
"""In a minute. One pool that can't be kept running is restarted less and less often, eight times in
the first minute at most, and must not take the others with it."""

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
    """Everything one server is made of, wired and not yet running. `launchers` start hosts in
    the place of those that the settings would give their pools, `judges` judge processes.

    Raises RulesError when the rules can't be used, SettingsError.
    """

    def __init__(
        self,
        live: LiveSettings,
        models: Models,
        listeners: Listeners,
        *,
        launchers: Mapping[str, EngineLauncher] = MappingProxyType({}),
        open_store: OpenStore | None = None,
        files: Contents | None = None,
        judges: JudgeLauncher | None = None,
    ) -> None:
        settings = live.current
        self._live = live
        self._listeners = listeners
        self.registry = CollectorRegistry()
        self.telemetry = PrometheusTelemetry(self.registry)
        self._contents = files or contents(settings)
        self.pools = make_pools(live, models, self.telemetry, launchers, self._contents)
        first = self.pools[0]
        self.name = first.name
        self.upstream = first.upstream
        self.status = first.engine.status
        self.schedule = first.engine.view
        self.breaker = first.engine.pool.breaker
        for pool in self.pools:
            self.telemetry.watch_circuit(pool.name, pool.engine.pool.breaker.statistics)
            self.telemetry.watch_room(pool.name, pool.engine.room)
            forecast = pool.engine.forecast
            self.telemetry.watch_forecast(pool.name, forecast.rates, forecast.first_token_s)
            if pool.upstream is not None:
                self.telemetry.watch_replicas(pool.name, pool.upstream.statistics)
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
        plans = Plans(lambda: live.current)
        self.accounts = Accounts(
            self._store.client,
            is_local=_is_loopback(listeners.api),
            now_ms=_wall_ms,
            plans=plans,
        )
        node = new_node_id()
        self.meter = StoreMeter(
            self._store.client, plans, node=node, now_ms=_wall_ms, alone=is_alone(settings)
        )
        self.abuse = Abuse(
            self._store.client,
            lambda: live.current.abuse,
            now_ms=_wall_ms,
            forget=self.accounts.forget,
        )
        self.telemetry.watch_abuse(self.abuse.statistics)
        self.prompts = SystemPrompts(self._store.client, lambda: named_prompts(live.current))
        self.telemetry.watch_prompts(self.prompts.in_force)
        gate = AbuseGate(self.abuse, lambda: live.current.brakes.proxies, self.telemetry)
        self.brakes = Brakes(lambda: live.current.brakes, self.telemetry, abuse=gate)
        shards = [
            (f"root/sessions/shard-{number}", _dynamic(_SHARD_CHILDREN))
            for number in range(_SHARDS)
        ]
        self.router = Router(
            [pool.routed for pool in self.pools], lambda: rules_of(live.current), self.telemetry
        )
        self._charges = Charges(self.meter)
        self._policy = make_moderation(
            lambda: live.current,
            self._store.client,
            self.telemetry,
            chat=lambda: self.directory,
            served=lambda: self.names,
            now_ms=_wall_ms,
            launcher=judges,
        )
        self.moderation = self._policy or Unmoderated()
        self.reload = Reload(live, self._policy)
        if self._policy is not None:
            self.telemetry.watch_policy(self._policy.view)
        self.directory = Directory(
            self.router,
            shards,
            self.telemetry,
            self._charges,
            moderation=self.moderation,
            abuse=self.brakes,
            context=lambda: live.current.context,
        )
        self.filing = Filing(
            "root/files",
            lambda: live.current,
            self._store.client,
            self._contents,
            self.telemetry,
            node=node,
            now_ms=_wall_ms,
        )
        self.telemetry.watch_files(lambda: self.filing.ingestion.in_hand)
        tools = RunTools(
            chat=self.directory,
            store=self._store.client,
            node=node,
            context=lambda: live.current.context,
            files=self.filing.service,
            file_settings=lambda: live.current.files,
        )
        self.responses = RunDirectory(tools, shards)
        self._recorder = Recorder(self.responses, tools)
        self.workers = Workers(
            self.responses,
            WorkTools(
                store=self._store.client,
                writer=Writer(self.directory, lambda: live.current.context.model),
                moderation=self.moderation,
                telemetry=self.telemetry,
                settings=lambda: live.current,
                now_ms=_wall_ms,
            ),
            node,
        )
        self.telemetry.watch_work(self.workers.age_s)
        self._reaper = Reaper(
            self.responses, tools, contents=self._contents, alone=is_alone(settings)
        )
        self._lag: LoopLag
        self.watchman = Watchman(
            # Workers first, since nobody waits for them. What ends responses ends their sessions.
            (self.filing.ingestion, self.workers, self.responses, self.directory),
            drain_s=lambda: live.current.shutdown.drain_s,
        )
        self.overall = ServerStatus(
            served=self.pools,
            router=self.router,
            store=self.store_status,
            prompts=self.prompts,
            policy=self._policy,
            watchman=self.watchman,
            workers=self.workers,
            root=lambda: self.tree,
            lag=lambda: self._lag,
        )
        self.tree = self._tree([shard for _, shard in shards])

    async def run(self, stop: trio.Event, on_ready: Callable[[], None]) -> Outcome:
        """Run the tree until it ends; `stop` orders its stop."""
        with faults.from_setting(self._live.current.faults), measured_loop_lag() as self._lag:
            return await run_tree(
                self.tree,
                stop=stop,
                budget_s=lambda: self._live.current.shutdown.budget_s,
                on_ready=on_ready,
            )

    @property
    def names(self) -> tuple[str, ...]:
        """All that clients may ask for, the first model first."""
        return tuple(card.name for card in self.router.cards())

    def pids(self) -> tuple[int, ...]:
        """Every child process that runs now."""
        judges = () if self._policy is None else self._policy.pids()
        return (*host_pids(self.pools), *judges, *self.filing.embedding.pids())

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
            brakes=self.brakes,
            moderation=self.moderation,
            prompting=Prompting(
                prompts=self.prompts, default=lambda model: prompt_for(live.current, model)
            ),
            context=lambda: live.current.context,
            searching=self.filing.service,
            file_settings=lambda: live.current.files,
        )
        commands = OpsCommands(
            operator=Operator(lambda: self.tree, _UNTOUCHABLE),
            settings=self.reload,
            token=lambda: live.current.ops_token,
            deadline_s=max(pool.engine.restart_s for pool in self.pools),
        )
        policy = self._policy
        ops = make_ops_app(
            self.overall,
            self._http,
            self.registry,
            self.telemetry,
            commands,
            self.abuse,
            None
            if policy is None
            else PolicySource(view=policy.view, reload=policy.reload, store=self._store.client),
            self.telemetry.recent,
        )
        pools = Supervisor(
            SupervisorSpec(
                intensity=2 if len(self.pools) == 1 else _POOLS_INTENSITY, period_s=60.0
            ),
            [pool.child() for pool in self.pools],
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
                ChildSpec(id="abuse", start=self.abuse.run),
                ChildSpec(id="prompts", start=self.prompts.run),
                # As the next two.
                ChildSpec(id="meter", start=self.meter.run),
                ChildSpec(id="charges", start=self._charges.run),
                # Before the sessions, so after them at a stop: what runs still needs these.
                ChildSpec(id="recorder", start=self._recorder.run),
                ChildSpec(id="reaper", start=self._reaper.run),
                # Beside the pools: its processes load while a model does.
                *(() if policy is None else (policy.child("moderation"),)),
                pools.child("pools"),
                # After the pools, so that nothing is read before there is a model; before the
                # sessions, which search.
                self.filing.child("files"),
                sessions.child("sessions"),
                self.workers.child("workers"),
                _http_child("http:api", api, self._listeners.api, self._http),
                ChildSpec(id="watchman", start=self.watchman.run, shutdown=Forever()),
            ],
        )

    def _http(self) -> HttpSettings:
        return self._live.current.http

    def _generation(self) -> GenerationSettings:
        return self._live.current.generation


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


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback

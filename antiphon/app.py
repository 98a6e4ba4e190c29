"""The composition root: settings and a prepared model become the tree, and the tree is run.

The only module that may import everything. It decides nothing that a room could decide.
"""

import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

import structlog
import trio
from prometheus_client import CollectorRegistry
from quart_trio import QuartTrio

from antiphon import __version__
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
from antiphon.errors import SettingsError
from antiphon.http.app import make_api_app
from antiphon.http.ops.app import SlotView, make_ops_app
from antiphon.http.ops.metrics import PrometheusTelemetry
from antiphon.http.server import open_listener, serve_http
from antiphon.ids import ModelName, SlotIndex
from antiphon.ports import EngineLauncher, ModelCard, Telemetry
from antiphon.settings import HttpSettings, Settings, parse_bind
from antiphon.supervision.context import ChildContext
from antiphon.supervision.exits import Crashed, InitFailed, Stopped, describe
from antiphon.supervision.root import Outcome, run_tree
from antiphon.supervision.spec import ChildSpec, Forever, Strategy, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor

log = structlog.get_logger(__name__)

_SHARDS = 8
"""Sessions spread over this many supervisors: one that gives up takes an eighth of them along."""
_SHARD_CHILDREN = 512
_DRIVER_MAILBOX = 4096
"""A Begin and an Abort for each slot, many times over: the scheduler never waits for the driver."""
_SCHEDULER_MAILBOX = 1024
"""Turns that may arrive while an engine is being restarted."""

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_SETTINGS = 2
EXIT_STUCK = 70
"""Something ignored its cancellation; a process manager should start the server anew."""
EXIT_SECOND_SIGNAL = 130


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
        self.watchman = Watchman(self.directory, drain_s=settings.shutdown.drain_s)
        self.tree = self._tree([shard for _, shard in shards])

    async def run(self, stop: trio.Event, on_ready: Callable[[], None]) -> Outcome:
        """Run the tree until it ends; `stop` orders its stop."""
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

    def snapshot(self) -> object:
        """The supervision tree as plain values."""
        return self.tree.snapshot()

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
        ops = make_ops_app(_Sources(self), settings.http, self.registry, self.telemetry)
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
                self.schedule,
                self.telemetry,
                model=self.name,
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
                actor_child("driver", driver, self._driver, init_timeout_s=self._boot_s),
                actor_child("scheduler", scheduler, self._scheduler),
            ],
        )


class _Sources:
    """What the operations pages read: snapshots only."""

    def __init__(self, server: Server) -> None:
        self.not_ready = server.not_ready
        self.slots = server.slots
        self.tree = server.snapshot


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


@contextmanager
def listening(settings: Settings) -> Iterator[Listeners]:
    """Bind both addresses. Raises SettingsError when one is taken or not ours."""
    with ExitStack() as stack:
        sockets = {}
        for key in ("bind", "ops_bind"):
            host, port = parse_bind(key, getattr(settings, key))
            try:
                sockets[key] = stack.enter_context(closing(open_listener(host, port)))
            except OSError as error:
                problem = f"cannot listen on {host}:{port}: {error.strerror}"
                raise SettingsError(key, problem) from error
        yield Listeners(api=sockets["bind"], ops=sockets["ops_bind"])


def serve(settings: Settings, model: PreparedModel) -> int:
    """Run the server until it is told to stop; the exit status for the process.

    Raises SettingsError when an address can't be bound.
    """
    with listening(settings) as listeners:
        outcome = trio.run(_serve, settings, model, listeners)
    if outcome.stuck:
        log.critical("stuck_at_exit", paths=outcome.stuck, exit_status=EXIT_STUCK)
        sys.stdout.flush()
        sys.stderr.flush()
        # Threads that ignore us would hold up a normal exit for ever.
        os._exit(EXIT_STUCK)
    match outcome.exit:
        case Stopped():
            return EXIT_OK
        case Crashed() | InitFailed():
            log.critical("server_failed", reason=describe(outcome.exit))
            return EXIT_FAILED
        case _:
            return EXIT_FAILED


async def _serve(settings: Settings, model: PreparedModel, listeners: Listeners) -> Outcome:
    server = Server(settings, model, listeners)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch_signals, stop, server)

        def ready() -> None:
            _freeze()
            _say_ready(server.name, listeners)

        outcome = await server.run(stop, ready)
        nursery.cancel_scope.cancel("the tree has ended")
    return outcome


async def _watch_signals(stop: trio.Event, server: Server) -> None:
    """The first signal drains, a second one ends the process now."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            name = signal.Signals(number).name
            if stop.is_set():
                log.warning("stop_forced", signal=name)
                if server.status.pid is not None:
                    os.killpg(server.status.pid, signal.SIGKILL)
                os._exit(EXIT_SECOND_SIGNAL)
            log.info("stop_requested", signal=name)
            stop.set()


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


def _freeze() -> None:
    """What exists now lives as long as the process. Looking through it again at every full
    collection would stall all streams for tens of milliseconds each time."""
    gc.collect()
    gc.freeze()


def _say_ready(name: ModelName, listeners: Listeners) -> None:
    """What a newcomer needs next, on standard output; logs go to standard error."""
    api, ops = (_address(sock) for sock in (listeners.api, listeners.ops))
    log.info("server_ready", version=__version__, model=name, api=api, ops=ops)
    sys.stdout.write(
        f"\nAntiphon {__version__} is ready.\n"
        f"  API         http://{api}/v1\n"
        f"  operations  http://{ops}/health/ready   /metrics   /ops/tree   /ops/slots\n"
        f"  model       {name}\n\n"
        f"Try it:\n"
        f"  curl -N http://{api}/v1/chat/completions -H 'Content-Type: application/json' "
        f'-d \'{{"model": "{name}", "stream": true, "messages": '
        f'[{{"role": "user", "content": "What is the capital of France?"}}]}}\'\n\n'
    )
    sys.stdout.flush()


def _address(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

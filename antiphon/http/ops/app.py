"""The operations listener: health, metrics, the tree, the slots and the event loop, as JSON. None
of it asks an actor: every source is a snapshot, so that it answers when everything else hangs. The
pages for people are in `pages`, commands in `commands`."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from quart import request
from quart_trio import QuartTrio
from quart_trio.wrappers import TrioResponse

from antiphon import __version__
from antiphon.actors.abuse.abuse import Abuse
from antiphon.actors.breaker import BreakerStatistics
from antiphon.errors import NoActor
from antiphon.http.boundary import BoundedApp
from antiphon.http.ops.abuse import AbuseRoutes
from antiphon.http.ops.commands import CommandRoutes, OpsCommands, command_error
from antiphon.http.ops.pages import PageRoutes
from antiphon.http.ops.policy import PolicyRoutes, PolicySource
from antiphon.http.ops.recent import Recent
from antiphon.http.ops.sources import OpsSources
from antiphon.http.ops.views import PoolStatus, SlotView
from antiphon.ids import ActorPath
from antiphon.ports import ReplicaStatistics
from antiphon.settings import HttpSettings
from antiphon.supervision.runtime import RuntimeStatistics
from antiphon.supervision.tree import Node, node_at
from antiphon.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeView:
    """What is true of the whole server and of no child."""

    loop: RuntimeStatistics
    slots: tuple[SlotView, ...]
    breakers: tuple[BreakerStatistics, ...]
    replicas: tuple[ReplicaStatistics, ...]
    pools: tuple[PoolStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RootNode(Node):
    """The root of the tree, with what belongs to no child of it."""

    runtime: RuntimeView


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpsRoutes:
    sources: OpsSources
    registry: CollectorRegistry

    def register(self, app: QuartTrio) -> None:
        pages = {
            "/health/live": self.live,
            "/health/ready": self.ready,
            "/metrics": self.metrics,
            "/ops/runtime": self.runtime,
            "/ops/breakers": self.breakers,
            "/ops/replicas": self.replicas,
            "/ops/pools": self.pools,
            "/ops/routing": self.routing,
            "/ops/store": self.store,
            "/ops/tree": self.tree,
            "/ops/slots": self.slots,
            "/ops/version": self.version,
        }
        for path, page in pages.items():
            app.add_url_rule(path, view_func=page, endpoint=path)
        app.add_url_rule("/ops/tree/<path:path>", view_func=self.subtree, endpoint="subtree")

    async def live(self) -> TrioResponse:
        """The event loop turns, or this would not be read."""
        return _json({"status": "ok"})

    async def ready(self) -> TrioResponse:
        """503 with the reasons while traffic should go elsewhere; reasons to worry come with
        200."""
        reasons = list(self.sources.not_ready())
        if reasons:
            return _json({"status": "not_ready", "reasons": reasons}, status=503)
        return _json({"status": "ready", "reasons": list(self.sources.concerns())})

    async def metrics(self) -> TrioResponse:
        """Prometheus text or OpenMetrics, as the scraper accepts."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return TrioResponse(encode(self.registry), content_type=content_type)

    async def runtime(self) -> TrioResponse:
        return _json(self.sources.runtime())

    async def breakers(self) -> TrioResponse:
        return _json([*self.sources.breakers()])

    async def replicas(self) -> TrioResponse:
        return _json([*self.sources.replicas()])

    async def pools(self) -> TrioResponse:
        return _json([*self.sources.pools()])

    async def routing(self) -> TrioResponse:
        """Where the last turns went, and why: no text."""
        return _json([*self.sources.routing()])

    async def store(self) -> TrioResponse:
        return _json(self.sources.store_statistics())

    async def tree(self) -> TrioResponse:
        """Everything that is known of the server, at one moment."""
        root = self.sources.tree()
        runtime = RuntimeView(
            loop=self.sources.runtime(),
            slots=tuple(self.sources.slots()),
            breakers=tuple(self.sources.breakers()),
            replicas=tuple(self.sources.replicas()),
            pools=tuple(self.sources.pools()),
        )
        shared = {field.name: getattr(root, field.name) for field in fields(root)}
        return _json(RootNode(**shared, runtime=runtime))

    async def subtree(self, path: str) -> TrioResponse:
        """One child, with its children."""
        node = node_at(self.sources.tree(), path)
        if node is None:
            return command_error(NoActor(ActorPath(path)))
        return _json(node)

    async def slots(self) -> TrioResponse:
        return _json([*self.sources.slots()])

    async def version(self) -> TrioResponse:
        return _json({"name": "antiphon", "version": __version__})


def make_ops_app(
    sources: OpsSources,
    settings: Callable[[], HttpSettings],
    registry: CollectorRegistry,
    telemetry: Telemetry,
    commands: OpsCommands,
    abuse: Abuse | None = None,
    policy: PolicySource | None = None,
    recent: Recent | None = None,
) -> QuartTrio:
    """The application behind the operations listener. `recent` is what the telemetry keeps of the
    last turns."""
    app = BoundedApp(__name__, settings, telemetry, is_openai=False)
    _OpsRoutes(sources=sources, registry=registry).register(app)
    PageRoutes(
        sources=sources,
        recent=recent or Recent(),
        registry=registry,
        policy=None if policy is None else policy.view,
        abuse=abuse,
    ).register(app)
    CommandRoutes(commands=commands, tree=sources.tree).register(app)
    if abuse is not None:
        AbuseRoutes(abuse=abuse, commands=commands).register(app)
    if policy is not None:
        PolicyRoutes(policy=policy, commands=commands).register(app)
    return app


def _json(value: object, *, status: int = 200) -> TrioResponse:
    return TrioResponse(
        msgspec.json.encode(value),
        status=status,
        headers={"cache-control": "no-store"},
        content_type="application/json",
    )

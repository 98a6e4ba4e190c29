"""The pools of one server, each wired from its own settings: what `app` puts into the tree.

Beside `app`, which need not know what a pool is made of.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec
import trio

from antiphon.actors.routing.router import RoutedPool, problem_of
from antiphon.actors.scheduling.engine_pool import EnginePool, PoolLimits
from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.engine.chat import ModelTokenizer
from antiphon.engine.models import PreparedModel
from antiphon.engine.upstream import Upstream, UpstreamModel
from antiphon.hosts import engine_launcher, model_tokenizer
from antiphon.ids import ModelName
from antiphon.live_settings import LiveSettings
from antiphon.ports import Contents, EngineLauncher, EngineLink, ModelCard
from antiphon.settings import Settings, check_model_names, pool_settings
from antiphon.supervision.spec import ChildSpec
from antiphon.telemetry import Telemetry
from antiphon.upstreams import EngineParts, make_upstream, upstream_parts

FIRST = ""
"""The pool of the settings' top level; all others have the names of their tables."""

Models = Mapping[str, PreparedModel | UpstreamModel]
"""What each pool serves, by the pool's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPool:
    """One pool, wired and not yet running."""

    id: str
    """Its child's, in the tree."""
    engine: EnginePool
    routed: RoutedPool
    upstream: Upstream | None = None

    @property
    def name(self) -> ModelName:
        return self.engine.pool.card.name

    def child(self) -> ChildSpec:
        return self.engine.supervisor.child(self.id)

    def problem(self) -> str | None:
        """Why no work should be sent here now, in words."""
        return problem_of(self.routed, trio.current_time())


def make_pools(
    live: LiveSettings,
    models: Models,
    telemetry: Telemetry,
    launchers: Mapping[str, EngineLauncher],
    contents: Contents | None = None,
) -> tuple[ServedPool, ...]:
    """The first one first. `launchers` take the place of those that the settings would give;
    `contents` are where the bytes of images are.

    Raises SettingsError when what the models are called contradicts the settings, ModelUnsupported.
    """
    names = served_names(live.current, models)
    tokenizers: dict[object, ModelTokenizer] = {}
    return tuple(
        _make_pool(
            live,
            key,
            models[key],
            ModelName(name),
            telemetry,
            launchers.get(key),
            tokenizers,
            contents,
        )
        for key, name in names.items()
    )


def served_names(settings: Settings, models: Models) -> dict[str, str]:
    """What clients call each model, by the pool's name. Raises SettingsError: what the settings
    alone could only guess is known by now."""
    names = {
        key: pool_settings(settings, key).model_name or models[key].name
        for key in (FIRST, *settings.pools)
    }
    check_model_names(settings, names)
    return names


def _make_pool(
    live: LiveSettings,
    key: str,
    model: PreparedModel | UpstreamModel,
    name: ModelName,
    telemetry: Telemetry,
    launcher: EngineLauncher | None,
    tokenizers: dict[object, ModelTokenizer],
    contents: Contents | None,
) -> ServedPool:
    def current() -> Settings:
        return pool_settings(live.current, key)

    def for_engine() -> Settings:
        return _beside_others(live.for_engine() if key == FIRST else live.current, key)

    settings = current()
    id = f"pool:{name.replace('/', ':')}"
    upstream: Upstream | None = None
    if isinstance(model, UpstreamModel):
        upstream = make_upstream(lambda: for_engine().upstream, model, contents)
        parts = upstream_parts(settings.upstream, model, upstream)
    else:
        # Pools of the same model share its tokenizer, and so what a prompt is as tokens.
        kind = (model.folder, settings.engine.kind == "tensorrt-llm")
        if kind not in tokenizers:
            tokenizers[kind] = model_tokenizer(settings, model)
        parts = EngineParts(
            launcher=launcher or _FreshLauncher(for_engine, model),
            tokenizer=tokenizers[kind],
            window=model.window,
        )
    engine = EnginePool(
        f"root/pools/{id}",
        ModelCard(name=name, created=model.created, owned_by="antiphon", window=parts.window),
        parts.launcher,
        telemetry,
        lambda: _limits(current()),
        tokenizer=parts.tokenizer,
        sampling_defaults=model.sampling,
        start_timeout_s=settings.engine.start_timeout_s,
        stop_grace_s=settings.engine.stop_grace_s,
        service=parts.service,
        sends_messages=parts.service is not None,
        count_prompt=parts.count_prompt,
        sees=parts.sees,
        step_tokens=settings.engine.step_tokens,
    )
    return ServedPool(
        id=id,
        engine=engine,
        upstream=upstream,
        routed=RoutedPool(
            pool=engine.pool,
            view=engine.view,
            smaller=None if settings.smaller is None else ModelName(settings.smaller),
            cost=live.current.pools[key].cost if key else 1.0,
            trouble=_nothing if upstream is None else upstream.problem,
        ),
    )


def _beside_others(settings: Settings, key: str) -> Settings:
    """A pool's settings for its next host. Two hosts would pin their threads to the same cores."""
    mine = pool_settings(settings, key)
    is_here = [pool_settings(settings, each).engine.kind for each in (FIRST, *settings.pools)]
    if is_here.count("openvino") < 2:
        return mine
    unpinned = msgspec.structs.replace(mine.openvino, pin_threads=False)
    return msgspec.structs.replace(mine, openvino=unpinned)


def _limits(settings: Settings) -> PoolLimits:
    """As the settings are now."""
    return PoolLimits(
        bounds=QueueBounds(
            max_requests=settings.queue.max_requests,
            max_tokens=settings.queue.max_tokens,
            deadline_s=settings.queue.deadline_s,
        ),
        turn_deadline_s=settings.generation.turn_deadline_s,
        default_max_tokens=settings.generation.default_max_tokens,
        silence_s=settings.engine.silence_s,
        scheduling=settings.scheduling,
    )


def _nothing() -> None:
    return None


class _FreshLauncher:
    """Starts each host with the settings of that moment."""

    def __init__(self, settings: Callable[[], Settings], model: PreparedModel) -> None:
        self._settings = settings
        self._model = model

    async def launch(self) -> EngineLink:
        """Raises HostStartFailed."""
        return await engine_launcher(self._settings(), self._model).launch()


def host_pids(pools: tuple[ServedPool, ...]) -> Iterator[int]:
    """The engine hosts that run now."""
    return (pid for pool in pools if (pid := pool.engine.status.pid) is not None)

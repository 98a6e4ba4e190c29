"""An upstream engine as the rest of the server uses it: wired to breakers, the tree and the pool.

Beside `app`, which need not know what an upstream is made of.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from antiphon.actors.breaker import Breaker, BreakerSpec
from antiphon.actors.scheduling.pool import CountPrompt
from antiphon.engine.upstream import EstimatingTokenizer, Upstream, UpstreamModel
from antiphon.errors import AntiphonError
from antiphon.kept_images import KeptImages
from antiphon.ports import ChatTokenizer, Contents, EngineLauncher
from antiphon.settings import Settings
from antiphon.supervision.context import ChildContext
from antiphon.supervision.spec import ChildSpec, Grace
from antiphon.upstream_settings import UpstreamSettings

_UNKNOWN_WINDOW = 1 << 20
"""Until the first replica says how long its window is: it will refuse by itself what is longer."""
_CIRCUIT = BreakerSpec(failures=5, reset_s=1.0, max_reset_s=30.0)
_STOP_S = 2.0
"""Its links are closed by then; what is left are probes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineParts:
    """What a pool is put together from. An engine that lives in a `service` is sent messages; one
    whose tokenizer only estimates has a `count_prompt`."""

    launcher: EngineLauncher
    tokenizer: ChatTokenizer
    window: int
    service: ChildSpec | None = None
    count_prompt: CountPrompt | None = None
    sees: Callable[[], bool | None] = lambda: False


def make_upstream(
    settings: Callable[[], UpstreamSettings],
    model: UpstreamModel,
    contents: Contents | None = None,
) -> Upstream:
    return Upstream(
        settings,
        lambda name: Breaker(name, _CIRCUIT),
        tokenizer=model.tokenizer,
        images=None if contents is None else KeptImages(contents),
    )


def upstream_parts(
    settings: UpstreamSettings, model: UpstreamModel, engine: Upstream
) -> EngineParts:
    async def start(context: ChildContext) -> None:
        await engine.run(context.ready, context.stopping)

    return EngineParts(
        launcher=engine,
        tokenizer=model.tokenizer or EstimatingTokenizer(),
        window=settings.window or _UNKNOWN_WINDOW,
        service=ChildSpec(id="replicas", start=start, shutdown=Grace(_STOP_S)),
        count_prompt=engine.count_prompt if model.tokenizer is None else None,
        sees=engine.sees,
    )


@asynccontextmanager
async def running_upstream(settings: Settings, model: UpstreamModel) -> AsyncIterator[Upstream]:
    """One whose service runs while inside, for those who have no tree."""
    upstream = make_upstream(lambda: settings.upstream, model)
    ready, stopping = trio.Event(), trio.Event()
    failure: AntiphonError | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upstream.run, ready.set, stopping)
        await ready.wait()
        try:
            yield upstream
        except AntiphonError as error:
            failure = error  # raised below, where no nursery makes a group of it
        finally:
            stopping.set()
    if failure is not None:
        raise failure

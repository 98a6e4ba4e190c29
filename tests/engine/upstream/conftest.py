"""An upstream over scripted replicas, in memory, and the rig on top of it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio

from antiphon.actors.breaker import Breaker
from antiphon.engine.upstream import Upstream
from antiphon.testing.replicas import ScriptedCluster
from antiphon.upstream_settings import UpstreamSettings

Running = Callable[..., AbstractAsyncContextManager[Upstream]]


@asynccontextmanager
async def _running(cluster: ScriptedCluster, **settings: Any) -> AsyncIterator[Upstream]:
    given = UpstreamSettings(
        **{"urls": cluster.urls, "model": "m", "slots": 8, "probe_s": 1.0, **settings}
    )
    upstream = Upstream(lambda: given, Breaker, connect=cluster.connect)
    stopping, ready = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upstream.run, ready.set, stopping)
        await ready.wait()
        try:
            yield upstream
        finally:
            stopping.set()


@pytest.fixture
def running() -> Running:
    """`running(cluster, **settings)`: an upstream whose service runs."""
    return _running

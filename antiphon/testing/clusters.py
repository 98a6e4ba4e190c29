"""Servers behind an upstream that a test may kill and bring back where they were."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import trio

from antiphon.engine.upstream import UpstreamModel
from antiphon.ids import ModelName
from antiphon.settings import EngineSettings, Settings
from antiphon.testing.llama import MODEL as LLAMA
from antiphon.testing.llama import running_llama
from antiphon.testing.models import prepared_default_model
from antiphon.testing.process import running_server
from antiphon.upstream_settings import UpstreamSettings
from antiphon.verifying.subjects import Subject, subject_of

KV_MIB = 16
"""So little that a test can fill it."""
LLAMA_SLOTS = 4
ANTIPHON_SLOTS = 8


class Running(Protocol):
    """A server in a process of its own."""

    @property
    def process(self) -> Any: ...

    @property
    def base_url(self) -> str: ...


Start = Callable[[int], AbstractContextManager[Running]]
"""Starts one on a port; 0 is any."""


class Replica:
    """One that can be killed and comes back on its port."""

    def __init__(self, start: Start, stack: ExitStack) -> None:
        self._start = start
        self._stack = stack
        self._server = stack.enter_context(start(0))
        self.base_url = self._server.base_url

    async def kill(self) -> None:
        """SIGKILL, and a new one in its place."""
        self._server.process.kill()
        await trio.to_thread.run_sync(self._come_back)

    def _come_back(self) -> None:
        self._server.process.wait()
        port = urlsplit(self.base_url).port
        assert port is not None
        self._server = self._stack.enter_context(self._start(port))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """An upstream's subject and the replicas behind it."""

    subject: Subject
    replicas: tuple[Replica, ...]


@asynccontextmanager
async def llamas(count: int, *, window: int = 256) -> AsyncIterator[Cluster]:
    """llama-servers with the default model."""

    def start(port: int) -> AbstractContextManager[Running]:
        return running_llama(slots=LLAMA_SLOTS, window=window, port=port)

    async with _cluster(start, count, LLAMA, LLAMA_SLOTS) as cluster:
        yield cluster


@asynccontextmanager
async def antiphons(count: int) -> AsyncIterator[Cluster]:
    """Antiphons with the default model."""

    def start(port: int) -> AbstractContextManager[Running]:
        return running_server(
            ANTIPHON_BIND=f"127.0.0.1:{port}",
            ANTIPHON_ENGINE_SLOTS=str(ANTIPHON_SLOTS),
            ANTIPHON_ENGINE_KV_CACHE_MIB=str(KV_MIB),
        )

    name = prepared_default_model().name
    async with _cluster(start, count, name, ANTIPHON_SLOTS) as cluster:
        yield cluster


@asynccontextmanager
async def _cluster(start: Start, count: int, model: str, slots: int) -> AsyncIterator[Cluster]:
    with ExitStack() as stack:
        replicas = tuple(Replica(start, stack) for _ in range(count))
        settings = Settings(
            engine=EngineSettings(kind="upstream"),
            upstream=UpstreamSettings(
                urls=tuple(replica.base_url for replica in replicas),
                model=model,
                slots=count * slots,
                probe_s=0.5,
                wait_s=30.0,
            ),
        )
        elsewhere = UpstreamModel(name=ModelName(model), tokenizer=None, created=0)
        async with subject_of(settings, elsewhere) as subject:
            yield Cluster(subject=subject, replicas=replicas)

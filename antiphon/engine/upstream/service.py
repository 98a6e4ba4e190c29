"""The upstream engine: its replicas and their probes for as long as the server runs, and a link for
each driver that asks for one. A child of the pool's supervisor, before the driver.
"""

from collections.abc import Callable, Mapping, Sequence

import trio

from antiphon.engine.upstream.counting import Counter, TextTokenizer
from antiphon.engine.upstream.exchange import Connect, connector
from antiphon.engine.upstream.fleet import Fleet, Replica
from antiphon.engine.upstream.generation import Means
from antiphon.engine.upstream.imagery import sees
from antiphon.engine.upstream.link import UpstreamLink
from antiphon.engine.upstream.ports import CircuitBreaker, Images
from antiphon.engine.upstream.probes import Probe
from antiphon.engine.upstream.urls import base_of, name_of
from antiphon.errors import HostStartFailed
from antiphon.events import Message
from antiphon.ports import ReplicaStatistics
from antiphon.upstream_settings import UpstreamSettings


class Upstream:
    """An EngineLauncher. `settings` are asked for at each launch; what is known of a replica
    outlives links, and its service too."""

    def __init__(
        self,
        settings: Callable[[], UpstreamSettings],
        make_breaker: Callable[[str], CircuitBreaker],
        *,
        tokenizer: TextTokenizer | None = None,
        connect: Connect | None = None,
        images: Images | None = None,
    ) -> None:
        self._settings = settings
        self._images = images
        self._make_breaker = make_breaker
        self._tokenizer = tokenizer
        self._connect = connect
        self._replicas: dict[str, Replica] = {}
        self.fleet: Fleet | None = None
        self._counter: Counter | None = None
        self.link: UpstreamLink | None = None
        """The last one that was launched."""
        self._nursery: trio.Nursery | None = None
        self._probing = trio.CancelScope()

    async def run(self, ready: Callable[[], None], stopping: trio.Event) -> None:
        """Until `stopping`; links and probes live in here."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                ready()
                await stopping.wait()
                nursery.cancel_scope.cancel("the upstream's service stops")
        finally:
            self._nursery = None

    async def launch(self) -> UpstreamLink:
        """A link with the settings of this moment. Raises HostStartFailed."""
        await trio.lowlevel.checkpoint()
        if self._nursery is None:
            raise HostStartFailed("the upstream's service does not run")
        settings = self._settings()
        if self._connect is None:
            self._connect = connector()
        headers = headers_of(settings)
        self._replicas = {url: self._replica(url) for url in map(base_of, settings.replicas)}
        fleet = self.fleet = Fleet(
            self._replicas.values(),
            slots=settings.slots,
            balance=settings.balance,
            clock=trio.current_time,
        )
        self._probing.cancel("the replicas are probed anew")
        self._probing = trio.CancelScope()
        probes = [
            Probe(replica, fleet, settings, self._connect, headers)
            for replica in self._replicas.values()
        ]
        self._nursery.start_soon(_run_all, probes, self._probing)
        self._counter = Counter(
            self._connect,
            headers,
            settings.model,
            connect_s=settings.connect_s,
            tokenizer=self._tokenizer,
        )
        means = Means(
            settings=settings,
            fleet=fleet,
            connect=self._connect,
            headers=headers,
            counter=self._counter,
            images=self._images,
        )
        link = self.link = UpstreamLink(means)
        self._nursery.start_soon(link.run)
        return link

    async def count_prompt(self, messages: Sequence[Message]) -> int | None:
        """As a replica counts them; None when none does."""
        await trio.lowlevel.checkpoint()
        if self.fleet is None or self._counter is None:
            return None
        for replica in self.fleet.up:
            if (count := await self._counter.count_prompt(replica, messages)) is not None:
                return count
        return None

    def sees(self) -> bool | None:
        """Whether a replica sees images; None while nobody knows."""
        replicas = () if self.fleet is None else self.fleet.replicas.values()
        facts = [replica.facts for replica in replicas if replica.facts is not None]
        return sees(self._settings(), facts)

    def problem(self) -> str | None:
        """Why no traffic should come now; None when it should."""
        return "starting" if self.fleet is None else self.fleet.problem()

    def statistics(self) -> tuple[ReplicaStatistics, ...]:
        return () if self.fleet is None else self.fleet.statistics()

    def _replica(self, url: str) -> Replica:
        """The one that is known already, or a new one."""
        known = self._replicas.get(url)
        return known or Replica(url, name_of(url), self._make_breaker(f"replica {name_of(url)}"))


async def _run_all(probes: list[Probe], scope: trio.CancelScope) -> None:
    with scope:
        async with trio.open_nursery() as nursery:
            for probe in probes:
                nursery.start_soon(probe.run)


def headers_of(settings: UpstreamSettings) -> Mapping[str, str]:
    """What every request carries."""
    if settings.api_key is None:
        return {}
    return {"authorization": f"Bearer {settings.api_key}"}

"""One look at every replica, for people who want to know before they start a server. Blocking."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import trio

from antiphon.engine.upstream.exchange import Connect, connector
from antiphon.engine.upstream.fleet import Fleet, Replica
from antiphon.engine.upstream.probes import Probe
from antiphon.engine.upstream.service import headers_of
from antiphon.engine.upstream.urls import base_of, name_of
from antiphon.upstream_settings import UpstreamSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one replica said."""

    name: str
    is_well: bool
    fact: str


class _NoBreaker:
    circuit = "closed"

    def admit(self) -> AbstractContextManager[None]:
        return nullcontext()

    def statistics(self) -> "_NoBreaker":
        return self


def survey(settings: UpstreamSettings, connect: Connect | None = None) -> list[Look]:
    """Every replica at once, each for as long as a probe waits."""
    return trio.run(_survey, settings, connect or connector())


async def _survey(settings: UpstreamSettings, connect: Connect) -> list[Look]:
    replicas = [Replica(url, name_of(url), _NoBreaker()) for url in map(base_of, settings.replicas)]
    fleet = Fleet(replicas, slots=1, balance=settings.balance, clock=trio.current_time)
    async with trio.open_nursery() as nursery:
        for replica in replicas:
            probe = Probe(replica, fleet, settings, connect, headers_of(settings))
            nursery.start_soon(probe.look)
    return [_look(replica, settings) for replica in replicas]


def _look(replica: Replica, settings: UpstreamSettings) -> Look:
    facts = replica.facts
    if facts is None or not replica.is_up:
        return Look(name=replica.name, is_well=False, fact=replica.last_error or "no answer")
    if not settings.window and facts.window is None:
        fact = "it doesn't say how long its window is: set upstream.window"
        return Look(name=replica.name, is_well=False, fact=fact)
    window = settings.window or facts.window
    fact = f"{facts.engine or 'an unknown server'}, {settings.model}, {window} tokens"
    return Look(name=replica.name, is_well=True, fact=fact)

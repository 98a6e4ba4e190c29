"""Whom nothing is done against, by the settings. Pure."""

import ipaddress
from functools import lru_cache

from antiphon.actors.abuse.signals import Kind, Subject

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def is_exempt(exempted: tuple[str, ...], subject: Subject) -> bool:
    """`exempted` are ids of users, addresses and networks."""
    if not exempted:
        return False
    if subject.kind is Kind.USER:
        return subject.id in exempted
    return _is_within(exempted, subject.id)


@lru_cache(maxsize=4096)
def _is_within(exempted: tuple[str, ...], address: str) -> bool:
    found = _network(address)
    return found is not None and any(_holds(network, found) for network in _networks(exempted))


@lru_cache(maxsize=16)
def _networks(exempted: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(network for each in exempted if (network := _network(each)) is not None)


def _network(text: str) -> Network | None:
    """None for a user's id."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _holds(outer: Network, inner: Network) -> bool:
    """Whether they have an address in common: of IPv6 a subscriber's network is one address."""
    return outer.version == inner.version and outer.overlaps(inner)

"""Whose address a request comes from. Pure: what a client says of itself counts for nothing, and
what a proxy says only where the settings trust it."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

UNKNOWN = "unknown"
_IPV6_PREFIX = 64
"""What one subscriber is given; a single address of it is worth nothing."""


def client_address(peer: str | None, forwarded: str, trusted: Sequence[str]) -> str:
    """Who speaks to us or to the first of our proxies. `forwarded` is `X-Forwarded-For`, whose last
    entries the proxies next to us have written."""
    address = _parsed(peer or "")
    if address is None:
        return UNKNOWN
    if trusted and forwarded:
        for hop in reversed(forwarded.split(",")):
            if not _is_trusted(address, tuple(trusted)):
                break
            before = _parsed(hop.strip())
            if before is None:  # nothing that stands further left can be believed either
                break
            address = before
    return _shown(address)


@lru_cache(maxsize=4096)
def is_loopback(address: str) -> bool:
    parsed = _parsed(address.partition("/")[0])
    return parsed is not None and parsed.is_loopback


def is_somebodys(address: str, trusted: Sequence[str]) -> bool:
    """Whether what comes from there can be held against whoever is there: not against this machine,
    nor against a proxy that says nothing of its client."""
    parsed = _parsed(address.partition("/")[0])
    return not (parsed is None or parsed.is_loopback or _is_trusted(parsed, tuple(trusted)))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Address | None:
    """Also with a port, as some proxies write it."""
    host = text.partition("%")[0]
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


@lru_cache(maxsize=16)
def _networks(trusted: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(each, strict=False) for each in trusted)


def _is_trusted(address: Address, trusted: tuple[str, ...]) -> bool:
    return any(address in network for network in _networks(trusted))


def _shown(address: Address) -> str:
    if address.version == 4 or address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))

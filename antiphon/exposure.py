"""Who can reach the API: other machines only once a key exists, since without one everybody who
gets through to it may do everything."""

import ipaddress
import socket

import structlog
import trio

from antiphon.errors import SettingsError, StoreError, StoreUnavailable
from antiphon.settings import Settings, parse_bind
from antiphon.storage import OpenStore

log = structlog.get_logger(__name__)

_RETRY_S = 2.0


def is_local(host: str) -> bool:
    """Whether only this machine reaches a listener there. A name is as local as its addresses; one
    that has none can't be bound either, which is told by who tries."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return True
    addresses = {str(address[0]).partition("%")[0] for *_, address in found}
    return all(ipaddress.ip_address(address).is_loopback for address in addresses)


def check_exposure(settings: Settings, open_store: OpenStore) -> None:
    """Before anything is bound. Raises SettingsError where others could reach an API without
    keys, or where that can't be told."""
    host, _ = parse_bind("bind", settings.bind)
    if is_local(host):
        return
    others = f"{settings.bind} can be reached from other machines"
    try:
        has_keys = trio.run(_has_keys, open_store, settings.database.start_wait_s)
    except StoreError as error:
        problem = f"{others}, and whether there is an API key can't be told: {error}"
        raise SettingsError("bind", problem) from error
    if not has_keys:
        raise SettingsError(
            "bind",
            f"{others} and there is no API key yet: make one with `antiphon keys create`, or bind "
            "to 127.0.0.1",
        )


async def _has_keys(open_store: OpenStore, patience_s: float) -> bool:
    deadline = trio.current_time() + patience_s
    while True:
        try:
            async with open_store() as store:
                return await store.has_keys()
        except StoreUnavailable as error:
            if trio.current_time() + _RETRY_S > deadline:
                raise
            log.warning("store_waiting", reason=error.reason)
        await trio.sleep(_RETRY_S)

"""The settings of the abuse brakes: the section `brakes`, read and checked by `settings`."""

import ipaddress

import msgspec

from antiphon.errors import SettingsError


class BrakeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What nobody does who uses the API as it is meant. 0 is no brake. Each rate has a burst: that
    many come at once before it counts."""

    failed_keys_per_minute: float = 60.0
    """Requests with a wrong key, from one address: a program that was left with an old one sends
    fewer, since SDKs don't retry a 401."""
    failed_keys_burst: int = 60
    address_per_s: float = 500.0
    """Requests from one address. A proxy in front is one address, unless it is in
    `trusted_proxies`."""
    address_burst: int = 2_000
    key_per_s: float = 250.0
    """Requests with one key: more than one machine can answer."""
    key_burst: int = 1_000
    blocked_prompts_per_hour: float = 30.0
    """Prompts of one user that the policy has blocked."""
    blocked_prompts_burst: int = 30
    addresses: int = 10_000
    """How many addresses, and how many keys, are remembered; the ones seen last. About 200 bytes
    each."""
    trusted_proxies: str | tuple[str, ...] = ()
    """Addresses and networks whose `X-Forwarded-For` says who the client is; as one text, with
    commas between."""

    @property
    def proxies(self) -> tuple[str, ...]:
        """As a tuple, in either form."""
        given = self.trusted_proxies
        each = given.split(",") if isinstance(given, str) else given
        return tuple(proxy.strip() for proxy in each if proxy.strip())


def check_brakes(settings: BrakeSettings) -> None:
    """What no single field's type can tell. Raises SettingsError."""
    for proxy in settings.proxies:
        try:
            ipaddress.ip_network(proxy, strict=False)
        except ValueError as error:
            problem = f"must be addresses and networks, not {proxy!r}"
            raise SettingsError("brakes.trusted_proxies", problem) from error

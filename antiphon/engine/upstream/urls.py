"""The parts of a replica's address. Pure."""

from urllib.parse import urlsplit, urlunsplit


def base_of(url: str) -> str:
    """Where `/chat/completions` stands; somebody who names only a host means `/v1`."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") or "/v1", "", ""))


def root_of(base: str) -> str:
    """Where `/health` stands: above the version."""
    parts = urlsplit(base)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rpartition("/")[0], "", ""))


def name_of(base: str) -> str:
    """What operators and metrics call it: no scheme, and no version where it is the usual one."""
    parts = urlsplit(base)
    return f"{parts.netloc}{parts.path.removesuffix('/v1')}"

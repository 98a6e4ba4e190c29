"""The settings of the policy: the section `policy`, read and checked by `settings`."""

from pathlib import Path
from typing import Literal

import msgspec

from antiphon.errors import SettingsError


class PolicySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How texts are judged. What they are judged by is the rules' file."""

    enabled: bool = True
    rules: Path | None = None
    """A TOML file; without one, the rules that come with the server. It is read again when it
    changes."""
    workers: int = 1
    """Processes that judge. One scores a short text in a few milliseconds."""
    deadline_s: float = 1.0
    """How long a turn waits for a verdict. After it, each rule's `on_failure` decides."""
    queue: int = 256
    """Texts that wait for a worker; the next is not judged, as if its deadline had passed."""
    upstream_url: str | None = None
    """Where rules of kind `upstream` ask: the base of an OpenAI-compatible API, with its `/v1`."""
    upstream_key_env: str | None = None
    """The environment variable that holds the key for it."""
    upstream_model: str = "omni-moderation-latest"
    events: Literal["all", "acted", "none"] = "all"
    """Which findings the store keeps: `acted` leaves out those of shadows and annotations."""


def check_policy(settings: PolicySettings) -> None:
    """What no single field's type can tell. Raises SettingsError."""
    url = settings.upstream_url
    if url is not None and not url.startswith(("http://", "https://")):
        raise SettingsError("policy.upstream_url", "must begin with http:// or https://")

"""The settings of an upstream engine: the section `upstream`, read and checked by `settings`."""

from typing import Literal
from urllib.parse import urlsplit

import msgspec

from antiphon.errors import SettingsError


class UpstreamSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Servers that speak the OpenAI API and do the work, with `engine.kind` "upstream": replicas of
    one model. `docs/engines.md` says which servers have which quirks."""

    urls: str | tuple[str, ...] = ()
    """Base URLs, `http://host:port/v1`; in a variable, with commas between them."""
    model: str = ""
    """What they call the model."""
    api_key: str | None = None
    slots: int = 64
    """Generations at once over all replicas; more wait here, by our rules and not by theirs."""
    window: int = 0
    """Prompt plus answer in tokens; 0 takes what the first replica says, and waits for it."""
    tokenizer: str | None = None
    """The model's own, as a reference like `model` or as a folder with its `tokenizer.json`:
    prompts are then counted exactly. Without one they are estimated."""
    prompts: Literal["messages", "tokens"] = "messages"
    """What is sent. Tokens need the tokenizer, and a server that takes them for `/completions`."""
    connect_s: float = 3.0
    idle_s: float = 60.0
    """Nothing from a replica for this long ends a generation; before the first token a proxy's
    comments count as something."""
    total_s: float = 600.0
    """The longest that a generation may take."""
    wait_s: float = 5.0
    """How long a generation waits while no replica takes it."""
    probe_s: float = 2.0
    """How often each replica is asked whether it is well."""
    balance: float = 1.25
    """A conversation leaves its replica when that one has clearly more than this many times the
    mean load."""
    logprobs: bool = True
    json_schema: bool = True
    seed: bool = True
    """What they can do; what they can't is refused with 400. vLLM samples slower with seeds."""
    extras: Literal["auto", "on", "off"] = "auto"
    """Whether they know `top_k`, `min_p` and the like: OpenAI's own API refuses them."""
    vision: Literal["auto", "on", "off"] = "auto"
    """Whether the model sees images. With `auto`, what the replicas say of it: llama-server, SGLang
    and another Antiphon do, vLLM and TensorRT-LLM don't."""
    image_tokens: int = 0
    """About how many tokens an image takes there; 0 estimates it by its size, as Qwen2-VL counts:
    one for each 28 × 28 pixels, from 4 to 16,384."""
    cache_salt: bool = False
    """Whether they know `cache_salt` (vLLM, TensorRT-LLM), which keeps tenants' prefixes apart."""

    @property
    def replicas(self) -> tuple[str, ...]:
        """The URLs, each once, without what people add at the ends."""
        urls = self.urls.split(",") if isinstance(self.urls, str) else self.urls
        return tuple(dict.fromkeys(url.strip().rstrip("/") for url in urls if url.strip()))

    def __repr__(self) -> str:
        """Without the key."""
        return f"UpstreamSettings(model={self.model!r}, urls={self.urls!r}, slots={self.slots!r})"


def check_upstream(upstream: UpstreamSettings) -> None:
    """What no single field can tell. Raises SettingsError."""
    if not upstream.replicas:
        raise SettingsError("upstream.urls", "must name at least one replica")
    for url in upstream.replicas:
        if not _is_http_url(url):  # not shown, since it may hold a password
            problem = "must be http:// or https:// URLs without user names and queries"
            raise SettingsError("upstream.urls", problem)
    if not upstream.model.strip():
        raise SettingsError("upstream.model", "must say what the replicas call the model")
    if upstream.prompts == "tokens" and upstream.tokenizer is None:
        raise SettingsError("upstream.prompts", "can be tokens only with upstream.tokenizer")
    if upstream.vision == "on" and upstream.prompts == "tokens":
        raise SettingsError("upstream.vision", "can be on only where upstream.prompts is messages")
    if upstream.balance < 1:
        raise SettingsError("upstream.balance", "must be at least 1")
    if upstream.api_key is not None and not upstream.api_key.isprintable():
        raise SettingsError("upstream.api_key", "must be what can stand in a header")


def _is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        return False
    is_bare = not parts.query and not parts.fragment and parts.username is None
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_bare

"""Every setting of the server, in one frozen value: defaults, then a TOML file, then `ANTIPHON_*`
variables.

Nothing else reads the environment. Unknown keys and contradictions stop the start with one line
that names the key.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from antiphon.errors import SettingsError

_PREFIX = "ANTIPHON_"


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The engine host of the one model. 0 means "let the host choose" where it says so."""

    slots: int = 32
    """Generations at once; measured on two cores, tokens/s stop rising there."""
    threads: int = 0
    """Inference threads; 0 is all cores."""
    kv_cache_mib: int = 1024
    """Memory for the KV cache. Blocks are reserved for prompt plus longest answer, so this
    bounds admission."""
    kv_precision: Literal["u8", "f16"] = "u8"
    """One byte a value holds nearly twice the tokens of two."""
    step_tokens: int = 128
    """Tokens a step may process: smaller keeps other streams smooth during a long prefill,
    larger prefills faster."""
    prefix_cache: bool = True
    start_timeout_s: float = 120.0
    """Loading a large model from a slow disk takes long; past this the host is killed."""
    silence_s: float = 20.0
    """A host that has work and reports no step for this long is hung and is killed."""
    stop_grace_s: float = 5.0


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much may wait for a slot before the answer is 503."""

    max_requests: int = 256
    max_tokens: int = 262_144
    """Prompt plus longest answer of all that waits, in tokens."""
    deadline_s: float = 60.0
    """A request that waited this long is refused; SDKs give up or retry about then."""


class GenerationSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds on one answer."""

    default_max_tokens: int = 1024
    """The longest answer when a client names none: KV is reserved for it, so "to the end of the
    window" would let
    one silent client take the room of many."""
    max_choices: int = 16
    turn_deadline_s: float = 900.0
    """A backstop, so that no turn outlives every client's patience."""


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The API listener's patience, in seconds and bytes."""

    max_body_bytes: int = 8 * 1024 * 1024
    body_timeout_s: float = 30.0
    idle_timeout_s: float = 15.0
    """A connection without a request, or one that dribbles its headers, is closed after this."""
    write_timeout_s: float = 10.0
    """A reader that takes nothing for this long is dropped."""
    heartbeat_s: float = 5.0
    """A comment line while a stream has nothing to say; proxies cut silent ones after 30 to 60
    s."""
    headers_after_s: float = 5.0
    """A stream's headers wait for its first event, so that a refusal has a real status, but no
    longer than this."""
    max_connections: int = 1024


class ShutdownSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long the server takes to stop."""

    drain_s: float = 20.0
    """Streams may run on for this long after SIGTERM."""
    budget_s: float = 30.0
    """The whole ordered stop; must be longer than the drain."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration. `ANTIPHON_BIND` sets `bind`, `ANTIPHON_ENGINE_SLOTS` sets
    `engine.slots`."""

    bind: str = "127.0.0.1:8000"
    ops_bind: str = "127.0.0.1:8001"
    data_dir: Path = Path("~/.local/share/antiphon")
    model: str = "smollm2-135m-instruct"
    """A catalogue name, or a path to a GGUF file, an OpenVINO IR folder or a Hugging Face
    checkpoint folder."""
    model_name: str | None = None
    """What clients call the model; by default the catalogue name, or the file's or folder's
    name."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "text", "json"] = "auto"
    """`auto` is text on a terminal and JSON elsewhere."""
    engine: EngineSettings = EngineSettings()
    queue: QueueSettings = QueueSettings()
    generation: GenerationSettings = GenerationSettings()
    http: HttpSettings = HttpSettings()
    shutdown: ShutdownSettings = ShutdownSettings()


def load_settings(file: Path | None, environ: Mapping[str, str]) -> Settings:
    """Defaults, overlaid by `file`, overlaid by the `ANTIPHON_*` entries of `environ`. Raises
    SettingsError."""
    raw = _read_toml(file) if file is not None else {}
    for name, value in environ.items():
        if name.startswith(_PREFIX):
            _overlay(raw, name, value)
    settings = _convert(raw)
    _check(settings)
    return msgspec.structs.replace(settings, data_dir=settings.data_dir.expanduser().absolute())


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError("--config", f"cannot read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError("--config", f"{file} is not TOML: {error}") from error


def _overlay(raw: dict[str, Any], name: str, value: str) -> None:
    """Put one variable at its key; a section's name is the first word:
    ANTIPHON_QUEUE_DEADLINE_S."""
    key = name.removeprefix(_PREFIX).lower()
    if key in _TOP_LEVEL:
        raw[key] = value
        return
    section, _, rest = key.partition("_")
    if section not in _SECTIONS or rest not in _SECTIONS[section]:
        raise SettingsError(name, "unknown variable")
    table = raw.setdefault(section, {})
    if not isinstance(table, dict):
        raise SettingsError(section, "must be a table")
    table[rest] = value


def _convert(raw: dict[str, Any]) -> Settings:
    try:
        # Variables are strings, so numbers are taken from strings too; msgspec still refuses "abc".
        return msgspec.convert(raw, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise _named(error) from error


def _named(error: msgspec.ValidationError) -> SettingsError:
    """msgspec ends its message with "- at `$.engine.slots`"; an unknown field is named in the
    message itself."""
    problem, _, place = str(error).partition(" - at `")
    key = place.rstrip("`").removeprefix("$").removeprefix(".")
    if "unknown field" in problem:
        unknown = problem.rpartition("unknown field ")[2].strip("`")
        return SettingsError(f"{key}.{unknown}".removeprefix("."), "unknown setting")
    return SettingsError(key or "settings", problem)


def _check(settings: Settings) -> None:
    for key in ("bind", "ops_bind"):
        parse_bind(key, getattr(settings, key))
    if settings.bind == settings.ops_bind and not settings.bind.endswith(":0"):
        raise SettingsError("ops_bind", f"must differ from bind ({settings.bind})")
    for section, names in _POSITIVE.items():
        part = getattr(settings, section)
        for name in names:
            if getattr(part, name) <= 0:
                raise SettingsError(f"{section}.{name}", "must be greater than 0")
    if settings.engine.threads < 0:
        raise SettingsError("engine.threads", "must be 0 or more")
    if settings.shutdown.drain_s >= settings.shutdown.budget_s:
        raise SettingsError("shutdown.drain_s", "must be less than shutdown.budget_s")


def parse_bind(key: str, value: str) -> tuple[str, int]:
    """Split "127.0.0.1:8000" or "[::1]:8000" into host and port. Raises SettingsError."""
    host, separator, port = value.rpartition(":")
    if not separator or not host or not port.isdecimal() or int(port) > 65_535:
        raise SettingsError(key, f"must be host:port, not {value!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


_SECTIONS: dict[str, tuple[str, ...]] = {
    "engine": EngineSettings.__struct_fields__,
    "queue": QueueSettings.__struct_fields__,
    "generation": GenerationSettings.__struct_fields__,
    "http": HttpSettings.__struct_fields__,
    "shutdown": ShutdownSettings.__struct_fields__,
}
_TOP_LEVEL = frozenset(Settings.__struct_fields__) - _SECTIONS.keys()
_POSITIVE = {
    section: tuple(
        name for name in names if name not in {"threads", "prefix_cache", "kv_precision"}
    )
    for section, names in _SECTIONS.items()
}

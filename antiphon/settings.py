"""Every setting of the server, in one frozen value: defaults, then a TOML file, then `ANTIPHON_*`
variables.

Nothing else reads the environment. Unknown keys and contradictions stop the start with one line
that names the key.
"""

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from antiphon.errors import SettingsError
from antiphon.fault_plan import FaultPlan
from antiphon.openvino_settings import OpenVinoSettings, check_openvino
from antiphon.trt_settings import TrtSettings, check_trt
from antiphon.upstream_settings import UpstreamSettings, check_upstream

_PREFIX = "ANTIPHON_"


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The engine host of the one model. 0 means "let the host choose" where it says so."""

    kind: Literal["openvino", "tensorrt-llm", "upstream"] = "openvino"
    """OpenVINO runs on any CPU; TensorRT-LLM needs an NVIDIA GPU and the extra `trt`; `upstream`
    is somebody else's OpenAI-compatible server."""
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
    prefix_cache: Literal["tenant", "shared", "off"] = "tenant"
    """Which prompts find the KV blocks of earlier ones, and so have their first token sooner: those
    of the same tenant; anybody's, so that one can time what others have asked; or none."""
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
    max_file_bytes: int = 64 * 1024 * 1024
    """An uploaded file goes to the disk as it comes, so this bounds disk and not memory."""
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


class DatabaseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where conversations, keys and usage are kept, and how long anybody waits for it."""

    url: str | None = None
    """`postgresql://user:password@host/name`; without one, SQLite in a file under `data_dir`."""
    durability: Literal["normal", "full"] = "normal"
    """Of SQLite: after a power cut, `normal` may have lost the last moments, but is whole; `full`
    waits for the disk at every write. A crash of the server loses nothing in either. PostgreSQL
    has `synchronous_commit` for this."""
    deadline_s: float = 10.0
    """One operation, its waiting included, is given up after this."""
    start_wait_s: float = 60.0
    """How long the start waits for a PostgreSQL that doesn't answer yet."""
    concurrency: int = 8
    """Operations at once, and connections to PostgreSQL. SQLite writes one after another."""

    def __repr__(self) -> str:
        """Without the address, which may hold a password."""
        place = "SQLite" if self.url is None else "PostgreSQL"
        return f"DatabaseSettings({place}, deadline_s={self.deadline_s!r})"


class RetentionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many days what is stored is kept after its end; 0 is until somebody deletes it. Texts and
    figures each have their own. Usage is kept, without text."""

    claims_days: float = 1.0
    """Idempotency keys: no client repeats a request after a day."""
    events_days: float = 30.0
    """A stream that ended can be watched again, event by event, for this long; its text stays."""
    responses_days: float = 0.0
    """Responses in no conversation, with their texts; OpenAI keeps them for 30 days."""
    traces_days: float = 90.0
    """When and how fast: no text."""


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
    ops_token: str | None = None
    """What operator commands must carry as a bearer token; without one they are all refused."""
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
    faults: str | None = None
    """What goes wrong on purpose (`antiphon.faults`): for tests of the server, never for
    production."""
    engine: EngineSettings = EngineSettings()
    openvino: OpenVinoSettings = OpenVinoSettings()
    upstream: UpstreamSettings = UpstreamSettings()
    trt: TrtSettings = TrtSettings()
    queue: QueueSettings = QueueSettings()
    generation: GenerationSettings = GenerationSettings()
    http: HttpSettings = HttpSettings()
    database: DatabaseSettings = DatabaseSettings()
    retention: RetentionSettings = RetentionSettings()
    shutdown: ShutdownSettings = ShutdownSettings()

    def __repr__(self) -> str:
        """Without the token, which must not end in a log or a traceback."""
        shown = (
            f"{name}={getattr(self, name)!r}"
            for name in self.__struct_fields__
            if name != "ops_token"
        )
        return f"Settings({', '.join(shown)})"


def load_settings(file: Path | None, environ: Mapping[str, str]) -> Settings:
    """Defaults, overlaid by `file`, overlaid by the `ANTIPHON_*` entries of `environ`. Raises
    SettingsError."""
    raw = _read_toml(file) if file is not None else {}
    # The file alone first, so that its mistakes are told by its own keys.
    settings = _convert(raw)
    overlaid = False
    for name, value in sorted(environ.items()):
        if name.startswith(_PREFIX):
            _overlay(raw, name, value)
            overlaid = True
    settings = _convert(raw) if overlaid else settings
    check_settings(settings)
    return msgspec.structs.replace(settings, data_dir=_home_expanded(settings.data_dir))


def reload_settings(file: Path | None, environ: Mapping[str, str]) -> Settings:
    """As load_settings, of a file that was read before: a pipe would be empty by now, and every
    setting in it back at its default. Raises SettingsError."""
    if file is not None and not file.expanduser().is_file():
        raise SettingsError("--config", f"{file} is no file that can be read again")
    return load_settings(file, environ)


def parse_bind(key: str, value: str) -> tuple[str, int]:
    """Split "127.0.0.1:8000" or "[::1]:8000" into host and port. Raises SettingsError."""
    host, separator, port = value.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    valid_host = bool(bare) and not any(c.isspace() or c in "[]" for c in bare)
    if not separator or not valid_host or (":" in bare) != bracketed:
        raise SettingsError(key, f"must be host:port, not {value!r}")
    if not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
        raise SettingsError(key, f"must end in a port from 0 to 65535, not {value!r}")
    return bare, int(port)


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError("--config", f"cannot read {file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also integers and nesting without end
        raise SettingsError("--config", f"{file} is not TOML: {error}") from error


def _overlay(raw: dict[str, Any], name: str, text: str) -> None:
    """Put one variable at its key; a section's name is the first word:
    ANTIPHON_QUEUE_DEADLINE_S."""
    key = name.removeprefix(_PREFIX).lower()
    section, _, rest = key.partition("_")
    if key in _TOP_LEVEL:
        table, field, kind = raw, key, _TOP_LEVEL[key]
    elif rest in _SECTIONS.get(section, {}):
        table, field, kind = raw.setdefault(section, {}), rest, _SECTIONS[section][rest]
    else:
        raise SettingsError(name, "unknown variable")
    # Compose files and unit files can only leave a variable empty, not unset it.
    if text:
        table[field] = _from_text(name, text, kind)


def _from_text(name: str, text: str, kind: Any) -> Any:
    """A variable's value in the type that the same key would have in a TOML file."""
    shown = repr(text if len(text) <= 40 else f"{text[:40]}…")
    try:
        if kind is bool:
            return _TRUTHS[text.lower()]
        if kind is int or kind is float:
            return kind(text)
    except (KeyError, ValueError) as error:
        raise SettingsError(name, f"must be {_KINDS[kind]}, not {shown}") from error
    if get_origin(kind) is Literal and text not in get_args(kind):
        raise SettingsError(name, f"must be one of {', '.join(get_args(kind))}, not {shown}")
    return text


def _convert(raw: dict[str, Any]) -> Settings:
    try:
        return msgspec.convert(raw, Settings, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise _named(error) from error


def _path(kind: type, value: object) -> object:
    """msgspec has no Path of its own."""
    if kind is not Path:
        raise NotImplementedError(kind)
    if not isinstance(value, str) or not value:
        raise ValueError("must be a path")
    return Path(value)


def _named(error: msgspec.ValidationError) -> SettingsError:
    """msgspec ends its message with "- at `$.engine.slots`"; an unknown field is named in the
    message itself."""
    problem, _, place = str(error).partition(" - at `")
    # An entry of a list is named as the list: a variable has no place for it.
    key = place.rstrip("`").removeprefix("$").removeprefix(".").partition("[")[0]
    if "unknown field" in problem:
        unknown = problem.rpartition("unknown field ")[2].strip("`")
        return SettingsError(f"{key}.{unknown}".removeprefix("."), "unknown setting")
    section, _, field = key.rpartition(".")
    kind = (_SECTIONS.get(section, {}) if section else _TOP_LEVEL).get(field)
    if problem.startswith("Invalid enum value") and get_origin(kind) is Literal:
        problem = f"must be one of {', '.join(get_args(kind))}"
    return SettingsError(key or "settings", problem)


def _home_expanded(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:  # "~name" of nobody, or no home at all
        raise SettingsError("data_dir", f"cannot find the home folder in {path}") from error


def check_settings(settings: Settings) -> None:
    """What no single field can tell. Raises SettingsError."""
    _check_binds(settings)
    for section, fields in _SECTIONS.items():
        for name, kind in fields.items():
            if kind is int or kind is float:
                _check_number(f"{section}.{name}", getattr(getattr(settings, section), name))
    for key, value in (("model", settings.model), ("model_name", settings.model_name)):
        if value is not None and not value.strip():
            raise SettingsError(key, "must not be empty")
    if settings.faults is not None:
        FaultPlan.parse(settings.faults)
    if settings.ops_token is not None:
        _check_token(settings.ops_token)
    if settings.engine.step_tokens < settings.engine.slots:
        # Each running stream takes one token of a step, so some would wait for ever.
        raise SettingsError("engine.step_tokens", "must be at least engine.slots")
    check_openvino(settings.openvino)
    check_trt(settings.trt)
    if settings.engine.kind == "upstream":
        check_upstream(settings.upstream)
    if settings.queue.max_tokens < settings.generation.default_max_tokens:
        raise SettingsError("queue.max_tokens", "must be at least generation.default_max_tokens")
    if settings.shutdown.drain_s >= settings.shutdown.budget_s:
        raise SettingsError("shutdown.drain_s", "must be less than shutdown.budget_s")


def _check_token(token: str) -> None:
    """Its text is never part of the problem."""
    if len(token) < _SHORTEST_TOKEN:
        raise SettingsError("ops_token", f"must have at least {_SHORTEST_TOKEN} characters")
    if not all("!" <= character <= "~" for character in token):
        raise SettingsError("ops_token", "must be visible ASCII without spaces, as a header is")


def _check_number(key: str, value: float) -> None:
    if not math.isfinite(value) or value > _LARGEST:
        raise SettingsError(key, f"must be a number up to {_LARGEST}")
    if key in _MAY_BE_ZERO:
        if value < 0:
            raise SettingsError(key, "must be 0 or more")
    elif value <= 0:
        raise SettingsError(key, "must be greater than 0")


def _check_binds(settings: Settings) -> None:
    host, port = parse_bind("bind", settings.bind)
    ops_host, ops_port = parse_bind("ops_bind", settings.ops_bind)
    hosts = {"127.0.0.1" if name == "localhost" else name for name in (host, ops_host)}
    if port == ops_port != 0 and (len(hosts) == 1 or hosts & _EVERY_ADDRESS):
        raise SettingsError("ops_bind", f"must differ from bind ({settings.bind})")


def _fields(struct: type) -> dict[str, Any]:
    return get_type_hints(struct)


_SECTIONS: dict[str, dict[str, Any]] = {
    name: _fields(kind)
    for name, kind in _fields(Settings).items()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
}
_TOP_LEVEL = {name: kind for name, kind in _fields(Settings).items() if name not in _SECTIONS}
_TRUTHS = {"true": True, "1": True, "yes": True, "on": True} | {
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}
_KINDS = {bool: "true or false", int: "a whole number", float: "a number"}
_SHORTEST_TOKEN = 16
_MAY_BE_ZERO = frozenset(
    {
        "engine.threads",
        "openvino.activation_group",
        "openvino.kv_group",
        "upstream.window",
        "retention.claims_days",
        "retention.events_days",
        "retention.responses_days",
        "retention.traces_days",
    }
)
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})
_LARGEST = 10**12
"""Far above any sense, and far below where a time or a size overflows."""

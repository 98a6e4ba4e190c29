"""Every setting of the server, in one frozen value: defaults, then a TOML file, then `ANTIPHON_*`
variables.

Nothing else reads the environment. Unknown keys and contradictions stop the start with one line
that names the key.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from antiphon.abuse_settings import AbuseSettings, check_abuse
from antiphon.alias_settings import AliasSettings
from antiphon.brake_settings import BrakeSettings, check_brakes
from antiphon.context_settings import ContextSettings, check_context
from antiphon.engine_settings import EngineSettings as EngineSettings
from antiphon.engine_settings import PoolSettings as PoolSettings
from antiphon.engine_settings import check_engine
from antiphon.errors import SettingsError
from antiphon.fault_plan import FaultPlan
from antiphon.files_settings import FilesSettings, check_files
from antiphon.model_names import check_names, served_name
from antiphon.near_names import nearest
from antiphon.openvino_settings import OpenVinoSettings
from antiphon.plan_settings import PlanSettings
from antiphon.policy_settings import PolicySettings, check_policy
from antiphon.prompts import is_prompt_name
from antiphon.reading_settings import ReadingSettings, check_reading
from antiphon.scheduling_settings import SchedulingSettings, check_scheduling
from antiphon.server_settings import DatabaseSettings as DatabaseSettings
from antiphon.server_settings import GenerationSettings as GenerationSettings
from antiphon.server_settings import HttpSettings as HttpSettings
from antiphon.server_settings import QueueSettings as QueueSettings
from antiphon.server_settings import RetentionSettings as RetentionSettings
from antiphon.server_settings import ShutdownSettings as ShutdownSettings
from antiphon.setting_numbers import MAY_BE_ZERO, check_number, check_numbers, numbers
from antiphon.trt_settings import TrtSettings
from antiphon.upstream_settings import UpstreamSettings

_PREFIX = "ANTIPHON_"
_NO_SETTINGS = frozenset({"ANTIPHON_API_KEY", "ANTIPHON_API_URL", "ANTIPHON_CONFIG"})
"""What may stand in the same environment: what `antiphon chat` reads, and where the file is."""


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
    smaller: str | None = None
    """The model of `pools` that may answer instead when the first one is overloaded, by its
    name."""
    pools: dict[str, PoolSettings] = {}
    aliases: dict[str, AliasSettings] = {}
    plans: dict[str, PlanSettings] = {}
    default_plan: str | None = None
    """The plan of users who have been given none; without one, nothing limits them."""
    queue: QueueSettings = QueueSettings()
    scheduling: SchedulingSettings = SchedulingSettings()
    generation: GenerationSettings = GenerationSettings()
    http: HttpSettings = HttpSettings()
    brakes: BrakeSettings = BrakeSettings()
    abuse: AbuseSettings = AbuseSettings()
    policy: PolicySettings = PolicySettings()
    context: ContextSettings = ContextSettings()
    reading: ReadingSettings = ReadingSettings()
    files: FilesSettings = FilesSettings()
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
        if name.startswith(_PREFIX) and name not in _NO_SETTINGS:
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
        near = nearest(key, (each.replace(".", "_") for each in _keys()))
        raise SettingsError(name, f"unknown variable{_meant(near and _PREFIX + near.upper())}")
    # Compose files and unit files can only leave a variable empty, not unset it.
    if text:
        table[field] = _from_text(name, text, kind)


def _meant(near: str | None) -> str:
    return "" if near is None else f"; did you mean {near}?"


def _keys() -> Iterator[str]:
    """Every setting that has a variable, as it is called in a file."""
    yield from _TOP_LEVEL
    for section, fields in _SECTIONS.items():
        yield from (f"{section}.{field}" for field in fields)


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
        key = f"{key}.{unknown}".removeprefix(".")
        near = nearest(key, [*_keys(), *_SECTIONS])
        return SettingsError(key, f"unknown setting{_meant(near)}")
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
                check_number(f"{section}.{name}", getattr(getattr(settings, section), name))
    for key, value in (("model", settings.model), ("model_name", settings.model_name)):
        if value is not None and not value.strip():
            raise SettingsError(key, "must not be empty")
    if settings.faults is not None:
        FaultPlan.parse(settings.faults)
    if settings.ops_token is not None:
        _check_token(settings.ops_token)
    check_engine(settings.engine, settings.openvino, settings.trt, settings.upstream)
    check_scheduling(settings.scheduling)
    check_brakes(settings.brakes)
    check_abuse(settings.abuse)
    check_policy(settings.policy)
    check_context(settings.context)
    check_reading(settings.reading)
    check_files(settings.files)
    _check_tables(settings)
    _check_prompts(settings)
    if settings.queue.max_tokens < settings.generation.default_max_tokens:
        raise SettingsError("queue.max_tokens", "must be at least generation.default_max_tokens")
    if settings.shutdown.drain_s >= settings.shutdown.budget_s:
        raise SettingsError("shutdown.drain_s", "must be less than shutdown.budget_s")


def _check_tables(settings: Settings) -> None:
    tables: dict[str, Mapping[str, msgspec.Struct]] = {
        "pools": settings.pools,
        "aliases": settings.aliases,
        "plans": settings.plans,
    }
    for section, table in tables.items():
        for name, value in table.items():
            if not name.strip():
                raise SettingsError(section, "a name must not be empty")
            check_numbers(f"{section}.{name}", value, zero=section != "pools")
    for name, pool in settings.pools.items():
        _check_pool(f"pools.{name}", pool)
    if settings.default_plan is not None and settings.default_plan not in settings.plans:
        raise SettingsError("default_plan", "must be one of plans")
    check_model_names(settings, model_names(settings))


def _check_prompts(settings: Settings) -> None:
    named = {f"aliases.{name}.prompt": alias.prompt for name, alias in settings.aliases.items()}
    for key, prompt in ({"context.prompt": settings.context.prompt} | named).items():
        if prompt is not None and not is_prompt_name(prompt):
            raise SettingsError(
                key, "must be a name of at most 64 letters, digits, dots, hyphens and underscores"
            )


def _check_pool(key: str, pool: PoolSettings) -> None:
    for name, value in (("model", pool.model), ("model_name", pool.model_name)):
        if value is not None and not value.strip():
            raise SettingsError(f"{key}.{name}", "must not be empty")
    for section in ("engine", "openvino", "upstream", "trt"):
        for field, number in numbers(getattr(pool, section)):
            check_number(
                f"{key}.{section}.{field}", number, zero=f"{section}.{field}" in MAY_BE_ZERO
            )
    try:
        check_engine(pool.engine, pool.openvino, pool.trt, pool.upstream)
    except SettingsError as error:
        raise SettingsError(f"{key}.{error.key}", error.problem) from error


def model_names(settings: Settings) -> dict[str, str]:
    """What each pool's model is called, by the pool's name; the first pool's is empty."""
    pools = {"": settings} | settings.pools
    return {
        key: served_name(
            pool.model_name,
            pool.upstream.model if pool.engine.kind == "upstream" else pool.model,
            is_path=pool.engine.kind != "upstream",
        )
        for key, pool in pools.items()
    }


def check_model_names(settings: Settings, names: Mapping[str, str]) -> None:
    """Whether everything that names a model names one of these. Raises SettingsError."""
    smaller = {"": settings.smaller} | {key: pool.smaller for key, pool in settings.pools.items()}
    check_names(names, smaller, settings.aliases, settings.plans)


def pool_settings(settings: Settings, name: str) -> Settings:
    """The settings as if that pool were the only one; an empty name stands for the first one."""
    if not name:
        return settings
    pool = settings.pools[name]
    return msgspec.structs.replace(
        settings,
        model=pool.model,
        model_name=pool.model_name,
        engine=pool.engine,
        openvino=pool.openvino,
        upstream=pool.upstream,
        trt=pool.trt,
        smaller=pool.smaller,
    )


def _check_token(token: str) -> None:
    """Its text is never part of the problem."""
    if len(token) < _SHORTEST_TOKEN:
        raise SettingsError("ops_token", f"must have at least {_SHORTEST_TOKEN} characters")
    if not all("!" <= character <= "~" for character in token):
        raise SettingsError("ops_token", "must be visible ASCII without spaces, as a header is")


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
_TOP_LEVEL = {
    name: kind
    for name, kind in _fields(Settings).items()
    # A table of tables has no place for a variable.
    if name not in _SECTIONS and get_origin(kind) is not dict
}
_TRUTHS = {"true": True, "1": True, "yes": True, "on": True} | {
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}
_KINDS = {bool: "true or false", int: "a whole number", float: "a number"}
_SHORTEST_TOKEN = 16
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})

"""What models are called, and whether settings that name models name existing ones. Pure."""

from collections.abc import Mapping
from pathlib import PurePath

from antiphon.alias_settings import AliasSettings
from antiphon.errors import SettingsError
from antiphon.plan_settings import PlanSettings

_FILE = ".gguf"


def served_name(given: str | None, model: str, *, is_path: bool) -> str:
    """What clients call a model: what the operator says, or else as its file or folder."""
    if given:
        return given
    if not is_path:
        return model
    name = PurePath(model).name or model
    return name.removesuffix(_FILE)


def check_names(
    names: Mapping[str, str],
    smaller: Mapping[str, str | None],
    aliases: Mapping[str, AliasSettings],
    plans: Mapping[str, PlanSettings],
) -> None:
    """`names` and `smaller` are by pool, the first one's key is empty. Raises SettingsError."""
    seen: dict[str, str] = {}
    for pool, name in names.items():
        if name in seen:
            problem = f"{name!r} is the name of another pool's model, too: set another one here"
            raise SettingsError(_key(pool, "model_name"), problem)
        seen[name] = pool
    _check_smaller(seen, smaller)
    for name, alias in aliases.items():
        _check_alias(name, alias, seen)
    for name, plan in plans.items():
        for model in plan.models:
            if model not in seen and model not in aliases:
                raise SettingsError(f"plans.{name}.models", f"there is no model {model!r}")


def _check_smaller(pools: Mapping[str, str], smaller: Mapping[str, str | None]) -> None:
    for pool, target in smaller.items():
        if target is not None and target not in pools:
            raise SettingsError(_key(pool, "smaller"), f"there is no model {target!r}")
    for pool in smaller:
        met, at = {pool}, smaller[pool]
        while at is not None:
            if pools[at] in met:
                raise SettingsError(_key(pool, "smaller"), "leads back to where it began")
            met.add(pools[at])
            at = smaller[pools[at]]


def _check_alias(name: str, alias: AliasSettings, pools: Mapping[str, str]) -> None:
    key = f"aliases.{name}"
    if name in pools:
        raise SettingsError(key, "is the name of a model")
    if not alias.models:
        raise SettingsError(f"{key}.models", "must not be empty")
    for model in alias.models:
        if model not in pools:
            raise SettingsError(f"{key}.models", f"there is no model {model!r}")
    if len(set(alias.models)) < len(alias.models):
        raise SettingsError(f"{key}.models", "names a model twice")
    if alias.canary is None:
        if alias.canary_share:
            raise SettingsError(f"{key}.canary_share", "needs canary")
        return
    if alias.canary not in pools:
        raise SettingsError(f"{key}.canary", f"there is no model {alias.canary!r}")
    if alias.canary == alias.models[0]:
        raise SettingsError(f"{key}.canary", "is the first of models already")
    if alias.canary_share > 1:
        raise SettingsError(f"{key}.canary_share", "must be at most 1")


def _key(pool: str, field: str) -> str:
    return f"pools.{pool}.{field}" if pool else field

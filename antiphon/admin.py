"""What the commands about people, keys, prompts and the database do, beside a server or without
one."""

import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import trio

from antiphon.actors.accounts.keys import hash_secret, new_secret, shown_prefix
from antiphon.actors.prompts.naming import named_prompts
from antiphon.context_records import PromptActivation, PromptVersion
from antiphon.database import contents, database_of, opener
from antiphon.errors import AdminError, SchemaMismatch, StoreUnavailable
from antiphon.ids import LOCAL_TENANT, LOCAL_USER, TenantId, new_key_id, new_user_id
from antiphon.persistence.bridge import TrioDatabase
from antiphon.prompts import LONGEST_TEXT, is_prompt_name, variables_of
from antiphon.records import ApiKey, Receipt, Scope, User
from antiphon.settings import Settings
from antiphon.storage import Store

R = TypeVar("R")

_SPAN = re.compile(r"(\d{1,5})([mhdw])")
_UNITS_S = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key, and the only copy of its secret."""

    secret: str
    key: ApiKey
    user: User
    is_first: bool


def with_store(settings: Settings, work: Callable[[Store], Awaitable[R]]) -> R:
    """Run the work with the store, its schema brought up to date. Raises AdminError, StoreError,
    SettingsError."""

    async def run() -> R:
        async with opener(settings)() as store:
            return await work(store)

    with _explained():
        return trio.run(run)


def with_database(settings: Settings, work: Callable[[TrioDatabase], Awaitable[R]]) -> R:
    """As `with_store`, with the database as it is."""

    async def run() -> R:
        async with database_of(settings) as database:
            return await work(database)

    with _explained():
        return trio.run(run)


@contextmanager
def _explained() -> Iterator[None]:
    """What to do about it, behind what went wrong."""
    try:
        yield
    except StoreUnavailable as error:
        raise AdminError(f"{error}; start the database, or correct database.url") from error
    except SchemaMismatch as error:
        raise AdminError(f"{error}; run `antiphon db migrate`, or a newer program") from error


async def create_key(
    store: Store,
    *,
    user: str | None,
    tenant: str | None,
    name: str,
    scopes: Collection[Scope],
    lifetime_s: int | None,
) -> NewKey:
    """Make a key for a user, who is made too where the name is new. Without a user it is the local
    one's, to whom everything belongs that was made before there were keys."""
    now_ms = _now_ms()
    owner = await _owner(store, user, tenant, now_ms)
    is_first = not await store.has_keys()
    secret = new_secret()
    key = ApiKey(
        id=new_key_id(),
        user=owner.id,
        prefix=shown_prefix(secret),
        name=name,
        scopes=frozenset(scopes) or frozenset({Scope.USER}),
        created_ms=now_ms,
        expires_ms=None if lifetime_s is None else now_ms + lifetime_s * 1000,
    )
    await store.add_key(key, hash_secret(secret))
    return NewKey(secret=secret, key=key, user=owner, is_first=is_first)


async def revoke_key(store: Store, key: str) -> ApiKey:
    """By its id or its prefix. Raises AdminError."""
    found = await find_key(store, key)
    return await store.revoke_key(found.id, _now_ms()) or found


async def find_key(store: Store, wanted: str) -> ApiKey:
    """By id, or by a prefix that only one has. Raises AdminError."""
    found = [each for each in await store.keys() if wanted in {each.id, each.prefix}]
    if len(found) != 1:
        problem = "no key has" if not found else f"{len(found)} keys have"
        raise AdminError(f"{problem} the id or prefix {wanted!r}; see `antiphon keys list`")
    return found[0]


async def find_user(store: Store, wanted: str, tenant: str | None = None) -> User:
    """By id, or by a name that only one has. Raises AdminError."""
    found = _matching(await store.users(), wanted, tenant)
    if len(found) != 1:
        problem = "there is no user" if not found else f"{len(found)} users are called"
        raise AdminError(f"{problem} {wanted!r}; see `antiphon users list`, and give the id")
    return found[0]


async def set_plan(settings: Settings, store: Store, wanted: str, plan: str | None) -> User:
    """Give a user a plan of the settings, or the default one. Raises AdminError."""
    if plan is not None and plan not in settings.plans:
        known = ", ".join(sorted(settings.plans)) or "none; is their file named with --config?"
        raise AdminError(f"there is no plan {plan!r}; the settings define: {known}")
    user = await find_user(store, wanted)
    return _still_there(await store.set_plan(user.id, plan), user)


async def suspend_user(store: Store, wanted: str, reason: str | None) -> User:
    """Serve a user no more, or, without a reason, again. Raises AdminError."""
    user = await find_user(store, wanted)
    return _still_there(await store.suspend_user(user.id, reason), user)


async def suspend_key(store: Store, wanted: str, reason: str | None) -> ApiKey:
    """As `suspend_user`, for one key, by its id or its prefix. Raises AdminError."""
    key = await find_key(store, wanted)
    suspended = await store.suspend_key(key.id, reason)
    if suspended is None:
        raise AdminError(f"key {key.id} is gone; see `antiphon keys list`")
    return suspended


def _still_there(found: User | None, user: User) -> User:
    if found is None:
        raise AdminError(f"user {user.id} is gone; see `antiphon users list`")
    return found


async def erase_user(settings: Settings, store: Store, wanted: str) -> Receipt:
    """Remove the user with everything that is theirs, contents of files included. Raises
    AdminError."""
    user = await find_user(store, wanted)
    receipt = await store.erase_user(user.id, _now_ms())
    if receipt is None:
        raise AdminError(f"user {user.id} is gone already")
    folder = contents(settings)
    for content in receipt.contents:
        await folder.remove(content, partial(_is_unused, store, content))
    return receipt


async def add_prompt(store: Store, name: str, text: str, note: str) -> PromptVersion:
    """The next version of a system prompt; a new name begins with the first. Raises AdminError."""
    if not is_prompt_name(name):
        raise AdminError(
            f"{name!r} can't be a prompt's name; take letters, digits, dots, hyphens and "
            "underscores, at most 64"
        )
    if not text.strip():
        raise AdminError("the prompt is empty; give its text in a FILE, or on standard input")
    if len(text) > LONGEST_TEXT:
        raise AdminError(f"the prompt has {len(text)} characters; shorten it to {LONGEST_TEXT}")
    if "\x00" in text:
        raise AdminError("the prompt has a NUL character; remove it")
    return await store.add_prompt(name, text, note, _now_ms())


async def find_prompt(store: Store, name: str, version: int | None) -> PromptVersion:
    """Without a version the newest. Raises AdminError."""
    found = await store.prompt_versions(name)
    if not found:
        raise AdminError(f"there is no prompt {name!r}; see `antiphon prompts list`")
    wanted = found[-1].version if version is None else version
    for each in found:
        if each.version == wanted:
            return each
    raise AdminError(
        f"prompt {name!r} has no version {version}; see `antiphon prompts list {name}`"
    )


async def activate_prompt(
    settings: Settings, store: Store, name: str, version: int, canaries: Mapping[int, float]
) -> PromptActivation:
    """Put a version in force, and others for their shares of conversations. Raises AdminError."""
    if version in canaries:
        raise AdminError(f"version {version} can't be its own canary; name another one")
    left = round(1.0 - sum(canaries.values()), 9)
    if left <= 0:
        raise AdminError("the canaries have all conversations; leave some for the version itself")
    arms = {version: left} | dict(canaries)
    for number in arms:
        found = await find_prompt(store, name, number)
        variables = variables_of(found.text)
        if variables and name in named_prompts(settings):
            raise AdminError(
                f"version {number} has variables ({', '.join(variables[:5])}), and the settings "
                "give this prompt to requests that have none; write them out"
            )
    return await store.activate_prompt(name, arms, _now_ms())


async def roll_back_prompt(store: Store, name: str) -> PromptActivation:
    """Put in force again what was in force before. Raises AdminError."""
    history = await store.prompt_activations(name)
    if not history:
        raise AdminError(f"no version of {name!r} is in force; see `antiphon prompts list`")
    for earlier in history[1:]:
        if earlier.arms != history[0].arms:
            return await store.activate_prompt(name, earlier.arms, _now_ms())
    raise AdminError(f"nothing else of {name!r} was ever in force; see `antiphon prompts list`")


def seconds(text: str) -> int:
    """A span such as 90m, 12h, 30d or 2w. Raises AdminError."""
    found = _SPAN.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise AdminError(f"{text!r} is no span of time; write it as 90m, 12h, 30d or 2w")
    return int(found[1]) * _UNITS_S[found[2]]


def state_of(key: ApiKey) -> str:
    """In one word."""
    if key.revoked_ms is not None:
        return "revoked"
    if key.suspended is not None:
        return "suspended"
    expired = key.expires_ms is not None and key.expires_ms <= _now_ms()
    return "expired" if expired else "active"


async def _owner(store: Store, wanted: str | None, tenant: str | None, now_ms: int) -> User:
    if wanted is None:
        local = User(id=LOCAL_USER, tenant=LOCAL_TENANT, name="local", created_ms=now_ms)
        await store.add_user(local)
        return await store.user(LOCAL_USER) or local
    if _matching(await store.users(), wanted, tenant):
        return await find_user(store, wanted, tenant)
    home = LOCAL_TENANT if tenant is None else TenantId(tenant)
    user = User(id=new_user_id(), tenant=home, name=wanted, created_ms=now_ms)
    await store.add_user(user)
    return user


def _matching(users: Collection[User], wanted: str, tenant: str | None) -> list[User]:
    return [
        user for user in users if wanted in {user.id, user.name} and tenant in {None, user.tenant}
    ]


async def _is_unused(store: Store, content: str) -> bool:
    return content in await store.unused_contents([content])


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

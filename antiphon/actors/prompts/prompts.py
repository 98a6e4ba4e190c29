"""The system prompts in force: read from the store, remembered for a moment, and for as long as the
store is away.

Versions never change, so each is read once; which of them are in force is looked at again and
again. Also a child of the tree, which looks ahead for those that the settings name: turns find
their prompt here without a wait.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import structlog
import trio

from antiphon.actors.accounts.cache import Cache
from antiphon.actors.accounts.flights import Flights
from antiphon.context_records import PromptActivation, PromptVersion
from antiphon.errors import StoreError
from antiphon.prompts import label_of, variables_of
from antiphon.storage import StoreAccess
from antiphon.supervision.context import ChildContext

log = structlog.get_logger(__name__)

FRESH_S = 3.0
"""An activation, made here or elsewhere, counts after this at the latest."""
LOOK_S = 2.0
"""How often those of the settings are looked at: before anybody would have to wait for it."""
_PATIENCE_S = 1.0
"""How long a look may take where an older answer would do."""
_VERSIONS = 256
_NAMES = 1024
_MISSING = 4096
"""What wasn't found has a place of its own, so that guesses don't push out prompts."""


class SystemPrompts:
    """`named`: those that the settings name, which are needed by every turn."""

    def __init__(self, store: StoreAccess, named: Callable[[], frozenset[str]]) -> None:
        self._store = store
        self._named = named
        self._activations: Cache[PromptActivation] = Cache(_NAMES)
        self._versions: Cache[PromptVersion] = Cache(_VERSIONS)
        self._missing: Cache[None] = Cache(_MISSING)
        self._flights = Flights()
        self._trouble: dict[str, str] = {}

    async def activation(self, name: str) -> PromptActivation | None:
        """Which versions of it are in force; None where none ever was. Raises StoreError where
        that isn't known."""
        while True:
            now = trio.current_time()
            known = self._activations.get(name)
            if known is not None and known.age_s(now) <= FRESH_S:
                return known.value
            if known is None and self._is_missing(name, now):
                return None
            look = partial(self._look, name)
            if known is None:
                await self._flights.share(name, look)
            elif await self._looked_in_vain(name, look):
                return known.value

    async def version(self, name: str, number: int) -> PromptVersion | None:
        """None where there is no such version. Raises StoreError where that isn't known."""
        label = label_of(name, number)
        while True:
            found = self._versions.get(label)
            if found is not None:
                return found.value
            if self._is_missing(label, trio.current_time()):
                return None
            await self._flights.share(label, partial(self._read, name, frozenset({number})))

    def in_force(self) -> tuple[PromptActivation, ...]:
        """What is in force of those that the settings name, as far as that is known."""
        known = (self._activations.get(name) for name in sorted(self._named()))
        return tuple(each.value for each in known if each is not None)

    def concern(self) -> str | None:
        """What an operator has to see to, in words."""
        return "; ".join(self._trouble[name] for name in sorted(self._trouble)) or None

    async def run(self, context: ChildContext) -> None:
        """A child's start function."""
        context.ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_looking)
            await context.stopping.wait()
            nursery.cancel_scope.cancel("it is told to stop")

    async def _keep_looking(self) -> None:
        while True:
            named = self._named()
            for name in self._trouble.keys() - named:
                del self._trouble[name]
            for name in sorted(named):
                await self._look_ahead(name)
            await trio.sleep(LOOK_S)

    async def _look_ahead(self, name: str) -> None:
        try:
            await self._flights.share(name, partial(self._look, name))
        except StoreError:
            return  # which says so itself; what was known counts on
        problem = await self._problem(name)
        if problem is None:
            self._trouble.pop(name, None)
        elif self._trouble.get(name) != problem:
            self._trouble[name] = problem
            log.warning("prompt_unusable", prompt=name, reason=problem)

    async def _problem(self, name: str) -> str | None:
        """Why the settings name it in vain. Everything that is asked here was just read."""
        known = self._activations.get(name)
        if known is None:
            return f"no version of prompt {name!r} is in force: antiphon prompts activate"
        for number in sorted(known.value.arms):
            version = self._versions.get(label_of(name, number))
            if version is not None and variables_of(version.value.text):
                return f"version {number} of prompt {name!r} has variables, which nobody gives"
        return None

    async def _look(self, name: str) -> None:
        found = await self._store.run(lambda store: store.prompt_activations(name))
        now = trio.current_time()
        if not found:
            self._activations.forget(name)
            self._missing.put(name, None, now)
            return
        latest = found[0]
        unread = {
            number for number in latest.arms if self._versions.get(label_of(name, number)) is None
        }
        if unread:  # before it counts: what counts must be there when the store isn't
            await self._read(name, frozenset(unread))
        known = self._activations.get(name)
        if known is None or known.value.number != latest.number:
            log.info("prompt_in_force", prompt=name, activation=latest.number, arms=latest.arms)
        self._missing.forget(name)
        self._activations.put(name, latest, now)

    async def _read(self, name: str, numbers: frozenset[int]) -> None:
        found = await self._store.run(lambda store: store.prompt_versions(name))
        now = trio.current_time()
        wanted = {each.version: each for each in found if each.version in numbers}
        for number in numbers:
            label = label_of(name, number)
            if number in wanted:
                self._missing.forget(label)
                self._versions.put(label, wanted[number], now)
            else:
                self._missing.put(label, None, now)

    def _is_missing(self, key: str, now: float) -> bool:
        known = self._missing.get(key)
        return known is not None and known.age_s(now) <= FRESH_S

    async def _looked_in_vain(self, name: str, look: Callable[[], Awaitable[None]]) -> bool:
        try:
            with trio.move_on_after(_PATIENCE_S):
                await self._flights.share(name, look)
                return False
        except StoreError:
            pass
        return True

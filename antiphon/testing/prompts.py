"""A store that knows system prompts alone, for what runs on a clock that a test moves: the real one
works in threads, which such a clock doesn't wait for."""

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

import trio

from antiphon.context_records import PromptActivation, PromptVersion
from antiphon.storage import Store

R = TypeVar("R")


class PromptStore:
    """Its own `StoreAccess`. `before` runs ahead of each unit of work, and may wait or raise."""

    def __init__(self) -> None:
        self.before: Callable[[], Awaitable[None]] | None = None
        self.asked: list[str] = []
        self._versions: list[PromptVersion] = []
        self._activations: list[PromptActivation] = []

    def add(self, name: str, text: str) -> int:
        """The number of the new version."""
        number = 1 + sum(each.name == name for each in self._versions)
        self._versions.append(
            PromptVersion(name=name, version=number, text=text, note="", created_ms=1)
        )
        return number

    def activate(self, name: str, **arms: float) -> None:
        """`v1=0.9, v2=0.1`."""
        number = 1 + sum(each.name == name for each in self._activations)
        shares = {int(version.removeprefix("v")): share for version, share in arms.items()}
        self._activations.append(
            PromptActivation(name=name, number=number, arms=shares, created_ms=1)
        )

    async def run(self, work: Callable[[Store], Awaitable[R]]) -> R:
        await trio.lowlevel.checkpoint()
        if self.before is not None:
            await self.before()
        return await work(cast("Store", self))

    async def prompt_versions(self, name: str | None = None) -> tuple[PromptVersion, ...]:
        self.asked.append("versions")
        return tuple(each for each in self._versions if name in {None, each.name})

    async def prompt_activations(self, name: str | None = None) -> tuple[PromptActivation, ...]:
        self.asked.append("activations")
        found = (each for each in self._activations if name in {None, each.name})
        return tuple(reversed(tuple(found)))

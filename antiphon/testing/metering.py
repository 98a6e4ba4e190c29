"""A meter that a test scripts: it holds, settles and releases in lists instead of a database."""

from dataclasses import dataclass, field

import trio

from antiphon.errors import AntiphonError
from antiphon.events import Turn
from antiphon.turn_events import RateLimit, Usage


@dataclass(eq=False)
class ScriptedCharge:
    """One reservation, and what became of it."""

    turn: Turn
    prompt_tokens: int
    max_tokens: int
    limits: tuple[RateLimit, ...] = ()
    settled: list[Usage] = field(default_factory=list)
    released: int = 0

    @property
    def is_open(self) -> bool:
        return not self.settled and not self.released

    async def settle(self, usage: Usage) -> None:
        if self.is_open:
            self.settled.append(usage)
        await trio.lowlevel.checkpoint()

    async def release(self) -> None:
        if self.is_open:
            self.released += 1
        await trio.lowlevel.checkpoint()


@dataclass(eq=False)
class ScriptedMeter:
    """Raises `error` where there is one; else every turn gets a charge with `limits`."""

    error: AntiphonError | None = None
    limits: tuple[RateLimit, ...] = ()
    charges: list[ScriptedCharge] = field(default_factory=list)

    async def reserve(self, turn: Turn, *, prompt_tokens: int, max_tokens: int) -> ScriptedCharge:
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        charge = ScriptedCharge(turn, prompt_tokens, max_tokens, self.limits)
        self.charges.append(charge)
        return charge

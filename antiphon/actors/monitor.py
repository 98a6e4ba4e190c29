"""A monitor: one word, once, when the incarnation that was alive at its making has ended."""

from collections.abc import Callable
from dataclasses import dataclass

import trio

from antiphon.ids import ActorPath
from antiphon.supervision.exits import Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """That incarnation is over. `exit` is None when there never was one."""

    path: ActorPath
    incarnation: int
    exit: Exit | None


class Monitor:
    """Made by `Ref.monitor`. Fires at most once; cancel it when its news is no longer wanted."""

    __slots__ = ("_cancelled", "_event", "_forget", "_notify", "down")

    def __init__(
        self, *, notify: Callable[[Down], None] | None, forget: Callable[["Monitor"], None]
    ) -> None:
        self.down: Down | None = None
        """What happened, once it has."""
        self._notify = notify
        self._forget = forget
        self._event: trio.Event | None = None
        self._cancelled = False

    async def wait(self) -> Down:
        """Return when the target is down; at once if it already is."""
        if self.down is None:
            if self._event is None:
                self._event = trio.Event()
            await self._event.wait()
            assert self.down is not None
        else:
            await trio.lowlevel.checkpoint()
        return self.down

    def cancel(self) -> None:
        """No Down is delivered after this. Idempotent."""
        self._cancelled = True
        self._forget(self)

    def fire(self, down: Down) -> None:
        """For the address only."""
        if self._cancelled or self.down is not None:
            return
        self.down = down
        if self._event is not None:
            self._event.set()
        if self._notify is not None:
            self._notify(down)

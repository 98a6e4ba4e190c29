"""The one-shot slot in which an asker waits for its answer.

It closes when the asker stops waiting; an answer after that is dropped and counted, so that it can
never be mistaken for the answer to a later ask.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import trio

from antiphon.ids import ActorPath

R = TypeVar("R")

waiting_chain: ContextVar[tuple[ActorPath, ...]] = ContextVar("waiting_chain", default=())
"""The actors that can't go on until the current task's work is done; `ask` refuses to add one
twice."""


class Reply(Generic[R]):
    """Travels in the message. The actor calls `send` or `fail`, in the handler or at any later
    time; if it dies first, the asker is told."""

    __slots__ = (
        "_error",
        "_on_settled",
        "_settled",
        "_value",
        "_waiter",
        "chain",
        "closed",
        "deadline",
    )

    def __init__(
        self,
        *,
        deadline: float,
        chain: tuple[ActorPath, ...] = (),
        on_settled: Callable[["Reply[Any]", bool], None] | None = None,
    ) -> None:
        """`on_settled` is told of an answer, with whether it came late, and of the closing."""
        self.deadline = deadline
        """When the asker stops waiting, on Trio's clock."""
        self.chain = chain
        """The actors that wait for this answer."""
        self.closed = False
        self._settled = False
        self._value: R | None = None
        self._error: Exception | None = None
        self._waiter: trio.lowlevel.Task | None = None
        self._on_settled = on_settled

    def send(self, value: R) -> bool:
        """Answer. False, and nothing happens, when the asker no longer waits or has an answer."""
        if not self._settle():
            return False
        self._value = value
        self._wake()
        return True

    def fail(self, error: Exception) -> bool:
        """Answer with an error, which `ask` raises. A refusal is a reply, not a crash."""
        if not self._settle():
            return False
        self._error = error
        self._wake()
        return True

    @property
    def settled(self) -> bool:
        """Whether it has been answered."""
        return self._settled

    async def wait(self) -> R:
        """For the asker: the value, or raises what `fail` was given."""
        if not self._settled:
            self._waiter = trio.lowlevel.current_task()

            def abort(_: object) -> trio.lowlevel.Abort:
                self._waiter = None
                return trio.lowlevel.Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(abort)
        else:
            await trio.lowlevel.checkpoint()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # settled without an error: it is an R

    def close(self) -> None:
        """The asker waits no longer. Idempotent."""
        self.closed = True
        if not self._settled and self._on_settled is not None:
            self._on_settled(self, False)

    def _settle(self) -> bool:
        late = self.closed or self._settled
        if self._on_settled is not None:
            self._on_settled(self, late)
        if late:
            return False
        self._settled = True
        return True

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            trio.lowlevel.reschedule(waiter)

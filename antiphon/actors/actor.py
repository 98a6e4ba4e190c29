"""The actor loop: one message at a time, from an address, inside one incarnation.

A message that crashes its handler is not delivered again; its asker gets ActorCrashed. Several
messages are handled per wake-up, but never without letting other tasks run.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

import structlog
import trio

from antiphon import faults
from antiphon.actors.address import Address
from antiphon.actors.ref import Ref
from antiphon.actors.reply import waiting_chain
from antiphon.fault_plan import Site
from antiphon.ids import ActorPath
from antiphon.supervision.context import ChildContext
from antiphon.supervision.exits import exit_of
from antiphon.supervision.spec import (
    DEFAULT_BACKOFF,
    DEFAULT_GRACE,
    Backoff,
    ChildSpec,
    Restart,
    Shutdown,
)

log = structlog.get_logger(__name__)

M = TypeVar("M")

_BATCH = 32
"""Messages between two checkpoints: cheap enough to hide the checkpoint's cost, short enough that a
busy actor doesn't hold up the others."""
_CLEAN_UP_S = 2.0
"""How long a crashed actor's `terminate` may take: its asks and monitors have been told already,
but its next incarnation waits."""


class ActorContext(Generic[M]):
    """What an actor is given at `start`: itself as others see it, and its own nursery."""

    def __init__(self, address: Address[M], child: ChildContext, nursery: trio.Nursery) -> None:
        self._address = address
        self._child = child
        self._nursery = nursery
        self.handoff = address.handoff.value
        """What an earlier incarnation saved, None if nothing: check what it is before use."""
        self.ended = False

    @property
    def ref(self) -> Ref[M]:
        return self._address.ref

    @property
    def path(self) -> ActorPath:
        return self._child.path

    @property
    def incarnation(self) -> int:
        return self._child.incarnation

    @property
    def backlog(self) -> int:
        """Messages that wait to be taken, among them some that nobody wants any more."""
        return len(self._address.mailbox)

    @property
    def stopping(self) -> trio.Event:
        """Set when the supervisor orders the stop; a long handler may watch it."""
        return self._child.stopping

    @property
    def stop_deadline(self) -> float:
        """When the actor will be cancelled, on Trio's clock, once it is stopping."""
        return self._child.stop_deadline

    @property
    def leaving(self) -> bool:
        """Whether the ordered stop is for good."""
        return self._child.leaving

    def start_soon(self, task: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run a task beside the message loop. Its crash is the actor's crash; it is cancelled when
        the actor has terminated."""
        self._nursery.start_soon(_beside, self.path, task, args, name=f"{self.path}/{_name(task)}")

    def save(self, value: object) -> None:
        """Leave a small frozen value to the next incarnation, in place of what was saved before.

        It is forgotten when the actor stops for good, and dropped when incarnations that were given
        it keep crashing. After a crash nothing is saved any more. Raises SpecError for a value that
        is large or can change.
        """
        self._address.handoff.save(self.path, value)

    def stop(self) -> None:
        """End after the current message and what waits on the system lane: exit Normal."""
        self.ended = True
        self._address.mailbox.wake()


class Actor(Protocol[M]):
    """One incarnation of an actor. Every method may be a plain function or `async`; plain ones are
    cheaper."""

    def start(self, me: ActorContext[M]) -> Awaitable[None] | None:
        """Get ready; siblings that depend on this actor wait for it."""

    def handle(self, message: M) -> Awaitable[None] | None:
        """One message. Raising ends the incarnation: refuse with `reply.fail`, crash on bugs."""

    def terminate(self) -> Awaitable[None] | None:
        """Give everything back: after a stop, and (for a bounded time, shielded) after a crash.

        Not called when `start` failed or the actor was killed: what must never leak is released in
        a `finally` of the task that holds it.
        """


def actor_child(
    id: str,
    make: Callable[[], Actor[M]],
    address: Address[M],
    *,
    restart: Restart = Restart.PERMANENT,
    shutdown: Shutdown = DEFAULT_GRACE,
    kill_grace_s: float = 2.0,
    init_timeout_s: float = 10.0,
    backoff: Backoff = DEFAULT_BACKOFF,
    significant: bool = False,
) -> ChildSpec:
    """A child that runs the actor `make` builds, a new one for each incarnation, at `address`."""

    async def start(context: ChildContext) -> None:
        await _run(make, address, context)

    return ChildSpec(
        id=id,
        start=start,
        restart=restart,
        shutdown=shutdown,
        kill_grace_s=kill_grace_s,
        init_timeout_s=init_timeout_s,
        backoff=backoff,
        significant=significant,
        lifecycle=address,
    )


async def _run(make: Callable[[], Actor[M]], address: Address[M], child: ChildContext) -> None:
    child.observe(address.mailbox.statistics)
    child.on_stop(address.mailbox.wake)
    waiting_chain.set((child.path,))
    actor = make()
    started = finished = False
    try:
        async with trio.open_nursery() as nursery:
            me = ActorContext(address, child, nursery)
            await faults.pause(Site.ACTOR_START, child.path)
            await _maybe(actor.start(me))
            started = True
            child.ready()
            await _serve(actor, me, address, child)
            finished = True
            waiting_chain.set((child.path,))
            await _terminate(actor, child)
            nursery.cancel_scope.cancel("the actor has terminated")
    except BaseException as error:
        if exit_of(error) is not None and not finished:
            address.crashed()
            if started:
                with trio.move_on_after(_CLEAN_UP_S, shield=True) as scope:
                    await _clean_up(actor, child)
                if scope.cancelled_caught:
                    log.error("terminate_cut", path=child.path, after_s=_CLEAN_UP_S)
        raise


async def _serve(
    actor: Actor[M], me: ActorContext[M], address: Address[M], child: ChildContext
) -> None:
    mailbox = address.mailbox
    own_chain = (child.path,)
    chained = True
    handled = 0
    while True:
        # The stop stands at the end of the system lane: cancels and releases sent before it are
        # still handled, what waits on the user lane is not.
        leaving = me.ended or child.stopping.is_set()
        entry = address.take(system_only=leaving)
        if entry is None:
            if leaving:
                return
            await mailbox.wait()
            continue
        if entry.reply is not None:
            waiting_chain.set((*entry.reply.chain, child.path))
            chained = False
        elif not chained:
            waiting_chain.set(own_chain)
            chained = True
        await faults.pause(Site.ACTOR_HANDLE, child.path)
        pending = actor.handle(entry.message)
        if pending is not None:
            await pending
        mailbox.done()
        handled += 1
        if handled % _BATCH == 0:
            await trio.lowlevel.checkpoint()


async def _clean_up(actor: Actor[Any], child: ChildContext) -> None:
    try:
        await _terminate(actor, child)
    except Exception as error:
        # The crash that led here is the one to report as the exit; this is the second fact.
        log.error("terminate_failed", path=child.path, error=repr(error), exc_info=error)


async def _terminate(actor: Actor[Any], child: ChildContext) -> None:
    await faults.pause(Site.ACTOR_TERMINATE, child.path)
    await _maybe(actor.terminate())


async def _beside(
    path: ActorPath, task: Callable[..., Awaitable[object]], args: tuple[Any, ...]
) -> None:
    # The message loop doesn't wait for this task, so asking the actor itself is no cycle.
    chain = waiting_chain.get()
    if chain and chain[-1] == path:
        waiting_chain.set(chain[:-1])
    await task(*args)


async def _maybe(pending: Awaitable[None] | None) -> None:
    if pending is not None:
        await pending


def _name(task: Callable[..., Any]) -> str:
    return getattr(task, "__name__", type(task).__name__)

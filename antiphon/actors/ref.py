"""The sending side of an actor's address: tell, ask, monitor.

A ref stays valid whatever happens to the actor. Asks go only downward in the tree; upward, tell.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from antiphon.actors.mailbox import Overflow
from antiphon.actors.monitor import Down, Monitor
from antiphon.actors.reply import Reply, waiting_chain
from antiphon.errors import AskTimeout, CallCycle
from antiphon.ids import ActorPath

if TYPE_CHECKING:
    from antiphon.actors.address import Address

M_contra = TypeVar("M_contra", contravariant=True)
R = TypeVar("R")


class Ref(Generic[M_contra]):
    """Got from `Address.ref`. A ref to an actor that takes more messages is one to an actor that
    takes fewer: hand out `Ref[WhatIWantToHear]` of yourself."""

    __slots__ = ("_address",)

    def __init__(self, address: "Address[M_contra]") -> None:
        self._address = address

    def __repr__(self) -> str:
        return f"<Ref {self.path}>"

    @property
    def path(self) -> ActorPath:
        return self._address.path

    @property
    def incarnation(self) -> int:
        """The current incarnation, or the last one; 0 before the first."""
        return self._address.incarnation

    @property
    def alive(self) -> bool:
        """Whether an incarnation runs now. Stale as soon as anything is awaited."""
        return self._address.alive

    def tell(self, message: M_contra) -> None:
        """Send and forget. To a stopped actor it is a counted dead letter, not an error.

        Raises MailboxFull as the mailbox's overflow policy says.
        """
        self._address.mailbox.put_nowait(message)

    def tell_system(self, message: M_contra) -> None:
        """Send ahead of everything on the user lane; never refused. For cancels and releases."""
        self._address.mailbox.put_system(message)

    async def ask(self, make: Callable[[Reply[R]], M_contra], *, deadline_s: float) -> R:
        """Send what `make` builds around a reply slot, and wait for the answer.

        Raises whatever the actor passed to `reply.fail`, AskTimeout, MailboxFull, ActorCrashed (it
        died with this message in hand), ActorStopped, and CallCycle instead of a deadlock.
        """
        address = self._address
        chain = waiting_chain.get()
        if address.path in chain:
            raise CallCycle((*chain, address.path))
        began = trio.current_time()
        deadline = began + deadline_s
        reply: Reply[R] = Reply(
            deadline=min(deadline, trio.current_effective_deadline()),
            chain=chain,
            on_settled=address.settled,
        )
        message = make(reply)
        try:
            with trio.move_on_at(deadline):
                if address.mailbox.overflow is Overflow.BLOCK:
                    await address.mailbox.put(message, reply)
                else:
                    address.mailbox.put_nowait(message, reply)
                return await reply.wait()
        finally:
            reply.close()
        raise AskTimeout(address.path, trio.current_time() - began)

    def monitor(self, notify: Callable[[Down], None] | None = None) -> Monitor:
        """Watch the current incarnation; `notify` is called synchronously, once, when it ends.

        When none is alive the answer comes at once, also to `notify`, before this returns. To get
        it as a message: `ref.monitor(lambda down: me.ref.tell_system(OwnerDown(down)))`.
        """
        return self._address.monitor(notify)


AnyRef = Ref[Any]
"""A ref used for its path or its monitor, whatever it takes."""

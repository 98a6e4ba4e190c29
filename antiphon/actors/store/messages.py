"""What the store actor is told: one unit of work a message."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from antiphon.actors.reply import Reply
from antiphon.storage import Store

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Do(Generic[R]):
    """Run `work`, whether or not somebody still waits for it, unless `expires_at` has passed on
    Trio's clock before it began."""

    work: Callable[[Store], Awaitable[R]]
    reply: Reply[R]
    expires_at: float


StoreMessage = Do[Any]

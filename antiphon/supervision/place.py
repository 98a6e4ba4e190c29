"""In which child of which supervisor the current task runs: how a call that could only wait for
itself is recognised."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol


class Holder(Protocol):
    """A supervisor, as far as its own place matters."""

    @property
    def place(self) -> "Place | None": ...


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    supervisor: Holder
    id: str


current_place: ContextVar[Place | None] = ContextVar("current_place", default=None)


def child_on_the_way_to(supervisor: Holder) -> str | None:
    """The id of the supervisor's child that the current task runs in, at whatever depth."""
    place = current_place.get()
    while place is not None and place.supervisor is not supervisor:
        place = place.supervisor.place
    return None if place is None else place.id

"""The tree as people read it, line by line, and ages as they read them: shared by the page and the
terminal, so that both say the same. It knows no snapshot type, only what a branch looks like."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

_MANY = 16
"""A supervisor with more children than this shows how many, not each: sessions come and go."""


class Branch(Protocol):
    """A child and those below it."""

    @property
    def path(self) -> str: ...
    @property
    def children(self) -> Sequence[Self]: ...


B = TypeVar("B", bound=Branch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Generic[B]):
    """One line of the tree: `rails` is the drawing that leads to it, `hidden` the number of its
    children that are not shown."""

    rails: str
    name: str
    node: B
    hidden: int


def rows(node: B, rails: str = "", below: str = "") -> Iterator[Row[B]]:
    """The tree in reading order."""
    shown: Sequence[B] = node.children if len(node.children) <= _MANY else ()
    yield Row(
        rails=rails,
        name=node.path.rpartition("/")[2],
        node=node,
        hidden=len(node.children) - len(shown),
    )
    for child in shown:
        last = child is shown[-1]
        yield from rows(
            child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")
        )


def format_age(seconds: float | None) -> str:
    """As people read it: 0.4 s, 12 s, 3 min, 5 h, 2 d."""
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:.0f} d"

"""The page for people: the tree, the slots and the event loop, drawn on the server from the same
snapshots as the JSON pages. No script and no build step; the browser loads it again by itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import jinja2

from antiphon.ids import RequestId, SlotIndex
from antiphon.supervision.runtime import RuntimeStatistics
from antiphon.supervision.tree import Node

_REFRESH_S = 2
_MANY = 12
"""A supervisor with more workers than this shows how many, not each: sessions come and go."""
_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("antiphon.http.ops", "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


class Slot(Protocol):
    """What the strip of slots shows of each."""

    @property
    def slot(self) -> SlotIndex: ...
    @property
    def state(self) -> str: ...
    @property
    def request_id(self) -> RequestId | None: ...
    @property
    def tokens(self) -> int: ...
    @property
    def age_s(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the tree: `rails` is the drawing that leads to it, `hidden` the number of its
    children that are not shown."""

    rails: str
    name: str
    node: Node
    hidden: int


def rows(node: Node, rails: str = "", below: str = "") -> Iterator[Row]:
    """The tree in reading order."""
    shown = node.children if len(node.children) <= _MANY else ()
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


def render_page(
    tree: Node,
    slots: Sequence[Slot],
    runtime: RuntimeStatistics,
    *,
    not_ready: Sequence[str],
    version: str,
) -> str:
    """The whole page as HTML; everything in it is escaped."""
    return _TEMPLATES.get_template("ops.html.jinja").render(
        refresh_s=_REFRESH_S,
        version=version,
        not_ready=list(not_ready),
        rows=list(rows(tree)),
        slots=list(slots),
        runtime=runtime,
        age=format_age,
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

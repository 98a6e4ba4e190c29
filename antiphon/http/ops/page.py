"""The page for people: the tree, the slots and the event loop, drawn on the server from the same
snapshots as the JSON pages. No script and no build step; the browser loads it again by itself."""

from collections.abc import Sequence
from typing import Protocol

import jinja2

from antiphon.actors.breaker import BreakerStatistics
from antiphon.http.ops.outline import format_age, rows
from antiphon.http.ops.views import PoolStatus
from antiphon.ids import ModelName, RequestId, SlotIndex
from antiphon.ports import ReplicaStatistics
from antiphon.supervision.runtime import RuntimeStatistics
from antiphon.supervision.tree import Node

_REFRESH_S = 2
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
    def model(self) -> ModelName: ...
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


def render_page(
    tree: Node,
    slots: Sequence[Slot],
    runtime: RuntimeStatistics,
    breakers: Sequence[BreakerStatistics],
    replicas: Sequence[ReplicaStatistics],
    pools: Sequence[PoolStatus],
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
        breakers=list(breakers),
        replicas=list(replicas),
        pools=list(pools),
        age=format_age,
    )

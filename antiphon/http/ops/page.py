"""The pages for people, drawn on the server from the same snapshots as the JSON: how everything
stands, and what became of one request. A script keeps them fresh; without one they are the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime

import jinja2

from antiphon.actors.abuse.showing import Overview
from antiphon.actors.breaker import BreakerStatistics
from antiphon.actors.moderation.status import PolicyView
from antiphon.actors.store.status import StoreStatistics
from antiphon.events import CancelCause
from antiphon.http.ops.figures import Figures
from antiphon.http.ops.outline import format_age, rows
from antiphon.http.ops.prompts import PromptView
from antiphon.http.ops.summary import Story, Summary, phrase
from antiphon.http.ops.views import PoolStatus, SlotView
from antiphon.ports import ReplicaStatistics
from antiphon.supervision.runtime import RuntimeStatistics
from antiphon.supervision.tree import Node

_REFRESH_S = 2
"""Of a browser that runs no scripts."""
_BAR = 1000
_TONES = {"stop": "good", "tool_calls": "good", "length": "good", "error": "bad", "abort": "warn"}
_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("antiphon.http.ops", "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the page shows, all of one moment."""

    version: str
    not_ready: Sequence[str]
    concerns: Sequence[str]
    tree: Node
    slots: Sequence[SlotView]
    runtime: RuntimeStatistics
    breakers: Sequence[BreakerStatistics]
    replicas: Sequence[ReplicaStatistics]
    pools: Sequence[PoolStatus]
    figures: Figures
    requests: Sequence[Summary]
    prompts: Sequence[PromptView]
    store: StoreStatistics
    work_age_s: float
    policy: PolicyView | None
    abuse: Overview | None
    """None where there is none, or too much of it to be shown."""
    has_abuse: bool


def render_page(shown: Shown) -> str:
    """How everything stands, as HTML; everything in it is escaped."""
    minutes = [rate.last_minute for rate in shown.figures.rates]
    return _TEMPLATES.get_template("ops.html.jinja").render(
        {field.name: getattr(shown, field.name) for field in fields(shown)},
        is_live=True,
        refresh_s=_REFRESH_S,
        rows=list(rows(shown.tree)),
        rates={rate.model: f"{rate.tokens_per_second:.0f}" for rate in shown.figures.rates},
        whole_minute=[sum(second) for second in zip(*minutes, strict=True)] or [0],
        failed=sum(count for end, count in shown.figures.ends.items() if _is_failure(end)),
        age=format_age,
        clock=_clock,
        tone=_tone,
    )


def render_request(story: Story, *, version: str) -> str:
    """What became of one request."""
    return _TEMPLATES.get_template("request.html.jinja").render(
        version=version,
        is_live=story.summary.state in _LIVE,
        refresh_s=_REFRESH_S,
        story=story,
        moments=[(entry.at_s, *phrase(entry.moment)) for entry in story.moments],
        phases=list(_phases(story.summary)),
        clock=_clock,
        tone=_tone,
    )


def render_prompts(prompts: Sequence[PromptView], *, version: str) -> str:
    """Which versions of system prompts are in force, and how their turns have ended."""
    return _TEMPLATES.get_template("prompts.html.jinja").render(
        version=version, is_live=True, refresh_s=_REFRESH_S, prompts=prompts, day=_day
    )


def _is_failure(end: str) -> bool:
    """Errors are named by their classes; a client's own cancelling is none."""
    return end[:1].isupper() or end in _INTERRUPTIONS


def _phases(summary: Summary) -> Iterator[tuple[str, float, float]]:
    """Rectangles side by side on a bar that is as long as the turn."""
    total_s, start = summary.total_s or 1.0, 0.0
    for name, seconds in (
        ("queued", summary.queued_s),
        ("prefill", summary.prefill_s),
        ("writing", summary.writing_s),
    ):
        if seconds is not None:
            width = round(_BAR * seconds / total_s, 1)
            yield name, round(start, 1), width
            start += width


def _clock(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S")


def _day(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _tone(state: str) -> str:
    return "busy" if state in _LIVE else _TONES.get(state, "warn")


_LIVE = frozenset({"placing", "queued", "prefill", "writing", "paused"})
_INTERRUPTIONS = frozenset(
    f"cancelled: {cause.value}"
    for cause in (CancelCause.DEADLINE, CancelCause.SHUTDOWN, CancelCause.OWNER_LOST)
)

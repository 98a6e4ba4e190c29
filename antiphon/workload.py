"""What kind of work a request is, and for whom: what scheduling and routing go by. Pure values."""

import enum
from dataclasses import dataclass


class WorkloadClass(enum.StrEnum):
    """Lanes of a pool. Which one a request is in is decided here, never by the client's word
    alone."""

    INTERACTIVE = "interactive"
    """Somebody waits for the first token."""
    TOOL = "tool"
    """A program waits: it goes on from the result of a tool."""
    LONG = "long"
    """A prompt so long that its prefill would be felt by all others."""
    BACKGROUND = "background"
    """Nobody waits: batches, titles, summaries, `flex`, `background: true`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """`tenant` is who shares fairly with whom: a user of a key, or a session of the server's own
    work. `priority` is the plan's: under overload the highest go first and are shed last. `weight`
    is its share of a lane, relative to other tenants in it. `upkeep` is the server's own work that
    can be done without a model: it never ages, so it is never ahead of anybody."""

    lane: WorkloadClass = WorkloadClass.INTERACTIVE
    tenant: str = ""
    priority: int = 0
    weight: float = 1.0
    upkeep: bool = False


def lane_of(
    *,
    prompt_tokens: int,
    long_prompt_tokens: int,
    background: bool = False,
    continues_tool: bool = False,
) -> WorkloadClass:
    """The lane of a request whose prompt has been counted."""
    if background:
        return WorkloadClass.BACKGROUND
    if prompt_tokens >= long_prompt_tokens:
        return WorkloadClass.LONG
    return WorkloadClass.TOOL if continues_tool else WorkloadClass.INTERACTIVE

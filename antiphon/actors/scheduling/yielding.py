"""Pre-emption: which background work gives its slot and its KV to somebody urgent who waits."""

from collections.abc import Iterable, Iterator

from antiphon.actors.scheduling.claim import Claim
from antiphon.actors.scheduling.holdings import Held, Holdings
from antiphon.actors.scheduling.waiting import Waiting

_MISSES = 2
"""Urgent tickets that are passed over because not even all background work together has the KV for
them, before the rest is left for another time."""
_MINIMUM_RUN_S = 1.0
_MINIMUM_RUN_TOKENS = 8
"""What a generation gets done, once it goes on, before it may be paused again: without, urgent work
that comes often enough would keep it going on for ever and getting nowhere."""


def yielding(
    urgent: Iterable[Waiting], holdings: Holdings, claim: Claim, now: float
) -> Iterator[Held]:
    """Whose slots to ask back: those that lose least, no more than needed beside what comes anyway,
    and none that would not be enough."""
    able = [held for held in holdings.yielding.values() if may_pause(held, now)]
    able.sort(key=_loss, reverse=True)
    slots = holdings.free_slots + holdings.coming_slots
    blocks = holdings.free_blocks + holdings.coming_blocks
    misses = 0
    for waiting in urgent:
        if not able or misses >= _MISSES:
            return
        if claim.bars(waiting):
            continue
        needed: list[Held] = []
        while able and (slots < 1 or blocks < waiting.blocks):
            needed.append(able.pop())
            slots += 1
            blocks += needed[-1].waiting.blocks
        if slots < 1 or blocks < waiting.blocks:
            misses += 1
            able += reversed(needed)
            slots -= len(needed)
            blocks -= sum(held.waiting.blocks for held in needed)
            continue
        slots -= 1
        blocks -= waiting.blocks
        yield from needed


def may_pause(held: Held, now: float) -> bool:
    """Not before it has got somewhere, once it is to be left in its slot for a while."""
    if not held.settled:
        return True
    run_s, tokens = now - held.lease.granted_at, held.tokens - held.lease.tokens
    return run_s >= _MINIMUM_RUN_S and tokens >= _MINIMUM_RUN_TOKENS


def _loss(held: Held) -> tuple[int, float]:
    """What a pause throws away: the less it has, the less there is to do again."""
    return held.tokens, -held.lease.granted_at

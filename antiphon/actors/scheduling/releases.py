"""How many slots come free within so many steps: from how far the running answers are, how long
answers get, and that who gets a slot gives it back again. Pure arithmetic."""

from bisect import bisect_left
from collections.abc import Iterable

from antiphon.actors.scheduling.lengths import AnswerLengths
from antiphon.actors.scheduling.mirror import EngineMirror
from antiphon.actors.scheduling.outlook import RELEASE_STEPS
from antiphon.workload import WorkloadClass

_MOST_LOOKED_AT = 48
"""Of more running answers, every second, third, ... stands for those in between."""
_SETTLED = 1.5
_AGES = tuple(
    tuple(bisect_left(RELEASE_STEPS, step - began) for began in RELEASE_STEPS[:index])
    for index, step in enumerate(RELEASE_STEPS)
)
"""For each of RELEASE_STEPS and each before it, where among them the difference is."""


def expected_releases(
    mirror: EngineMirror,
    lengths: AnswerLengths,
    *,
    of: frozenset[WorkloadClass] = frozenset(WorkloadClass),
    joining: int = 0,
    next_lane: WorkloadClass,
    next_max_tokens: int,
) -> tuple[float, ...]:
    """At each of RELEASE_STEPS, how many are expected to have ended: of those inside now, and of
    those that follow them in their slots, taken to be of that lane and bound; so are those
    `joining` in slots that are free. Only lanes in `of` count, unless nobody is of them."""
    runs = [run for run in mirror.inside.values() if run.lane in of]
    runs = runs or list(mirror.inside.values())
    stride = -(-len(runs) // _MOST_LOOKED_AT) or 1
    inside = [0.0] * len(RELEASE_STEPS)
    for run in runs[::stride]:
        likely = lengths.ended_within(run.lane, mirror.gained(run), run.max_tokens, RELEASE_STEPS)
        for index, probability in enumerate(likely):
            inside[index] += probability * stride
    after = lengths.ended_within(next_lane, 0, max(next_max_tokens, 1), RELEASE_STEPS)
    inside = [count + joining * likely for count, likely in zip(inside, after, strict=True)]
    slots = len(runs) + joining
    return _with_successors(inside, after, slots, lengths.mean(next_lane, next_max_tokens))


def _with_successors(
    inside: list[float], after: list[float], slots: int, mean: float
) -> tuple[float, ...]:
    """A renewal process on the grid: whoever ended at a step is followed by one that may have ended
    since. `after` is how likely that is for each age, `mean` how long they go on; some such lengths
    from now slots come free at an even rate, where the grid is too coarse to tell."""
    totals: list[float] = []
    grown: list[float] = []
    before = 0.0
    for index, count in enumerate(inside):
        if RELEASE_STEPS[index] > _SETTLED * mean:
            total = before + slots * (RELEASE_STEPS[index] - RELEASE_STEPS[index - 1]) / mean
            totals.append(total)
            before = total
            continue
        total = count
        for more, age in zip(grown, _AGES[index], strict=False):
            if more:
                total += more * after[age]
        totals.append(total)
        grown.append(max(total - before, 0.0))
        before = max(total, before)
    return tuple(totals)


def steps_until(releases: Iterable[float], wanted: float) -> float:
    """In how many steps so many slots will have come free; what lies beyond the last count goes on
    as it came up to there."""
    step_before, count_before = 0.0, 0.0
    for step, count in zip(RELEASE_STEPS, releases, strict=True):
        if count >= wanted:
            part = (wanted - count_before) / (count - count_before) if count > count_before else 1.0
            return step_before + part * (step - step_before)
        step_before, count_before = float(step), count
    return step_before * wanted / max(count_before, 1e-3)

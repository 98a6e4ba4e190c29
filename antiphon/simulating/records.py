"""What became of each request, kept small: a million of them must fit in memory."""

import enum
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from antiphon.workload import WorkloadClass

LANES = tuple(WorkloadClass)


class Ending(enum.StrEnum):
    """How a request ended: exactly one for each."""

    FINISHED = "finished"
    SHED = "shed"
    """The queue was full."""
    REFUSED = "refused"
    """Its time to first token would have been too long."""
    EXPIRED = "expired"
    """It waited to its deadline."""
    LEFT = "left"
    """The client hung up."""
    TOO_LONG = "too long"
    """It could never fit."""


@dataclass(slots=True)
class LaneRecord:
    """All requests of one class."""

    arrived: int = 0
    moved: int = 0
    """Were given to the smaller model because of load."""
    paused: int = 0
    """How often work was pre-empted."""
    tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    good: int = 0
    endings: dict[Ending, int] = field(default_factory=lambda: dict.fromkeys(Ending, 0))
    first_s: "array[float]" = field(default_factory=lambda: array("d"))
    """Times to first token, of those that had one."""
    between_s: "array[float]" = field(default_factory=lambda: array("d"))
    """Mean times between tokens of whole answers."""
    waited_s: "array[float]" = field(default_factory=lambda: array("d"))
    """In the queue, of those that were granted a slot."""


class Records:
    """By class and by priority."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[int, int], LaneRecord] = {}

    def of(self, lane: int, priority: int) -> LaneRecord:
        key = (lane, priority)
        record = self._lanes.get(key)
        if record is None:
            record = self._lanes[key] = LaneRecord()
        return record

    def select(
        self, lanes: Sequence[WorkloadClass] = LANES, priority: int | None = None
    ) -> Iterator[LaneRecord]:
        for (lane, level), record in sorted(self._lanes.items(), key=lambda entry: entry[0]):
            if LANES[lane] in lanes and priority in (None, level):
                yield record

    @property
    def priorities(self) -> tuple[int, ...]:
        return tuple(sorted({priority for _, priority in self._lanes}, reverse=True))


def merged(records: Iterator[LaneRecord]) -> LaneRecord:
    """All of them as one."""
    total = LaneRecord()
    for record in records:
        for name in (
            "arrived",
            "moved",
            "paused",
            "tokens",
            "prompt_tokens",
            "cached_tokens",
            "good",
        ):
            setattr(total, name, getattr(total, name) + getattr(record, name))
        for ending, count in record.endings.items():
            total.endings[ending] += count
        total.first_s.extend(record.first_s)
        total.between_s.extend(record.between_s)
        total.waited_s.extend(record.waited_s)
    return total

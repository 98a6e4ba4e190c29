"""Requests that have been told when their first token would come and are on their way to the queue:
whoever asks next comes after them. Pure, and bounded by time."""

from collections.abc import Iterable
from dataclasses import dataclass

from antiphon.actors.scheduling.prediction import Prediction
from antiphon.workload import WorkloadClass

_ON_THE_WAY_S = 0.25
"""From the answer to the queue it takes a reservation and two messages. Who isn't there by then has
gone to another pool, or has been refused, or has left."""


@dataclass(frozen=True, slots=True)
class Promise:
    """`prompt_tokens` and KV `blocks` of a request, told at `at`."""

    prediction: Prediction
    prompt_tokens: int
    blocks: int
    at: float


class Promised:
    """Without it, a hundred requests that come in one moment would all be told of an empty pool."""

    def __init__(self) -> None:
        self._promises: dict[int, Promise] = {}
        """By the prediction's identity, in order of time."""
        self._sums = {lane: [0, 0, 0] for lane in WorkloadClass}

    def told(self, promise: Promise) -> None:
        key = id(promise.prediction)
        if key not in self._promises:
            self._promises[key] = promise
            self._count(promise, 1)

    def came(self, prediction: Prediction) -> None:
        """It is in the queue, and counted there."""
        if (promise := self._promises.pop(id(prediction), None)) is not None:
            self._count(promise, -1)

    def clear(self) -> None:
        for promise in tuple(self._promises.values()):
            self.came(promise.prediction)

    def ahead(self, lanes: Iterable[WorkloadClass], now: float) -> tuple[int, int, int]:
        """How many are on their way in these lanes, their prompt tokens and their blocks."""
        while self._promises:
            oldest = next(iter(self._promises.values()))
            if now - oldest.at <= _ON_THE_WAY_S:
                break
            self.came(oldest.prediction)
        sums = [self._sums[lane] for lane in lanes]
        return sum(s[0] for s in sums), sum(s[1] for s in sums), sum(s[2] for s in sums)

    def _count(self, promise: Promise, sign: int) -> None:
        of = self._sums[promise.prediction.lane]
        of[0] += sign
        of[1] += sign * promise.prompt_tokens
        of[2] += sign * promise.blocks

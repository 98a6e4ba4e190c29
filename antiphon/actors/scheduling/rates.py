"""How long an engine's step takes, learned from the steps it makes: a regression that forgets, and
how fast the machine is just now. Pure arithmetic; knows no clock."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from antiphon.actors.scheduling.equations import solve_positive

_PRIOR = (0.02, 0.001, 0.0004, 5e-6, 2e-7, 0.005)
"""Seconds for a step, a decoding sequence, a prompt token, a token of context read by a decoding
sequence, one read by a prompt token, and for that there is a prompt in the step at all: a small
model on two cores, before anything was seen."""
_SCALES = (1.0, 0.1, 0.01, 0.0002, 0.00002, 1.0)
"""Brings each to about 1 in a busy step, so that they weigh alike."""
_HOLD = 5.0
"""How strongly what recent steps say nothing about stays as it was, in steps."""
_MEMORY = 300.0
"""After so many steps, one counts e times less."""
_GROWTH = math.exp(1.0 / _MEMORY)
_RESCALE_AT = 1e12
_SOLVE_EVERY = 8
_SPEED_MEMORY = 3.0
_PACE_MEMORY = 20.0
_SPEED_LASTS = 6.0
"""In steps: what slows the machine down now, such as a neighbour, has half gone after so many."""
_OUTLIER = 4.0
"""A step that took so many times what was expected had a stall in it: it counts as this many."""
_CONFIDENT_AFTER = 32
_SHORTEST_S, _LONGEST_S = 1e-5, 60.0


@dataclass(frozen=True, slots=True)
class Work:
    """What one step does: a token for each of `decoding`, whose contexts are `context` tokens
    together, and `prefill` tokens of prompts, which read `attended` tokens of context together."""

    decoding: float = 0.0
    prefill: float = 0.0
    context: float = 0.0
    attended: float = 0.0


class Weights(NamedTuple):
    """Seconds for a step, a decoding sequence, a prompt token, a token of context read by a
    decoding sequence, one read by a prompt token, and `reading`: that there are prompt tokens in
    the step, however few. On CPUs that is half of what a full step takes."""

    step: float
    sequence: float
    token: float
    context: float
    attended: float
    reading: float


class StepTimes:
    """Seconds of a step as a sum of its parts, each with a weight that is never negative.

    Least squares by decaying sums, relative to the length that was expected, so that short steps
    count as much as long ones; the weights keep what the last steps say nothing about. What slows
    everything down alike, such as a neighbour on the machine, is followed within few steps by
    `_speed`, and over more of them by `_pace`.
    """

    def __init__(self) -> None:
        self._weights = tuple(w / s for w, s in zip(_PRIOR, _SCALES, strict=True))
        self.doubt()

    def doubt(self) -> None:
        """What is known is a guess from now on, which few new steps outweigh."""
        self._sums = [0.0] * 27
        self._weight = 1.0
        self._steps = 0
        self._speed = 1.0
        self._pace = 1.0

    @property
    def confident(self) -> bool:
        return self._steps >= _CONFIDENT_AFTER

    def observe(
        self,
        seconds: float,
        decoding: float,
        prefill: float,
        context: float = 0.0,
        attended: float = 0.0,
    ) -> None:
        """A step of this work took this long. Called for every step: this is written for speed."""
        if not _SHORTEST_S <= seconds <= _LONGEST_S or decoding + prefill <= 0:
            return
        w0, w1, w2, w3, w4, w5 = self._weights
        a, b, c, d = 0.1 * decoding, 0.01 * prefill, 0.0002 * context, 0.00002 * attended
        expected = w0 + w1 * a + w2 * b + w3 * c + w4 * d
        if prefill > 0:
            expected += w5
        steps = self._steps = self._steps + 1
        ratio = seconds / expected
        if steps > _CONFIDENT_AFTER and ratio > (most := _OUTLIER * self._speed):
            ratio = most
            seconds = ratio * expected
        self._speed += (ratio - self._speed) / _SPEED_MEMORY
        self._pace += (ratio - self._pace) / _PACE_MEMORY
        weight = self._weight = self._weight * _GROWTH
        # Relative error: each step's equation is divided by what was expected of it.
        s = weight / (expected * expected)
        sa, sb, sc, sd, sy = s * a, s * b, s * c, s * d, s * seconds
        sums = self._sums
        sums[0] += s
        sums[1] += sa
        sums[2] += sb
        sums[3] += sc
        sums[4] += sd
        sums[5] += sa * a
        sums[6] += sa * b
        sums[7] += sa * c
        sums[8] += sa * d
        sums[9] += sb * b
        sums[10] += sb * c
        sums[11] += sb * d
        sums[12] += sc * c
        sums[13] += sc * d
        sums[14] += sd * d
        sums[15] += sy
        sums[16] += sy * a
        sums[17] += sy * b
        sums[18] += sy * c
        sums[19] += sy * d
        if prefill > 0:
            sums[20] += s
            sums[21] += sa
            sums[22] += sb
            sums[23] += sc
            sums[24] += sd
            sums[25] += s
            sums[26] += sy
        if not steps % _SOLVE_EVERY:
            self._solve(_HOLD * s)

    def _solve(self, hold: float) -> None:
        m = self._sums
        rows = (
            [m[0] + hold, m[1], m[2], m[3], m[4], m[20]],
            [m[1], m[5] + hold, m[6], m[7], m[8], m[21]],
            [m[2], m[6], m[9] + hold, m[10], m[11], m[22]],
            [m[3], m[7], m[10], m[12] + hold, m[13], m[23]],
            [m[4], m[8], m[11], m[13], m[14] + hold, m[24]],
            [m[20], m[21], m[22], m[23], m[24], m[25] + hold],
        )
        found = (*m[15:20], m[26])
        right = [sum_ + hold * w for sum_, w in zip(found, self._weights, strict=True)]
        self._weights = solve_positive(rows, right)
        if self._weight > _RESCALE_AT:
            self._sums = [value / self._weight for value in m]
            self._weight = 1.0

    def weights(self, steps: float = 1.0) -> "Weights":
        """What goes in the next so many steps for each part."""
        w0, w1, w2, w3, w4, w5 = self._weights
        s0, s1, s2, s3, s4, s5 = _SCALES
        lasting = _SPEED_LASTS / (_SPEED_LASTS + steps)
        now = self._pace + (self._speed - self._pace) * lasting
        return Weights(
            w0 * s0 * now, w1 * s1 * now, w2 * s2 * now, w3 * s3 * now, w4 * s4 * now, w5 * s5 * now
        )

    def step_s(self, work: Work) -> float:
        """How long a step of this work takes now."""
        w = self.weights()
        return (
            w.step
            + w.sequence * work.decoding
            + w.token * work.prefill
            + w.context * work.context
            + w.attended * work.attended
            + (w.reading if work.prefill > 0 else 0.0)
        )

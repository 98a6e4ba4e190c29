"""When a request's first token would come, were it submitted now: from the rates that the engine
has shown, and from how its pool stands. Pure arithmetic over values; knows no Trio and no clock."""

import math
from dataclasses import dataclass

from antiphon.actors.scheduling.lengths import AnswerLengths
from antiphon.actors.scheduling.outlook import Outlook
from antiphon.actors.scheduling.policy import AGED_EVERY
from antiphon.actors.scheduling.rates import StepTimes, Work
from antiphon.actors.scheduling.releases import steps_until
from antiphon.workload import WorkloadClass

_EARLY = 1 / 3
"""The median time of the k-th of events that come at random is that of k less this many."""
_MOST_OVERTAKING = 0.6
"""Where others come faster than slots do, that won't last: a wait is taken to grow by no more."""
_LEAST_S = 1e-6
_LONGEST_S = 86_400.0
_CORRECTION_RATE = 0.03
_MOST_CORRECTION = math.log(8.0)
_MOST_SURPRISE = 0.5
_OVERHEAD_RATE = 0.05
_MOST_OVERHEAD_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What the engine does now: prompt tokens a second with nothing else to do, tokens a second of
    all answers together, and the length of a step."""

    prefill_tokens_s: float
    decode_tokens_s: float
    step_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Seconds: until the request has a slot, and from there to its first token. `confident` is
    False while too little has been seen of the engine to refuse anybody over it."""

    wait_s: float
    prefill_s: float
    confident: bool = True
    lane: WorkloadClass = WorkloadClass.INTERACTIVE
    correction: float = 0.0
    """The logarithm of the factor that `wait_s` has been put right by."""

    @property
    def ttft_s(self) -> float:
        return self.wait_s + self.prefill_s


class Predictor:
    """The online model of one pool. Its methods never raise, whatever they are told."""

    def __init__(self, *, step_tokens: int = 128) -> None:
        self._step_tokens = step_tokens
        self.times = StepTimes()
        self.lengths = AnswerLengths()
        self._overhead_s = 0.003
        self._corrections = dict.fromkeys(WorkloadClass, 0.0)

    def observe_step(
        self,
        duration_s: float,
        decoding: float,
        prefill_tokens: float,
        context_tokens: float = 0.0,
        attended_tokens: float = 0.0,
    ) -> None:
        """The engine made a step: one token for each of `decoding`, and so much of prompts."""
        self.times.observe(duration_s, decoding, prefill_tokens, context_tokens, attended_tokens)

    def observe_first_token(self, prediction: Prediction, seconds: float) -> None:
        """What was predicted of a request, and how long it took from then. What is wrong by the
        same factor again and again, such as a lane that others overtake, is put right."""
        if not 0.0 < seconds < _LONGEST_S:
            return
        if prediction.wait_s > 0:
            # Towards what would have been right then, not further by each of those that were on
            # their way with the same correction.
            wrong = (
                math.log(max(seconds, _LEAST_S) / max(prediction.ttft_s, _LEAST_S))
                + prediction.correction
            )
            correction = self._corrections[prediction.lane]
            more = min(max(wrong - correction, -_MOST_SURPRISE), _MOST_SURPRISE)
            correction += _CORRECTION_RATE * more
            bounded = min(max(correction, -_MOST_CORRECTION), _MOST_CORRECTION)
            self._corrections[prediction.lane] = bounded
        else:
            # The part that no step explains: what lies between the asking and the engine.
            late_s = seconds - prediction.prefill_s
            most_s = 0.1 * prediction.prefill_s
            self._overhead_s += _OVERHEAD_RATE * min(max(late_s, -most_s), most_s)
            self._overhead_s = min(max(self._overhead_s, 0.0), _MOST_OVERHEAD_S)

    def observe_length(self, lane: WorkloadClass, tokens: int, max_tokens: int) -> None:
        """An answer ended after so many tokens, of so many that it was allowed."""
        self.lengths.observe(lane, tokens, max_tokens)

    def restarted(self) -> None:
        """Another host runs the engine now: what was learned is a guess, and soon forgotten."""
        self.times.doubt()

    def slots_short(self, outlook: Outlook, tokens: int) -> int:
        """How many leases, of whatever lane, must end before a request of so many tokens has its
        slot."""
        short = outlook.ahead + 1 - outlook.free_slots
        size = max(outlook.block_size, 1)
        blocks = outlook.ahead_blocks - (-tokens // size) - outlook.free_blocks
        if blocks > 0 and outlook.reserved_blocks > 0:
            mean = outlook.reserved_blocks / max(outlook.running, 1)
            short = max(short, math.ceil(blocks / mean))
        return max(short, 0)

    def predict(
        self, outlook: Outlook, prompt_tokens: int, max_tokens: int, cached_tokens: int = 0
    ) -> Prediction:
        """For a request of this prompt, of which the engine should still have `cached_tokens`."""
        new = max(prompt_tokens - cached_tokens, 1)
        to_read = outlook.prefill_tokens + outlook.ahead_prompt_tokens
        decoding = outlook.decoding + outlook.prefilling / 2
        budget = max(self._step_tokens - decoding, 1.0)
        short = self.slots_short(outlook, prompt_tokens + max_tokens)
        shared = outlook.shared
        steps_waiting = 0.0
        if short:
            running = outlook.running + outlook.joining
            steps_waiting = self._steps_until(outlook, short, outlook.releases, running, max_tokens)
        if shared is not None and shared.short:
            steps = self._steps_until(
                outlook, shared.short, shared.releases, shared.running, max_tokens
            )
            short, steps_waiting = max(short, shared.short), max(steps_waiting, steps)
        read_waiting = min(to_read, steps_waiting * budget)
        tokens = to_read - read_waiting + new
        steps = math.ceil(tokens / budget)
        w = self.times.weights(steps_waiting + steps)
        step_s = w.step + w.sequence * decoding + w.context * outlook.context_tokens
        token_s = w.token + w.reading / budget
        start_s, wait_s, most_s = outlook.step_left_s, 0.0, _LONGEST_S
        if short:
            wait_s = start_s + steps_waiting * step_s + read_waiting * token_s
            wait_s, most_s = _overtaken(outlook, short, wait_s)
            # The engine is in its next step when it is told who gets the slot.
            start_s = step_s
        if outlook.first_tokens:
            # One after another: those that are being read now, then those that wait before it.
            first = outlook.first_tokens + outlook.ahead_prompt_tokens
            wait_s = max(wait_s, start_s + first * (token_s + step_s / budget))
            tokens, steps = new, math.ceil(new / budget)
        correction = self._corrections[outlook.lane] if wait_s else 0.0
        wait_s *= math.exp(correction)
        attended = outlook.attended_tokens + new * (cached_tokens + new / 2)
        prefill_s = (
            start_s
            + steps * (step_s + w.reading)
            + tokens * w.token
            + attended * w.attended
            + self._overhead_s
        )
        return Prediction(
            wait_s=min(wait_s, most_s),
            prefill_s=min(prefill_s, _LONGEST_S),
            confident=self.times.confident,
            lane=outlook.lane,
            correction=correction,
        )

    def rates(self, *, decoding: int = 1) -> Rates:
        """As they are with so many answers at once."""
        step_s = self.times.step_s(Work(decoding=float(decoding)))
        full = self.times.step_s(Work(prefill=float(self._step_tokens)))
        return Rates(
            prefill_tokens_s=self._step_tokens / full,
            decode_tokens_s=decoding / step_s,
            step_s=step_s,
        )

    def _steps_until(
        self,
        outlook: Outlook,
        short: int,
        releases: tuple[float, ...],
        running: int,
        max_tokens: int,
    ) -> float:
        if releases:
            return steps_until(releases, short - _EARLY)
        mean = self.lengths.mean(outlook.lane, max_tokens)
        return (short - _EARLY) * mean / max(running, 1)


def _overtaken(outlook: Outlook, short: int, wait_s: float) -> tuple[float, float]:
    """How long a wait gets by those who come later and go first, and how long it may get at most:
    a queue with priorities is longer by 1 / (1 - load of the higher ones) (Cobham, Priority
    assignment in waiting line problems, 1954), until what waits has aged."""
    if not outlook.overtaking:
        return wait_s, _LONGEST_S
    per_slot_s = wait_s / short
    load = min(outlook.overtaking * per_slot_s, _MOST_OVERTAKING)
    ahead = 0 if outlook.shared is None else outlook.shared.ahead
    aged_s = max(outlook.longest_wait_s, AGED_EVERY * (ahead + 1) * per_slot_s)
    return wait_s / (1 - load), min(max(aged_s, wait_s), _LONGEST_S)

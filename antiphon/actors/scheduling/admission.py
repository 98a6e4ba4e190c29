"""What becomes of a request, by its predicted time to first token: taken, sent on, queued with a
deadline, or refused with honest advice. Pure rules; the router asks them of each pool in turn."""

from dataclasses import dataclass

from antiphon.actors.scheduling.prediction import Prediction

_PATIENCE = 2.0
"""Over its objective a request may still be queued if it is to be served within so many times that:
a longer queue would outlast the burst that made it."""
_LEAST_SHARE = 0.25
_RETRY_MIN_S = 1.0
_RETRY_MAX_S = 60.0
"""SDKs ignore longer advice (openai-node above 60 s, openai-python above 120 s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one request is promised and how hard it is held to it.

    `objective_s` is its lane's time to first token, 0 for none. `deadline_s` is the longest that
    anything waits in a queue. `share` is the part of both that this request may use up: 1 for the
    highest priority, less for lower ones, which are so shed first.
    """

    objective_s: float
    deadline_s: float
    share: float = 1.0

    @property
    def bound_s(self) -> float:
        """Predicted up to this, it is simply taken."""
        return (self.objective_s or self.deadline_s) * self.share

    @property
    def queue_s(self) -> float:
        """Predicted up to this, it may be queued where nobody else can serve it sooner."""
        if not self.objective_s:
            return self.bound_s
        return min(self.deadline_s, _PATIENCE * self.objective_s) * self.share


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Within what was promised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveOn:
    """Over it here, and there is somewhere else to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Over it everywhere, and yet soon enough: it waits, and is refused if it has no slot
    `deadline_s` from now."""

    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Too late to be worth waiting for. In `retry_after_s` it would be within what was promised,
    at the rate that work drains now."""

    retry_after_s: float


Verdict = Take | MoveOn | Queue | Refuse


def share_of(priority: int, highest: int) -> float:
    """The part of its terms that a priority may use up: a half, a third, ... for each level below
    the highest that there is. Free before paid."""
    return max(1.0 / (1 + max(highest - priority, 0)), _LEAST_SHARE)


def verdict(
    prediction: Prediction, terms: Terms, *, elsewhere: bool, drain: float = 1.0
) -> Verdict:
    """What to do with a request on this pool. `elsewhere` says whether another pool, or a smaller
    model that its plan allows, is still to be asked. `drain` is the seconds of waiting that go in a
    second, 1 where nothing new comes.

    A prediction that nobody should trust yet refuses nothing: the bounds of the queue still hold.
    """
    if prediction.ttft_s <= terms.bound_s or not prediction.confident:
        return Take()
    if elsewhere:
        return MoveOn()
    if prediction.ttft_s <= terms.queue_s:
        return Queue(deadline_s=terms.queue_s)
    return Refuse(retry_after_s=retry_after_s(prediction, terms, drain=drain))


def retry_after_s(prediction: Prediction, terms: Terms, *, drain: float = 1.0) -> float:
    """When a request like this one should be within its bound."""
    excess_s = prediction.ttft_s - terms.bound_s
    return min(max(excess_s / max(drain, 0.1), _RETRY_MIN_S), _RETRY_MAX_S)

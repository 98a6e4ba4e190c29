"""Which candidate of a route takes the request, once its prompt has been counted there. Pure.

`choose` is asked again after each answer: it names the next candidate to ask, or decides. Taken,
sent on, to a smaller model, queued, refused: in that order.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from antiphon.actors.routing.route import (
    OUT,
    Ability,
    Candidate,
    Moved,
    Passed,
    Reason,
    Route,
)
from antiphon.actors.scheduling.admission import MoveOn, Queue, Refuse, Take, Terms, verdict
from antiphon.actors.scheduling.prediction import Prediction
from antiphon.errors import (
    ContextLengthExceeded,
    EngineUnavailable,
    InvalidRequest,
    Overloaded,
    QueueFull,
)
from antiphon.ids import ModelName


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """When the first token would come there, and what the request is promised. `prediction` is None
    where nobody can tell, which refuses nobody."""

    prediction: Prediction | None
    terms: Terms


Refusal = ContextLengthExceeded | InvalidRequest | QueueFull | EngineUnavailable
Answer = Offer | Refusal
"""What asking a pool gave. A refusal is of this pool alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A candidate and why it; `deadline_s` is when it must have its slot, where it is to be queued
    though it is late."""

    model: ModelName
    reasons: tuple[Reason, ...]
    passed: tuple[Passed, ...] = ()
    moved: Moved | None = None
    deadline_s: float | None = None
    predicted_s: float | None = None


def choose(route: Route, answers: Mapping[ModelName, Answer]) -> Candidate | Decision:
    """The candidate to ask next, or the decision.

    Raises, when no candidate can take it, what the one that was meant refused it with; Overloaded
    when all that could would be too late.
    """
    for candidate in route.candidates:
        if not _is_wanted(candidate, route, answers):
            continue
        answer = answers.get(candidate.model)
        if answer is None:
            return candidate
        if isinstance(answer, Offer) and _verdict(answer, elsewhere=True) == Take():
            return _decision(route, candidate, answers, answer)
    return _least_late(route, answers)


def refusals(route: Route, answers: Mapping[ModelName, Answer]) -> Iterator[Passed]:
    """Every candidate, and why it did not take the request."""
    for candidate in route.candidates:
        if (reason := _why_not(candidate, answers)) is not None:
            yield Passed(model=candidate.model, reason=reason)
    yield from route.unable


def _is_wanted(candidate: Candidate, route: Route, answers: Mapping[ModelName, Answer]) -> bool:
    """A pool that is out is a last resort, for when none of the others may take it at all: whoever
    waits in a queue is served sooner than whoever waits for an engine. A stand-in is for overload
    and outages: what doesn't fit the model that was meant is not cut down to a smaller one."""
    if candidate.problem is not None:
        return not any(isinstance(answer, Offer) for answer in answers.values())
    if not candidate.stands_in:
        return True
    mains = [each for each in route.candidates if not each.stands_in]
    reasons = {_why_not(each, answers) for each in mains}
    return not mains or bool(reasons - {Reason.WINDOW, Reason.UNABLE, None})


def _least_late(route: Route, answers: Mapping[ModelName, Answer]) -> Decision:
    offers = [
        (each, answer)
        for each in route.candidates
        if isinstance(answer := answers.get(each.model), Offer)
    ]
    if not offers:
        raise _first_refusal(route, answers)
    candidate, offer = min(offers, key=lambda pair: (_ttft_s(pair[1]), pair[0].cost))
    match _verdict(offer, elsewhere=False):
        case Refuse(retry_after_s=after):
            raise Overloaded(
                predicted_s=_ttft_s(offer),
                objective_s=offer.terms.bound_s,
                retry_after_s=after,
            )
        case Queue(deadline_s=deadline_s):
            return _decision(route, candidate, answers, offer, deadline_s=deadline_s)
        case Take() | MoveOn():
            return _decision(route, candidate, answers, offer)


def _first_refusal(route: Route, answers: Mapping[ModelName, Answer]) -> Exception:
    """What counts is what the client can do: come again, or ask for less."""
    given = [answer for answer in answers.values() if not isinstance(answer, Offer)]
    for kind in (QueueFull, EngineUnavailable, ContextLengthExceeded, InvalidRequest):
        of_kind = [answer for answer in given if isinstance(answer, kind)]
        if of_kind:
            return max(of_kind, key=_room)
    if Ability.VISION in route.missing:
        return cant_see(route.asked)
    return InvalidRequest(f"The model {route.asked!r} can't do what this request needs.", "model")


def cant_see(model: str) -> InvalidRequest:
    """A model was to be shown images."""
    return InvalidRequest(
        f"The model {model!r} can't see images; leave them out, or say in words what is on them.",
        "model",
        "unsupported_value",
    )


def _room(refusal: Refusal) -> float:
    """Of windows, the widest one's refusal is the truth; of advice to come again, the soonest."""
    match refusal:
        case ContextLengthExceeded(window=window):
            return window
        case QueueFull(retry_after_s=after) | EngineUnavailable(retry_after_s=after):
            return -after
        case InvalidRequest():
            return 0.0


def _decision(
    route: Route,
    candidate: Candidate,
    answers: Mapping[ModelName, Answer],
    offer: Offer,
    *,
    deadline_s: float | None = None,
) -> Decision:
    passed = tuple(each for each in refusals(route, answers) if each.model != candidate.model)
    queued = () if deadline_s is None else (Reason.QUEUED,)
    return Decision(
        model=candidate.model,
        reasons=(candidate.reason, *queued),
        passed=passed,
        moved=_moved(route, candidate, passed),
        deadline_s=deadline_s,
        predicted_s=None if offer.prediction is None else _ttft_s(offer),
    )


def _moved(route: Route, candidate: Candidate, passed: tuple[Passed, ...]) -> Moved | None:
    if candidate.model == route.first:
        return None
    if candidate.moved is not None:
        return candidate.moved
    late = {Reason.OVERLOAD, Reason.FULL}
    return Moved.OVERLOAD if any(each.reason in late for each in passed) else Moved.FALLBACK


def _why_not(candidate: Candidate, answers: Mapping[ModelName, Answer]) -> Reason | None:
    match answers.get(candidate.model):
        case None:
            return candidate.problem if candidate.problem in OUT else None
        case Offer() as offer:
            return None if _verdict(offer, elsewhere=True) == Take() else Reason.OVERLOAD
        case ContextLengthExceeded():
            return Reason.WINDOW
        case InvalidRequest():
            return Reason.UNABLE
        case QueueFull():
            return Reason.FULL
        case EngineUnavailable():
            return candidate.problem or Reason.UNAVAILABLE


def _verdict(offer: Offer, *, elsewhere: bool) -> Take | MoveOn | Queue | Refuse:
    if offer.prediction is None:
        return Take()
    return verdict(offer.prediction, offer.terms, elsewhere=elsewhere)


def _ttft_s(offer: Offer) -> float:
    return 0.0 if offer.prediction is None else offer.prediction.ttft_s

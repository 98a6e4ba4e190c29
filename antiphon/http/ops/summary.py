"""One turn's timeline told short: where its time went. Pure; the page and the JSON show the same.

A turn waits, has its prompt computed, and writes; of several choices the first one counts.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar, assert_never

import msgspec

from antiphon.http.ops.timelines import Noted, Timeline
from antiphon.ids import ModelName, RequestId
from antiphon.moments import (
    Arrived,
    CancelAsked,
    Ended,
    EngineLost,
    FirstShown,
    FirstToken,
    Freed,
    Granted,
    InputJudged,
    Moment,
    OutputBlocked,
    Paused,
    Placed,
    Queued,
    Unplaced,
)
from antiphon.views import Manifest

M = TypeVar("M")


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the list. Seconds are None for what has not happened."""

    number: int
    request_id: RequestId
    response_id: str | None
    user: str | None
    asked: ModelName
    model: ModelName | None
    lane: str | None
    upkeep: bool
    arrived_ms: int
    state: str
    """placing, queued, prefill, writing or paused while it runs; then how it ended."""
    error: str | None
    cancelled: str | None
    queued_s: float | None
    """From its arrival until it had a slot."""
    prefill_s: float | None
    first_token_s: float | None
    """From its arrival."""
    held_back_s: float | None
    """By the policy: from the first token to the first text that left."""
    writing_s: float | None
    """From the first token to the end."""
    total_s: float
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    tokens_per_second: float | None
    pauses: int


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One moment, so long after the arrival."""

    at_s: float
    moment: Moment


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one turn. `missed` moments had no room."""

    summary: Summary
    moments: tuple[Entry, ...]
    missed: int
    manifest: Manifest | None


def summarised(line: Timeline, now: float) -> Summary:
    """As it stands now."""
    placed = _last(line.noted, Placed)
    queued = _last(line.noted, Queued)
    granted_s = _first_s(line.noted, Granted)
    token_s = _first_s(line.noted, FirstToken)
    shown_s = _first_s(line.noted, FirstShown)
    cancelled = _last(line.noted, CancelAsked)
    total_s, ended = line.lasts_s(now), line.ended
    writing_s = None if token_s is None else total_s - token_s
    tokens = None if ended is None else ended.completion_tokens
    return Summary(
        number=line.number,
        request_id=line.request_id,
        response_id=line.arrived.response,
        user=line.arrived.user,
        asked=line.arrived.asked,
        model=None if placed is None else placed.model,
        lane=None if queued is None else queued.lane.value,
        upkeep=line.arrived.upkeep,
        arrived_ms=round(line.arrived_s * 1000),
        state=_state(line),
        error=None if ended is None else ended.error,
        cancelled=None if cancelled is None else cancelled.cause.value,
        queued_s=_rounded(granted_s),
        prefill_s=_rounded(_between(granted_s, token_s)),
        first_token_s=_rounded(token_s),
        held_back_s=_rounded(_between(token_s, shown_s)),
        writing_s=_rounded(writing_s),
        total_s=round(total_s, 4),
        prompt_tokens=None if placed is None else placed.prompt_tokens,
        cached_tokens=None if ended is None else ended.cached_tokens,
        completion_tokens=tokens,
        tokens_per_second=round((tokens - 1) / writing_s, 1)
        if tokens is not None and tokens > 1 and writing_s
        else None,
        pauses=sum(isinstance(each.moment, Paused) for each in line.noted),
    )


def told(line: Timeline, now: float) -> Story:
    """The whole of it."""
    placed = _last(line.noted, Placed)
    arrived = Entry(at_s=0.0, moment=line.arrived)
    later = (Entry(at_s=round(each.at_s, 4), moment=each.moment) for each in line.noted)
    return Story(
        summary=summarised(line, now),
        moments=(arrived, *later),
        missed=line.missed,
        manifest=None if placed is None else placed.manifest,
    )


def phrase(moment: Moment) -> tuple[str, str]:
    """A moment in words: what happened, and its particulars."""
    match moment:
        case Arrived():
            choices = f", {moment.choices} choices" if moment.choices > 1 else ""
            whose = "the server's own work, " if moment.upkeep else ""
            return "arrived", f"{whose}{_count(moment.messages, 'message')}{choices}"
        case InputJudged(rule=None):
            return "input judged", f"passed after {_ms(moment.seconds)}"
        case InputJudged():
            return "input blocked", f"by {moment.rule} after {_ms(moment.seconds)}"
        case Placed():
            return "placed", _placed(moment)
        case Unplaced():
            return "not placed", _passed(moment.passed) or "no pool takes it"
        case Queued():
            ahead = f"{moment.running} of {moment.slots} slots in use, {moment.waiting} waiting"
            more = f", {moment.generations} generations" if moment.generations > 1 else ""
            return "queued", f"lane {moment.lane.value}, {ahead}{more}"
        case Granted(resumed=True):
            return "resumed", f"slot {moment.slot}"
        case Granted():
            return "prefill", f"slot {moment.slot}, after waiting {_ms(moment.waited_s)}"
        case FirstToken():
            return "first token", ""
        case FirstShown():
            return "first text leaves", ""
        case Paused():
            return "paused", f"after {_count(moment.tokens, 'token')}, for somebody urgent"
        case OutputBlocked():
            return "output blocked", _count(moment.choices, "choice")
        case EngineLost():
            return "engine lost", f"{moment.error}; placed once more"
        case CancelAsked():
            return "cancelled", moment.cause.value.replace("_", " ")
        case Freed():
            many = _count(moment.tokens, "token")
            return "slot free", f"slot {moment.slot}, {many}, {moment.reason.value}"
        case Ended():
            return "ended", _ended(moment)
        case _:
            assert_never(moment)


def quantile(values: Sequence[float], share: float) -> float | None:
    """The value that this share of them is not above; None of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def _state(line: Timeline) -> str:
    if line.ended is not None:
        return line.ended.reason
    if isinstance(_last(line.noted, (Paused, Granted)), Paused):
        return "paused"
    order: tuple[tuple[type[Moment], str], ...] = (
        (FirstToken, "writing"),
        (Granted, "prefill"),
        (Queued, "queued"),
    )
    kinds = {type(each.moment) for each in line.noted}
    return next((state for kind, state in order if kind in kinds), "placing")


def _placed(placed: Placed) -> str:
    facts = [str(placed.model), _count(placed.prompt_tokens, "prompt token")]
    if placed.moved is not None:
        facts.append(f"instead of what was asked for: {placed.moved}")
    facts += (reason.replace("_", " ") for reason in placed.reasons)
    if placed.predicted_s is not None:
        facts.append(f"first token predicted after {_ms(placed.predicted_s)}")
    if passed := _passed(placed.passed):
        facts.append(f"passed over {passed}")
    return ", ".join(facts)


def _passed(passed: Iterable[tuple[ModelName, str]]) -> str:
    return ", ".join(f"{model} ({why.replace('_', ' ')})" for model, why in passed)


def _ended(ended: Ended) -> str:
    facts = [ended.reason if ended.error is None else f"{ended.reason}: {ended.error}"]
    if ended.completion_tokens:
        facts.append(_count(ended.completion_tokens, "token"))
        facts.append(f"longest gap {_ms(ended.longest_gap_s)}")
    if ended.cached_tokens:
        facts.append(f"{ended.cached_tokens} of {ended.prompt_tokens} prompt tokens cached")
    return ", ".join(facts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _first_s(noted: Iterable[Noted], kind: type[Moment]) -> float | None:
    return next((each.at_s for each in noted if isinstance(each.moment, kind)), None)


def _last(noted: Sequence[Noted], kind: type[M] | tuple[type[M], ...]) -> M | None:
    return next((each.moment for each in reversed(noted) if isinstance(each.moment, kind)), None)


def _between(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)

"""The ledger taken out for billing: lines of turns, or of users, days and models.

A bill belongs to the moment in which it was settled, and nothing is settled in the past: so periods
that follow one another have each token exactly once, also those of turns that ran from one into the
next.
"""

import csv
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from antiphon.errors import AdminError
from antiphon.ids import UserId
from antiphon.quotas import Bill
from antiphon.records import User
from antiphon.storage import Store

SETTLED_LATE_S = 120
"""What is being settled now is written this much later at most."""
_PAGE = 1_000

Form = Literal["csv", "jsonl"]
By = Literal["turn", "day"]
Line = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """From `since_ms` up to and without `until_ms`."""

    since_ms: int
    until_ms: int


def period(since: str | None, until: str | None) -> Period:
    """Raises AdminError for what is no time, or isn't over."""
    latest_ms = time.time_ns() // 1_000_000 - SETTLED_LATE_S * 1000
    asked = Period(
        since_ms=0 if since is None else _time_ms(since),
        until_ms=latest_ms if until is None else _time_ms(until),
    )
    if asked.until_ms > latest_ms:
        raise AdminError(
            f"the period may end {SETTLED_LATE_S} s ago at the latest, since turns may still be "
            "settled in it; give an earlier --until, or none"
        )
    if asked.since_ms > asked.until_ms:
        raise AdminError("the period ends before it begins; correct --since or --until")
    return asked


async def export_usage(store: Store, asked: Period, out: TextIO, *, form: Form, by: By) -> int:
    """Write it; how many lines."""
    users = {user.id: user for user in await store.users()}
    write = _writer(out, form, by)
    count = 0
    sums = _DaySums()
    async for bill in _bills(store, asked):
        if by == "turn":
            write(_turn(bill, users))
            count += 1
        else:
            count += _written(write, sums.before(_day(bill.settled_ms)), users)
            sums.add(bill)
    return count + _written(write, sums.rest(), users)


async def _bills(store: Store, asked: Period) -> AsyncIterator[Bill]:
    after = (asked.since_ms, "")
    while page := await store.bills(after=after, until_ms=asked.until_ms, limit=_PAGE):
        for bill in page:
            yield bill
        after = (page[-1].settled_ms, page[-1].response)


class _DaySums:
    """Sums of the day that is being read: bills come in the order of their settlement, so that one
    day at a time is in memory."""

    def __init__(self) -> None:
        self._day = ""
        self._sums: dict[tuple[str, str], _Sum] = {}

    def before(self, day: str) -> list["_Sum"]:
        """What there was before that day, once."""
        return [] if day == self._day else self.rest()

    def rest(self) -> list["_Sum"]:
        done, self._sums = list(self._sums.values()), {}
        return sorted(done, key=lambda each: (each.user, each.model))

    def add(self, bill: Bill) -> None:
        self._day = _day(bill.settled_ms)
        key = (bill.user or "", bill.model)
        found = self._sums.setdefault(key, _Sum(self._day, *key))
        found.turns += 1
        found.input += bill.input
        found.cached += bill.cached
        found.output += bill.output
        found.reasoning += bill.reasoning


@dataclass(slots=True)
class _Sum:
    """Of one user, day and model."""

    day: str
    user: str
    model: str
    turns: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0


def _written(
    write: Callable[[Line], object], sums: Iterable[_Sum], users: Mapping[UserId, User]
) -> int:
    count = 0
    for each in sums:
        write(
            {
                "date": each.day,
                **_whose(each.user, users),
                "model": each.model,
                "turns": each.turns,
                **_tokens(each),
            }
        )
        count += 1
    return count


def _turn(bill: Bill, users: Mapping[UserId, User]) -> Line:
    return {
        "settled": _time(bill.settled_ms),
        "began": _time(bill.created_ms),
        "response": bill.response,
        **_whose(bill.user or "", users),
        "model": bill.model,
        **_tokens(bill),
    }


def _whose(id: str, users: Mapping[UserId, User]) -> Line:
    """Empty once they were erased."""
    user = users.get(UserId(id))
    return {
        "user": id,
        "name": "" if user is None else user.name,
        "tenant": "" if user is None else user.tenant,
    }


def _tokens(counted: Bill | _Sum) -> Line:
    return {
        "input_tokens": counted.input,
        "cached_tokens": counted.cached,
        "output_tokens": counted.output,
        "reasoning_tokens": counted.reasoning,
        "total_tokens": counted.input + counted.output,
    }


def _writer(out: TextIO, form: Form, by: By) -> Callable[[Line], object]:
    if form == "jsonl":
        return lambda line: out.write(json.dumps(line, ensure_ascii=False) + "\n")
    writer = csv.DictWriter(out, _HEADERS[by], lineterminator="\n")
    writer.writeheader()
    return writer.writerow


_TOKENS = ["input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "total_tokens"]
_HEADERS: dict[By, list[str]] = {
    "turn": ["settled", "began", "response", "user", "name", "tenant", "model", *_TOKENS],
    "day": ["date", "user", "name", "tenant", "model", "turns", *_TOKENS],
}


def _time_ms(text: str) -> int:
    """A day, a moment, or Unix seconds; without a zone it is UTC. Raises AdminError."""
    if text.isascii() and text.isdecimal() and len(text) <= 12:
        return int(text) * 1000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise AdminError(
            f"{text!r} is no time; write it as 2030-01-31, 2030-01-31T12:00 or Unix seconds"
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _time(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _day(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms // 1000, UTC).date().isoformat()

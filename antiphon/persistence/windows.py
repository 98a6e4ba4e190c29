"""Sliding windows of one user, in buckets: pure, with the time given. What they promise is told in
`quotas`.

Written down as `[first, [ahead, requests, tokens, ahead, …]]` of each window: what a busy user has
fits a page of the database twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from antiphon.quotas import QuotaLimits, Reserved, Standing, UsedUp


@dataclass(frozen=True, slots=True)
class Span:
    """A window of `length_ms`, kept in buckets of `width_ms`."""

    name: str
    length_ms: int
    width_ms: int


MINUTE = Span("minute", 60_000, 1_000)
DAY = Span("day", 86_400_000, 900_000)

Bucket = tuple[int, int, int]
"""Its number since 1970, requests, tokens."""


@dataclass(frozen=True, slots=True)
class Window:
    """Oldest bucket first; none without anything in it."""

    span: Span
    buckets: tuple[Bucket, ...] = ()

    def since(self, now_ms: int) -> "Window":
        """Without what has left it. What a clock that is ahead has put into the future stays."""
        kept = tuple(each for each in self.buckets if self._leaves_ms(each[0]) > now_ms)
        return replace(self, buckets=kept)

    def with_added(self, at_ms: int, requests: int, tokens: int) -> "Window":
        """Nothing happens where the bucket has gone meanwhile and something is taken back."""
        number = at_ms // self.span.width_ms
        found = {each[0]: each for each in self.buckets}
        _, had_requests, had_tokens = found.get(number, (number, 0, 0))
        bucket = (number, max(0, had_requests + requests), max(0, had_tokens + tokens))
        found[number] = bucket
        return replace(
            self, buckets=tuple(each for _, each in sorted(found.items()) if any(each[1:]))
        )

    @property
    def requests(self) -> int:
        return sum(each[1] for each in self.buckets)

    @property
    def tokens(self) -> int:
        return sum(each[2] for each in self.buckets)

    def reset_ms(self, now_ms: int) -> int:
        """How long until it is empty."""
        return max(0, self._leaves_ms(self.buckets[-1][0]) - now_ms) if self.buckets else 0

    def wait_ms(self, now_ms: int, column: int, excess: int) -> int:
        """How long until that much of `column` (1 requests, 2 tokens) has left it."""
        for bucket in self.buckets:
            excess -= bucket[column]
            if excess <= 0:
                return max(1, self._leaves_ms(bucket[0]) - now_ms)
        return self.span.length_ms

    def _leaves_ms(self, number: int) -> int:
        return (number + 1) * self.span.width_ms + self.span.length_ms


_Flat = tuple[int, list[int]]
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(tuple[_Flat, _Flat])


@dataclass(frozen=True, slots=True)
class Windows:
    """Both of a user."""

    minute: Window = Window(MINUTE)
    day: Window = Window(DAY)

    def since(self, now_ms: int) -> "Windows":
        return Windows(self.minute.since(now_ms), self.day.since(now_ms))

    def with_added(self, at_ms: int, requests: int, tokens: int) -> "Windows":
        return Windows(
            self.minute.with_added(at_ms, requests, tokens),
            self.day.with_added(at_ms, requests, tokens),
        )

    def standings(
        self, limits: QuotaLimits, now_ms: int, *, running: int = 0
    ) -> tuple[Standing, ...]:
        """Of every limit there is."""
        found = [
            Standing(
                unit=unit,
                limit=limit,
                remaining=max(0, limit - used),
                reset_ms=window.reset_ms(now_ms),
            )
            for unit, limit, window, used in self._rows(limits)
        ]
        if limits.concurrent:
            found.append(
                Standing(
                    unit=CONCURRENT,
                    limit=limits.concurrent,
                    remaining=max(0, limits.concurrent - running),
                    reset_ms=0,
                )
            )
        return tuple(found)

    def _rows(self, limits: QuotaLimits) -> Iterator[tuple[str, int, Window, int]]:
        for unit, limit, window, column in _bounds(self, limits):
            if limit:
                yield unit, limit, window, window.requests if column == 1 else window.tokens

    def encode(self) -> str:
        return _encoder.encode((_flat(self.minute), _flat(self.day))).decode()

    @staticmethod
    def decode(text: str) -> "Windows":
        minute, day = _decoder.decode(text)
        return Windows(Window(MINUTE, _buckets(minute)), Window(DAY, _buckets(day)))


CONCURRENT = "concurrent requests"
EMPTY = Windows()
_BUSY_MS = 1_000
"""An answer ends at any moment: who waits for one may ask again soon."""


def admit(
    windows: Windows, running: int, limits: QuotaLimits, tokens: int, now_ms: int
) -> tuple[Windows, Reserved] | UsedUp:
    """Count one request with that many tokens, or say which limit has no room for it: of several,
    the one that it waits longest for."""
    windows = windows.since(now_ms)
    refusals: list[tuple[float, str, int, int | None]] = []
    for unit, limit, window, column in _bounds(windows, limits):
        needed = 1 if column == 1 else tokens
        used = window.requests if column == 1 else window.tokens
        if limit and used + needed > limit:
            wait_ms = (
                None if needed > limit else window.wait_ms(now_ms, column, used + needed - limit)
            )
            refusals.append((_rank(wait_ms), unit, limit, wait_ms))
    if limits.concurrent and running >= limits.concurrent:
        refusals.append((_BUSY_MS, CONCURRENT, limits.concurrent, _BUSY_MS))
    if refusals:
        _, unit, limit, wait = max(refusals)
        standings = windows.standings(limits, now_ms, running=running)
        return UsedUp(unit=unit, limit=limit, wait_ms=wait, standings=standings)
    windows = windows.with_added(now_ms, 1, tokens)
    standings = windows.standings(limits, now_ms, running=running + 1)
    return windows, Reserved(standings=standings)


def _rank(wait_ms: int | None) -> float:
    return float("inf") if wait_ms is None else wait_ms


def _bounds(windows: Windows, limits: QuotaLimits) -> tuple[tuple[str, int, Window, int], ...]:
    return (
        ("requests per minute", limits.requests_per_minute, windows.minute, 1),
        ("tokens per minute", limits.tokens_per_minute, windows.minute, 2),
        ("requests per day", limits.requests_per_day, windows.day, 1),
        ("tokens per day", limits.tokens_per_day, windows.day, 2),
    )


def _flat(window: Window) -> _Flat:
    if not window.buckets:
        return 0, []
    first = before = window.buckets[0][0]
    flat: list[int] = []
    for number, requests, tokens in window.buckets:
        flat += (number - before, requests, tokens)
        before = number
    return first, flat


def _buckets(flat: _Flat) -> tuple[Bucket, ...]:
    number, rest = flat
    found: list[Bucket] = []
    for ahead, requests, tokens in zip(*[iter(rest)] * 3, strict=True):
        number += ahead
        found.append((number, requests, tokens))
    return tuple(found)

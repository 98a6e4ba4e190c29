"""Sliding windows as a pure core: what is counted, for how long, and what a refusal says."""

from hypothesis import given
from hypothesis import strategies as st

from antiphon.persistence.windows import CONCURRENT, DAY, EMPTY, MINUTE, Windows, admit
from antiphon.quotas import QuotaLimits, Reserved, UsedUp

NOW = 1_800_000_000_500
"""Half a second into a bucket of a minute."""


def taken(windows: Windows, limits: QuotaLimits, tokens: int = 1, now_ms: int = NOW) -> Windows:
    verdict = admit(windows, 0, limits, tokens, now_ms)
    assert not isinstance(verdict, UsedUp), verdict
    return verdict[0]


def refused(
    windows: Windows, limits: QuotaLimits, tokens: int = 1, now_ms: int = NOW, running: int = 0
) -> UsedUp:
    verdict = admit(windows, running, limits, tokens, now_ms)
    assert isinstance(verdict, UsedUp)
    return verdict


def test_a_limit_takes_as_many_as_it_says():
    limits = QuotaLimits(requests_per_minute=2)
    windows = taken(taken(EMPTY, limits), limits)

    used_up = refused(windows, limits)

    assert (used_up.unit, used_up.limit) == ("requests per minute", 2)


def test_a_request_counts_for_its_whole_minute_and_at_most_one_bucket_longer():
    limits = QuotaLimits(requests_per_minute=1)
    windows = taken(EMPTY, limits)

    wait_ms = refused(windows, limits).wait_ms

    assert wait_ms is not None
    assert MINUTE.length_ms <= wait_ms <= MINUTE.length_ms + MINUTE.width_ms
    refused(windows, limits, now_ms=NOW + wait_ms - 1)
    taken(windows, limits, now_ms=NOW + wait_ms)


def test_of_several_limits_the_one_that_is_waited_for_longest_is_named():
    limits = QuotaLimits(requests_per_minute=1, tokens_per_day=10, concurrent=1)
    windows = taken(EMPTY, limits, tokens=10)

    assert refused(windows, limits, running=1).unit == "tokens per day"
    assert refused(windows, QuotaLimits(requests_per_minute=1, concurrent=1), running=1).unit == (
        "requests per minute"
    )
    assert refused(EMPTY, limits, running=1).unit == CONCURRENT


def test_what_is_more_than_a_limit_by_itself_is_never_waited_for():
    used_up = refused(EMPTY, QuotaLimits(tokens_per_minute=10), tokens=11)

    assert used_up.wait_ms is None


def test_the_wait_is_until_enough_has_left_and_not_until_all_has():
    limits = QuotaLimits(tokens_per_minute=10)
    windows = taken(EMPTY, limits, tokens=3)
    windows = taken(windows, limits, tokens=6, now_ms=NOW + 30_000)

    first = refused(windows, limits, tokens=4, now_ms=NOW + 30_000).wait_ms
    both = refused(windows, limits, tokens=9, now_ms=NOW + 30_000).wait_ms

    assert first is not None
    assert both is not None
    assert first <= 31_000 < both


def test_what_is_given_back_is_there_at_once_at_the_time_when_it_was_taken():
    limits = QuotaLimits(tokens_per_minute=10, requests_per_minute=9)
    windows = taken(EMPTY, limits, tokens=10)

    windows = windows.with_added(NOW, 0, -7)

    verdict = admit(windows, 0, limits, 7, NOW + 59_000)
    assert not isinstance(verdict, UsedUp)
    assert verdict[1].standings[1].remaining == 0
    later = verdict[0].since(NOW + MINUTE.length_ms + MINUTE.width_ms)
    assert later.minute.tokens == 7, "the three left with the time of their reservation"


def test_giving_back_to_a_bucket_that_has_left_changes_nothing():
    windows = taken(EMPTY, QuotaLimits(tokens_per_minute=10), tokens=5)

    windows = windows.since(NOW + 2 * DAY.length_ms).with_added(NOW, -1, -5)

    assert windows == EMPTY


def test_standings_count_the_request_itself():
    limits = QuotaLimits(requests_per_minute=5, tokens_per_day=100, concurrent=3)

    verdict = admit(EMPTY, 1, limits, 30, NOW)

    assert isinstance(verdict, tuple)
    assert isinstance(verdict[1], Reserved)
    told = {each.unit: each.remaining for each in verdict[1].standings}
    assert told == {"requests per minute": 4, "tokens per day": 70, CONCURRENT: 1}


def test_a_busy_day_stays_small():
    limits = QuotaLimits(requests_per_day=10**9, tokens_per_day=10**12)
    windows = EMPTY
    for step in range(0, DAY.length_ms, 10_000):
        windows = taken(windows, limits, tokens=123_456, now_ms=NOW + step)
    for step in range(60):
        at = NOW + DAY.length_ms + step * 1000
        windows = taken(windows, limits, tokens=123_456, now_ms=at)

    assert len(windows.encode()) < 2_100, "PostgreSQL moves longer rows out of the table"


adds = st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 3), st.integers(0, 10**6)))


@given(adds)
def test_windows_are_read_as_they_were_written(entries: list[tuple[int, int, int]]):
    windows = EMPTY
    for at, requests, tokens in entries:
        windows = windows.with_added(NOW + at, requests, tokens)

    assert Windows.decode(windows.encode()) == windows


@given(adds, st.integers(0, 400_000))
def test_the_sum_lies_between_the_exact_one_and_that_of_a_bucket_more(
    entries: list[tuple[int, int, int]], now: int
):
    entries = sorted(each for each in entries if each[0] <= now)
    windows = EMPTY
    for at, requests, tokens in entries:
        windows = windows.with_added(NOW + at, requests, tokens)

    counted = windows.since(NOW + now).minute

    def exact(length_ms: int) -> int:
        return sum(tokens for at, _, tokens in entries if at > now - length_ms)

    longest = MINUTE.length_ms + MINUTE.width_ms
    assert exact(MINUTE.length_ms) <= counted.tokens <= exact(longest + 1)

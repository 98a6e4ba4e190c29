"""How what the store says becomes what a caller is told."""

from antiphon.actors.metering.standing import rate_limited, rate_limits
from antiphon.quotas import Standing, UsedUp


def standing(unit: str, remaining: int, reset_ms: int = 0) -> Standing:
    return Standing(unit=unit, limit=100, remaining=remaining, reset_ms=reset_ms)


def test_of_a_minute_and_a_day_the_tighter_one_is_told():
    limits = rate_limits(
        [
            standing("requests per minute", 5, 60_000),
            standing("tokens per minute", 90, 1_500),
            standing("requests per day", 7, 80_000_000),
            standing("tokens per day", 10, 9_000),
            standing("concurrent requests", 0),
        ]
    )

    told = [(each.name, each.remaining, each.reset_s) for each in limits]
    assert told == [("requests", 5, 60.0), ("tokens", 10, 9.0)]


def test_of_two_that_are_used_up_the_one_that_takes_longer_is_told():
    limits = rate_limits(
        [standing("requests per minute", 0, 60_000), standing("requests per day", 0, 80_000_000)]
    )

    assert [each.reset_s for each in limits] == [80_000.0]


def test_without_limits_nothing_is_told():
    assert rate_limits([standing("concurrent requests", 0)]) == ()


def test_a_refusal_says_which_limit_and_until_when():
    used_up = UsedUp(
        unit="requests per minute",
        limit=100,
        wait_ms=1_500,
        standings=(standing("requests per minute", 0, 9_000),),
    )

    error = rate_limited(used_up)

    assert str(error) == "Rate limit reached: 100 requests per minute. Please try again in 2 s."
    assert error.retry_after_s == 1.5
    assert error.limits[0].remaining == 0


def test_a_refusal_that_no_waiting_helps_says_so():
    error = rate_limited(UsedUp(unit="tokens per minute", limit=1_000_000, wait_ms=None))

    assert error.retry_after_s is None
    assert str(error).startswith("Request too large: the limit is 1000000 tokens per minute.")


def test_a_limit_of_one_is_one_request():
    per_minute, at_once = (
        str(rate_limited(UsedUp(unit=unit, limit=1, wait_ms=1_000)))
        for unit in ("requests per minute", "concurrent requests")
    )

    assert per_minute.startswith("Rate limit reached: 1 request per minute.")
    assert at_once.startswith("Rate limit reached: 1 concurrent request.")

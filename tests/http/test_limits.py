"""Limits as headers, on success and on refusal."""

import pytest

from antiphon.errors import KeySuspended, Overloaded, RateLimited
from antiphon.http.errors import describe_error, error_body, error_headers
from antiphon.http.limits import duration, rate_limit_headers
from antiphon.turn_events import RateLimit

LIMITS = (
    RateLimit(name="requests", limit=60, remaining=59, reset_s=1.0),
    RateLimit(name="tokens", limit=150_000, remaining=149_984, reset_s=360.0),
)


def test_headers_are_openais():
    assert rate_limit_headers(LIMITS) == {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert rate_limit_headers(()) == {}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.012, "12ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (59.9996, "1m0s"),
        (90.951, "1m30.951s"),
        (360, "6m0s"),
        (86_340, "23h59m0s"),
        (-1, "0ms"),
    ],
)
def test_durations_are_written_as_openai_does(seconds, text):
    assert duration(seconds) == text


def limited(retry_after_s: float | None) -> RateLimited:
    return RateLimited("requests per minute", 60, retry_after_s, LIMITS)


def test_a_used_up_limit_says_where_one_stands_and_when_to_come_back():
    reply = describe_error(limited(1.5))
    headers = error_headers(reply)

    assert (reply.status, reply.type, reply.code) == (
        429,
        "rate_limit_error",
        "rate_limit_exceeded",
    )
    assert b'"param":null' in error_body(reply)
    assert (headers["Retry-After"], headers["retry-after-ms"]) == ("2", "1500")
    assert headers["x-ratelimit-remaining-requests"] == "59"
    assert headers["x-should-retry"] == "true"


def test_who_has_to_wait_long_is_told_so_and_not_to_come_at_once():
    """Beyond a minute SDKs ignore the advice, and try again within seconds."""
    headers = error_headers(describe_error(limited(7_200)))

    assert headers["Retry-After"] == "7200"
    assert headers["x-should-retry"] == "false"
    assert error_headers(describe_error(Overloaded(9.0, 2.0, 7_200)))["Retry-After"] == "60"


def test_what_never_fits_is_not_to_be_sent_again():
    headers = error_headers(describe_error(limited(None)))

    assert "Retry-After" not in headers
    assert headers["x-should-retry"] == "false"


def test_a_suspension_says_why():
    reply = describe_error(KeySuspended("unpaid bill"))

    assert (reply.status, reply.code, reply.retry_is_safe) == (403, "key_suspended", False)
    assert b"unpaid bill" in error_body(reply)

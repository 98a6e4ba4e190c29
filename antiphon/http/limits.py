"""Where a caller stands, as response headers: OpenAI's names, and its way to write durations."""

from collections.abc import Iterable

from antiphon.turn_events import RateLimit


def rate_limit_headers(limits: Iterable[RateLimit]) -> dict[str, str]:
    """`x-ratelimit-limit-requests` and the like; none where nothing is limited."""
    headers = {}
    for each in limits:
        headers[f"x-ratelimit-limit-{each.name}"] = str(each.limit)
        headers[f"x-ratelimit-remaining-{each.name}"] = str(each.remaining)
        headers[f"x-ratelimit-reset-{each.name}"] = duration(each.reset_s)
    return headers


def duration(seconds: float) -> str:
    """`12ms`, `1.5s`, `6m0s`, `23h59m0s`."""
    ms = max(0, round(seconds * 1000))
    if ms < 1000:
        return f"{ms}ms"
    minutes, ms = divmod(ms, 60_000)
    whole, part = divmod(ms, 1000)
    text = f"{whole}.{part:03d}".rstrip("0") + "s" if part else f"{whole}s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text

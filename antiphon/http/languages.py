"""What a client's reader reads, from its `Accept-Language` header (RFC 9110 12.5.4). Pure, and
bounded: a header may hold anything."""

import re

_MOST = 8
_LONGEST = 1000
_RANGE = re.compile(
    r"\s*([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8}){0,4})\s*(?:;\s*q=([01](?:\.\d{0,3})?))?"
)


def languages_of(header: str | None) -> tuple[str, ...]:
    """BCP 47, the preferred one first. What is malformed, or `*`, is left out."""
    found: dict[str, float] = {}
    for given in (header or "")[:_LONGEST].split(","):
        matched = _RANGE.fullmatch(given.rstrip())
        if matched is None:
            continue
        weight = float(matched[2] or 1)
        if weight > 0:
            found.setdefault(matched[1], weight)
    return tuple(sorted(found, key=lambda tag: -found[tag])[:_MOST])

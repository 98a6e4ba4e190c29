"""What a client is told of where its request went, beside the answer: headers."""

from antiphon.http.limits import rate_limit_headers
from antiphon.turn_events import TurnPlaced
from antiphon.views import Fate, Manifest

MOVED_HEADER = "x-antiphon-model-moved"
POLICY_HEADER = "x-antiphon-policy"
"""The version of the rules that judge it."""
CONTEXT_HEADER = "x-antiphon-context"
"""`trimmed`, `summarised` or `dropped`, where the model isn't shown all that came before; where it
is, but for images, `images`."""

EXPECTED_HEADER = "x-antiphon-expected-ms"
"""How long after it got its place the first text should come."""


def placed_headers(placed: TurnPlaced | None) -> dict[str, str]:
    """Of an answer; none where the request had no place yet when the headers had to leave."""
    if placed is None:
        return {}
    headers = rate_limit_headers(placed.limits)
    if placed.moved is not None:
        headers[MOVED_HEADER] = placed.moved
    if placed.expected_s is not None:
        headers[EXPECTED_HEADER] = str(round(placed.expected_s * 1000))
    if placed.policy is not None:
        headers[POLICY_HEADER] = placed.policy
    if placed.manifest is not None and placed.manifest.worst is not Fate.SHOWN:
        headers[CONTEXT_HEADER] = placed.manifest.worst.value
    elif placed.manifest is not None and placed.manifest.is_missing_images:
        headers[CONTEXT_HEADER] = "images"
    return headers


def cut_of(placed: TurnPlaced) -> Manifest | None:
    """What the model is shown, where that isn't all that came before, or not every file."""
    manifest = placed.manifest
    if manifest is None:
        return None
    is_whole = manifest.worst is Fate.SHOWN and not manifest.is_missing_files
    return None if is_whole and not manifest.is_missing_images else manifest

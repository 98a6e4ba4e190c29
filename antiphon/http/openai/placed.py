"""What a client is told of where its request went, beside the answer: headers."""

from antiphon.http.limits import rate_limit_headers
from antiphon.turn_events import TurnPlaced
from antiphon.views import Fate, Manifest

MOVED_HEADER = "x-antiphon-model-moved"
POLICY_HEADER = "x-antiphon-policy"
"""The version of the rules that judge it."""
CONTEXT_HEADER = "x-antiphon-context"
"""`trimmed`, `summarised` or `dropped`, where the model isn't shown all that came before."""


def placed_headers(placed: TurnPlaced | None) -> dict[str, str]:
    """Of an answer; none where the request had no place yet when the headers had to leave."""
    if placed is None:
        return {}
    headers = rate_limit_headers(placed.limits)
    if placed.moved is not None:
        headers[MOVED_HEADER] = placed.moved
    if placed.policy is not None:
        headers[POLICY_HEADER] = placed.policy
    if (cut := cut_of(placed)) is not None:
        headers[CONTEXT_HEADER] = cut.worst.value
    return headers


def cut_of(placed: TurnPlaced) -> Manifest | None:
    """What the model is shown, where that isn't all that came before."""
    manifest = placed.manifest
    return None if manifest is None or manifest.worst is Fate.SHOWN else manifest

"""What a client is told of where its request went, beside the answer: headers."""

from antiphon.events import TurnPlaced
from antiphon.http.limits import rate_limit_headers

MOVED_HEADER = "x-antiphon-model-moved"
POLICY_HEADER = "x-antiphon-policy"
"""The version of the rules that judge it."""


def placed_headers(placed: TurnPlaced | None) -> dict[str, str]:
    """Of an answer; none where the request had no place yet when the headers had to leave."""
    if placed is None:
        return {}
    headers = rate_limit_headers(placed.limits)
    if placed.moved is not None:
        headers[MOVED_HEADER] = placed.moved
    if placed.policy is not None:
        headers[POLICY_HEADER] = placed.policy
    return headers

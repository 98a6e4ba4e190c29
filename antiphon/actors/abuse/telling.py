"""What a subject is told of what is done against it, and for how long. Pure."""

from datetime import UTC, datetime

from antiphon.actors.abuse.actions import Standing

WARNING = (
    "policy has blocked prompts of this account; if that goes on, its requests are slowed down "
    "and then refused"
)
"""A header's value: ASCII."""


def reason_of(standing: Standing) -> str:
    """Of a suspension, as it stands in its refusal: `… suspended: <this>. Contact the operator.`"""
    assert standing.until_ms is not None
    return (
        "automatically, for what the policy has blocked of its prompts, until "
        f"{instant(standing.until_ms)}; it ends by itself"
    )


def instant(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(timespec="seconds")

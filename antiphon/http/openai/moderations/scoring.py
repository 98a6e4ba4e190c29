"""The `moderation` field of a request for an answer, checked."""

from antiphon.errors import InvalidRequest
from antiphon.http.openai.schema import ModerationConfig, ModerationOptions
from antiphon.moderating import Moderation
from antiphon.verdicts import Scoring

OPENAI_MODELS = (
    "omni-moderation-latest",
    "omni-moderation-2024-09-26",
    "text-moderation-latest",
    "text-moderation-stable",
)
"""What clients ask for; the one classifier here stands for all of them."""


def scoring_of(options: ModerationOptions | None, moderation: Moderation | None) -> Scoring | None:
    """Raises InvalidRequest for a model that isn't there, or where none is."""
    if options is None:
        return None
    if moderation is None:
        raise InvalidRequest(
            "Unsupported parameter: 'moderation' is not supported by this server.",
            "moderation",
            "unsupported_parameter",
        )
    known = (moderation.model, *OPENAI_MODELS)
    if options.model not in known:
        raise InvalidRequest(
            f"Invalid value for 'moderation.model': {options.model[:100]!r}. Supported values are: "
            f"{', '.join(map(repr, known))}.",
            "moderation.model",
            "invalid_value",
        )
    policy = options.policy
    return Scoring(
        blocks_input=policy is not None and _blocks(policy.input),
        blocks_output=policy is not None and _blocks(policy.output),
    )


def _blocks(config: ModerationConfig | None) -> bool:
    return config is not None and config.mode == "block"

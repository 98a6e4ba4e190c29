"""Which of the versions in force a conversation is given. Pure."""

from antiphon.actors.routing.route import share_point
from antiphon.context_records import PromptActivation


def arm_of(activation: PromptActivation, conversation: str) -> int:
    """The version for a conversation, named by its key: always the same while the arms are. They
    have their parts of the scale in order, so that a canary whose share grows keeps the
    conversations that it has."""
    point = share_point(f"{activation.name}\n{conversation}")
    arms = [(version, share) for version, share in activation.arms.items() if share > 0]
    arms.sort(reverse=True)
    end = 0.0
    for version, share in arms:
        end += share
        if point < end:
            return version
    return arms[-1][0]  # shares that together are a rounding error less than 1

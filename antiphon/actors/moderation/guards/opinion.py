"""What a guard model says of one text, whichever family it is of."""

from dataclasses import dataclass

from antiphon.events import Message
from antiphon.verdicts import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """`categories` are the guard's own, and only those of a text that is unsafe."""

    unsafe: bool
    categories: tuple[str, ...] = ()


def conversation(stage: Stage, text: str) -> tuple[Message, ...]:
    """The conversation that a guard's own chat template makes its task of: it judges the last
    message, as the user's or as the assistant's."""
    if stage is not Stage.OUTPUT:
        return (Message(role="user", content=text),)
    # Their templates want turns that alternate, and begin with the user's.
    return (Message(role="user", content="(not shown)"), Message(role="assistant", content=text))

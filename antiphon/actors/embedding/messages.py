"""What the embedding worker is told."""

from dataclasses import dataclass

from antiphon.actors.reply import Reply
from antiphon.embedding_frames import Drop, Found, Missing, Put, Settle


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the process says to a question, and which process: what it has, the next one hasn't."""

    said: Found | Missing
    process: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Embed:
    """A few passages. Fails with EmbeddingUnavailable."""

    texts: tuple[str, ...]
    reply: Reply[bytes]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Find:
    """Somebody waits. Fails with EmbeddingUnavailable."""

    question: str
    scopes: tuple[tuple[str, int], ...]
    limit: int
    only: tuple[str, ...] | None
    reply: Reply[Answer]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fill:
    """Have the index of that very process changed; answered once the process has been told. Fails
    with EmbeddingUnavailable when it runs no more."""

    commands: tuple[Put | Drop | Settle, ...]
    process: int
    reply: Reply[None]


WorkerMessage = Embed | Find | Fill

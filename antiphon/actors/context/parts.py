"""A turn's messages as the planner sees them: numbers, and no text. What tokenizers say of them is
found elsewhere."""

from dataclasses import dataclass

from antiphon.events import Role
from antiphon.ids import ItemId
from antiphon.views import PieceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One message. `tokens` are its text's, without what the template adds around it."""

    kind: PieceKind
    role: Role
    tokens: int
    short: int | None = None
    """What it has with its middle left out; None for one that is always shown whole."""
    same: int | None = None
    """The same number for parts with the same long text; None where no other has it."""
    calls: tuple[str, ...] = ()
    item: ItemId | None = None
    rank: int | None = None
    covers: int = 0
    covered_tokens: int = 0

    @property
    def is_answer(self) -> bool:
        """Whether a model has said it."""
        return self.role == "assistant"

    @property
    def is_result(self) -> bool:
        """Whether it is what a tool said."""
        return self.role == "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a model's template adds, as far as it adds the same each time: around all messages, and
    around each of them."""

    base: int = 0
    each: int = 0

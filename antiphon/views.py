"""What a view, the prompt of one turn, is made of, and what became of it: values that rooms
exchange, and that are kept with a response and shown to whoever asked for it."""

import enum
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.ids import FileId, ItemId

Truncation = Literal["auto", "disabled"]


class PieceKind(enum.StrEnum):
    """What one message of a turn is there for."""

    PROMPT = "prompt"
    """The operator's system prompt."""
    INSTRUCTIONS = "instructions"
    """The client's own, for this turn."""
    TOOLS = "tools"
    MEMORY = "memory"
    SUMMARY = "summary"
    RETRIEVED = "retrieved"
    """What is shown of files. It stands right before the message that it is to answer, and is part
    of that for the model."""
    HISTORY = "history"
    INPUT = "input"
    """What is new in this turn: never left out, never cut."""


TURNS = frozenset({PieceKind.HISTORY, PieceKind.INPUT})
"""What belongs to the turns of the conversation. All else stands before them, and stays."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn's message is, beside its text. `tokens` is how many the item had when it was
    counted, None where it never was."""

    kind: PieceKind
    item: ItemId | None = None
    """Of a memory: where it was said."""
    tokens: int | None = None
    calls: tuple[str, ...] = ()
    """The calls that it is, or is the result of: neither is shown without the other."""
    rank: int | None = None
    """Of a memory, and of what was found in files: which of them comes first where not all may be
    shown, 0 before 1. Without one it is always shown."""
    covers: int = 0
    """Of a summary: how many items it stands for, `item` being the last of them."""
    covered_tokens: int = 0
    """What those had."""


class Fate(enum.StrEnum):
    """What became of a piece."""

    SHOWN = "shown"
    TRIMMED = "trimmed"
    """Its middle was left out, and the model is told so."""
    SUMMARISED = "summarised"
    DROPPED = "dropped"


class ManifestRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Items in a row with the same fate. `tokens` is what they have, `shown_tokens` what the model
    was shown of them; the latter of all runs and `template_tokens` together are the prompt."""

    kind: PieceKind
    fate: Fate
    items: int
    tokens: int
    shown_tokens: int
    first: ItemId | None = None
    last: ItemId | None = None


class FileFate(enum.StrEnum):
    """What the model was shown of a file."""

    WHOLE = "whole"
    EXCERPTS = "excerpts"
    """What answers the newest message, as far as anything does."""
    NOT_READY = "not_ready"
    """It is still being read."""
    FAILED = "failed"
    """It couldn't be read."""
    DELETED = "deleted"


class ShownFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that a turn was given or that was searched for it. Of one that isn't shown the model
    is told so, and why."""

    file_id: FileId
    filename: str
    fate: FileFate
    excerpts: int = 0
    """How many pieces of it were found."""
    reason: str | None = None


class ImageFate(enum.StrEnum):
    """What the model was shown of an image."""

    SHOWN = "shown"
    NO_VISION = "no_vision"
    """The model can't see any, and was told so."""
    LEFT_OUT = "left_out"
    """There were more, or larger ones, than a turn shows: the newest are. The model was told so."""
    DROPPED = "dropped"
    """With the message that it stands in."""
    DELETED = "deleted"


class ShownImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image in the messages of a turn. `tokens` is an estimate, by its size."""

    file_id: FileId
    fate: ImageFate
    width: int
    height: int
    tokens: int = 0


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the model was shown of a turn and of what came before, and what not. In tokens."""

    window: int
    reserved_for_answer: int
    prompt_tokens: int
    template_tokens: int
    """What the chat template adds around all messages."""
    truncation: Truncation
    runs: tuple[ManifestRun, ...]
    files: tuple[ShownFile, ...] | UnsetType = UNSET
    """What became of the turn's files, where it has any."""
    images: tuple[ShownImage, ...] | UnsetType = UNSET
    """What became of the images in its messages, where they have any."""

    @property
    def worst(self) -> Fate:
        """The heaviest thing that became of anything: memories and excerpts that found no room
        aside."""
        optional = {PieceKind.MEMORY, PieceKind.RETRIEVED}
        fates = {run.fate for run in self.runs if run.kind not in optional}
        order = (Fate.DROPPED, Fate.SUMMARISED, Fate.TRIMMED)
        return next((fate for fate in order if fate in fates), Fate.SHOWN)

    @property
    def is_missing_files(self) -> bool:
        """Whether the model was not shown anything of a file that it was to be shown."""
        files = () if isinstance(self.files, UnsetType) else self.files
        return any(each.fate not in {FileFate.WHOLE, FileFate.EXCERPTS} for each in files)

    @property
    def is_missing_images(self) -> bool:
        """Whether the model was not shown an image that stands in the messages."""
        images = () if isinstance(self.images, UnsetType) else self.images
        return any(each.fate is not ImageFate.SHOWN for each in images)

    def items(self, fate: Fate) -> int:
        """How many there are of it in the turns."""
        return sum(run.items for run in self.runs if run.fate is fate and run.kind in TURNS)

"""The images of a turn: which of them a model is shown, and in which words it is told of the rest.
Pure.

Keeps the rule that no image is left out silently: where one isn't shown, its message says so.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from antiphon.events import Image, Message, Turn
from antiphon.ids import FileId, ItemId
from antiphon.messages import text_and_images
from antiphon.pictures import NAMES
from antiphon.records import File
from antiphon.views import ImageFate, ShownImage

_WHY = {
    None: "You can't see pictures, so you don't know what is on it; say so where it matters.",
    "deleted": "It was deleted, so you can't see it; say so where it matters.",
    "left_out": "There are too many pictures to show it again; say so where it matters.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Whether a model is shown images, and about how many tokens one takes there."""

    sees: bool = False
    count: Callable[[Image], int] = lambda image: 0


def wanted(turn: Turn, most: int) -> tuple[FileId, ...]:
    """Which files of images somebody has to look for: the newest, and not more than may be shown
    at once."""
    images = (image.file for message in reversed(turn.messages) for image in message.images[::-1])
    return tuple(dict.fromkeys(images))[:most]


def settled(turn: Turn, files: Mapping[FileId, File | None], *, most_bytes: int) -> Turn:
    """With what was found of those that were wanted, in their order: the newest are shown, until
    together they have too many bytes."""
    shown: set[FileId] = set()
    left = most_bytes
    for id, file in files.items():
        left -= 0 if file is None else file.bytes
        if left >= 0:
            shown.add(id)

    def known(image: Image) -> Image:
        if image.file not in shown:
            return replace(image, missing="left_out")
        file = files[image.file]
        if file is None:
            return replace(image, missing="deleted")
        return replace(image, sha256=file.sha256)

    return replace(
        turn,
        messages=tuple(
            replace(message, images=tuple(map(known, message.images)))
            if message.images
            else message
            for message in turn.messages
        ),
    )


def as_seen(turn: Turn, sight: Sight) -> Turn:
    """As a model is shown it: of what it doesn't see it is told in words, in its place. What was
    counted of such messages doesn't hold, since no two models have the same of them."""
    if not any(message.images for message in turn.messages):
        return turn
    return replace(
        turn,
        messages=tuple(_told(message, sees=sight.sees) for message in turn.messages),
        pieces=tuple(
            msgspec.structs.replace(piece, tokens=None) if message.images else piece
            for message, piece in zip(turn.messages, turn.pieces, strict=bool(turn.pieces))
        ),
    )


def with_images(turn: Turn) -> frozenset[ItemId]:
    """The items that have some."""
    return frozenset(
        piece.item
        for message, piece in zip(turn.messages, turn.pieces, strict=bool(turn.pieces))
        if message.images and piece.item is not None
    )


def shown_images(turn: Turn, sight: Sight, shown: Sequence[bool]) -> tuple[ShownImage, ...]:
    """What became of each; `shown` says which messages were."""
    return tuple(
        ShownImage(
            file_id=image.file,
            fate=fate,
            width=image.width,
            height=image.height,
            tokens=sight.count(image) if fate is ImageFate.SHOWN else 0,
        )
        for message, is_shown in zip(turn.messages, shown, strict=False)
        for image in message.images
        for fate in (_fate(image, sight, is_shown=is_shown),)
    )


def placeholders(messages: Sequence[Message], sight: Sight) -> list[int]:
    """As many token ids as their images may take: of no vocabulary, and the same for the same
    image."""
    return [
        zlib.crc32(image.file.encode())
        for message in messages
        for image in message.images
        for _ in range(sight.count(image))
    ]


def _fate(image: Image, sight: Sight, *, is_shown: bool) -> ImageFate:
    if not is_shown:
        return ImageFate.DROPPED
    if image.missing is not None:
        return ImageFate(image.missing)
    return ImageFate.SHOWN if sight.sees else ImageFate.NO_VISION


def _told(message: Message, *, sees: bool) -> Message:
    if not message.images:
        return message
    lines: list[str] = []
    images: list[Image] = []
    for each in text_and_images(message):
        if isinstance(each, str):
            lines += each.split("\n")
        elif sees and each.missing is None:
            images.append(replace(each, line=len(lines)))
        else:
            lines.append("".join(_words(each)))
    return replace(message, content="\n".join(lines), images=tuple(images))


def _words(image: Image) -> Iterator[str]:
    yield "[Picture: "
    if image.name is not None:
        yield f'"{image.name}", '
    yield f"{NAMES.get(image.media_type, 'image')}, {image.width} × {image.height} pixels. "
    yield f"{_WHY[image.missing]}]"

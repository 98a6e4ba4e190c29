"""Images of a request: how they may be given, and how many of them, how large. What one is, its
bytes say: what a client declares is never looked at.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from antiphon.errors import InvalidRequest
from antiphon.events import Detail
from antiphon.files_settings import FilesSettings
from antiphon.http.openai.refusals import no_vision
from antiphon.http.openai.responses.schema import ImagePart
from antiphon.ids import ModelName
from antiphon.messages import IMAGE
from antiphon.pictures import Damaged, Picture, read_picture
from antiphon.ports import Chat
from antiphon.records import Item, JsonObject

PURPOSES = frozenset({"user_data", "vision", "assistants"})
"""Of an uploaded file that may be shown as an image."""
INLINE = "file_data"
"""Where a part of a message has a file that is not kept yet."""
EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenImage:
    """An image of a request, at `path`: by the id of a file, or as a `data:` URL."""

    path: str
    file_id: str | None = None
    data: str | None = None
    detail: Detail = "auto"
    place: int = 0
    """Of a chat: in which of the user's messages."""
    line: int = 0
    """Before which line of its text."""


def given_image(
    path: str, *, url: str | None, file_id: str | None, url_path: str, detail: Detail | None
) -> GivenImage:
    """Raises InvalidRequest unless it is one of both, and a URL brings the image along."""
    if (url is None) == (file_id is None):
        raise InvalidRequest(
            f"Exactly one of '{path}.image_url' and '{path}.file_id' must be provided.",
            path,
            "missing_required_parameter" if url is None else "mutually_exclusive_parameters",
        )
    if url is not None and url[:5].lower() != "data:":
        raise InvalidRequest(
            "This server doesn't fetch images: send it as 'data:image/…;base64,…', or upload it "
            f"and give its id. The value of '{url_path}' is another URL.",
            url_path,
            "invalid_image_url",
        )
    return GivenImage(path=path, file_id=file_id, data=url, detail=detail or "auto")


def check_vision(chat: Chat, model: ModelName, plan: str | None, param: str) -> None:
    """Raises InvalidRequest where no engine behind the model sees images, as far as is known, and
    says which models do."""
    if chat.sees(model) is not False:
        return
    names = [card.name for card in chat.models(plan)]
    raise no_vision(param, model, [name for name in names if chat.sees(name)])


def first_image(items: Iterable[object], at: str) -> str | None:
    """Where the first image is among the items of a request."""
    for index, item in enumerate(items):
        content = item.body.get("content") if isinstance(item, Item) else None
        for place, part in enumerate(content if isinstance(content, list) else ()):
            if part.get("type") == IMAGE:
                return f"{at}[{index}].content[{place}]"
    return None


def image_draft(part: ImagePart, path: str) -> JsonObject:
    """What a message has until the image is looked up, or put where files are kept. Raises
    InvalidRequest."""
    given = given_image(
        path,
        url=part.image_url,
        file_id=part.file_id,
        url_path=f"{path}.image_url",
        detail=part.detail,
    )
    found = {"file_id": given.file_id, INLINE: given.data}
    return {
        "type": IMAGE,
        "detail": given.detail,
        **{name: value for name, value in found.items() if value is not None},
    }


class Tally:
    """Of the images of one request."""

    def __init__(self, settings: FilesSettings) -> None:
        self._settings = settings
        self._count = 0
        self._left = settings.image_bytes

    def begin(self, path: str) -> None:
        """One more, of which nothing is known. Raises InvalidRequest."""
        self._count += 1
        if self._count > self._settings.images:
            raise InvalidRequest(
                f"Invalid '{path}': there are too many images. Expected at most "
                f"{self._settings.images} in a request.",
                path,
                "array_above_max_length",
            )

    def check_size(self, size: int, path: str) -> None:
        """Raises InvalidRequest."""
        if size > self._left:
            raise InvalidRequest(
                f"Invalid '{path}': the images of a request may have "
                f"{self._settings.image_mib} MiB together, and with this one they have more.",
                path,
                "image_file_too_large",
            )

    def take(self, data: bytes, path: str) -> Picture:
        """What it is. Raises InvalidRequest."""
        self.check_size(len(data), path)
        self._left -= len(data)
        try:
            picture = read_picture(data)
        except Damaged as error:
            raise InvalidRequest(f"Invalid '{path}': {error}", path, "image_parse_error") from None
        if picture is None:
            raise InvalidRequest(
                f"Invalid '{path}': by its bytes it is no image that a model can be shown. "
                "Supported are PNG, JPEG, GIF, and WebP.",
                path,
                "invalid_image_format",
            )
        most = self._settings.image_megapixels
        if picture.width * picture.height > most * 1_000_000:
            raise InvalidRequest(
                f"Invalid '{path}': the image has {picture.width} × {picture.height} pixels. "
                f"Expected at most {most:g} million.",
                path,
                "image_too_large",
            )
        return picture

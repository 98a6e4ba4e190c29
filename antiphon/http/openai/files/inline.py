"""Files of a message: those that it names are looked up, those that it brings along are kept, as
if they had been uploaded.

The same file of the same user, sent again with a conversation or by an SDK that retries, is the
same file: it isn't read twice.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import trio

from antiphon.errors import InvalidRequest, PayloadTooLarge, RecordNotFound, StoreFailed
from antiphon.events import Image
from antiphon.files_settings import FilesSettings
from antiphon.http.openai.body import checked_id, wall_ms
from antiphon.http.openai.files.images import EXTENSIONS, INLINE, PURPOSES, GivenImage, Tally
from antiphon.http.openai.files.names import media_type, safe_name
from antiphon.ids import FileId, UserId
from antiphon.kept_images import KeptImages
from antiphon.messages import FILE, IMAGE, image_part
from antiphon.pictures import Picture
from antiphon.ports import Contents
from antiphon.records import File, Item, JsonObject
from antiphon.settings import HttpSettings
from antiphon.storage import StoreAccess

R = TypeVar("R")
T = TypeVar("T")

MAX_FILENAME = 1024
_PURPOSE = "user_data"
_VISION = "vision"
_KINDS = frozenset({FILE, IMAGE})
_INLINE_CHARACTERS = 262_144
_WRITE_GRACE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenFile:
    """A file of a request, at `path`: by its id, or with all that is in it."""

    path: str
    file_id: str | None = None
    filename: str | None = None
    data: str | None = None


def check_given(file_id: str | None, data: str | None, path: str) -> None:
    """Raises InvalidRequest unless it is one of both."""
    if (file_id is None) == (data is None):
        raise InvalidRequest(
            f"Exactly one of '{path}.file_id' and '{path}.file_data' must be provided.",
            path,
            "missing_required_parameter" if file_id is None else "mutually_exclusive_parameters",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFiles:
    """What the handlers work with."""

    store: StoreAccess
    contents: Contents
    http: Callable[[], HttpSettings]
    settings: Callable[[], FilesSettings]
    now_ms: Callable[[], int] = wall_ms

    async def placed(
        self, user: UserId, items: Sequence[Item | R], *, is_kept: bool
    ) -> tuple[Item | R, ...]:
        """The items of a request, whose parts name files that are there, each with its name, and
        images that are some; what else is in the list stays as it is. With `is_kept`, what comes
        inside of them stays as long as they do. Raises RecordNotFound, InvalidRequest,
        PayloadTooLarge, StoreError."""
        tally = Tally(self.settings())
        return tuple(
            [
                await self._item(user, item, f"input[{index}]", tally, is_kept=is_kept)
                if isinstance(item, Item)
                else item
                for index, item in enumerate(items)
            ]
        )

    async def found(self, user: UserId, given: Iterable[GivenFile]) -> tuple[File, ...]:
        """Those of a chat, of which nothing is kept. Raises as `placed`."""
        return tuple([await self._file(user, each, is_kept=False) for each in given])

    async def with_images(self, user: UserId, items: Sequence[Item]) -> tuple[Item, ...]:
        """Items that are put into a conversation; files that they name stay as they are. Raises as
        `placed`."""
        tally = Tally(self.settings())
        return tuple(
            [
                await self._item(
                    user, item, f"items[{index}]", tally, is_kept=True, kinds=frozenset({IMAGE})
                )
                for index, item in enumerate(items)
            ]
        )

    async def images(
        self, user: UserId, given: Iterable[GivenImage], *, is_kept: bool
    ) -> tuple[Image, ...]:
        """Those of a chat. Raises as `placed`."""
        tally = Tally(self.settings())
        return tuple([await self._image(user, each, tally, is_kept=is_kept) for each in given])

    async def _item(
        self,
        user: UserId,
        item: Item,
        path: str,
        tally: Tally,
        *,
        is_kept: bool,
        kinds: frozenset[str] = _KINDS,
    ) -> Item:
        content = item.body.get("content")
        if item.type != "message" or not isinstance(content, list):
            return item
        if kinds.isdisjoint(part.get("type") for part in content):
            return item
        parts: list[JsonObject] = []
        for place, part in enumerate(content):
            where = f"{path}.content[{place}]"
            if part.get("type") == IMAGE:
                image = GivenImage(
                    path=where,
                    file_id=part.get("file_id"),
                    data=part.get(INLINE),
                    detail=part["detail"],
                )
                shown = await self._image(user, image, tally, is_kept=is_kept)
                parts.append(image_part(shown))
                continue
            if part.get("type") not in kinds:
                parts.append(part)
                continue
            given = GivenFile(
                path=where,
                file_id=part.get("file_id"),
                filename=part.get("filename"),
                data=part.get(INLINE),
            )
            file = await self._file(user, given, is_kept=is_kept)
            parts.append({"type": FILE, "file_id": file.id, "filename": file.filename})
        return replace(item, body=item.body | {"content": parts})

    async def _file(self, user: UserId, given: GivenFile, *, is_kept: bool) -> File:
        if given.data is None:
            return await self._known(user, given.file_id, f"{given.path}.file_id")
        declared, data = await _decoded(given.data, f"{given.path}.{INLINE}")
        return await self._keep(
            user, data, safe_name(given.filename), declared, _PURPOSE, is_kept=is_kept
        )

    async def _known(self, user: UserId, file_id: str | None, param: str) -> File:
        id = FileId(checked_id("file", file_id or "", param))
        found = await self.store.run(lambda store: store.file(user, id))
        if found is None:
            raise RecordNotFound("file", id, param)
        return found

    async def _image(
        self, user: UserId, given: GivenImage, tally: Tally, *, is_kept: bool
    ) -> Image:
        """Proven to be one, before anything is kept of it."""
        tally.begin(given.path)
        if given.data is not None:
            _, data = await _decoded(given.data, given.path)
            picture = await _off_the_loop(lambda: tally.take(data, given.path), len(data))
            kind = picture.media_type
            name = f"image.{EXTENSIONS[kind]}"
            file = await self._keep(user, data, name, kind, _VISION, is_kept=is_kept)
        else:
            param = f"{given.path}.file_id"
            file = await self._known(user, given.file_id, param)
            picture = await self._uploaded(file, tally, param)
        return Image(
            file=file.id,
            sha256=file.sha256,
            media_type=picture.media_type,
            width=picture.width,
            height=picture.height,
            line=given.line,
            detail=given.detail,
            name=None if given.data is not None else file.filename,
        )

    async def _uploaded(self, file: File, tally: Tally, param: str) -> Picture:
        if file.purpose not in PURPOSES:
            raise InvalidRequest(
                f"Invalid '{param}': the file's purpose is '{file.purpose[:100]}'. Upload images "
                "with the purpose 'vision' or 'user_data'.",
                param,
                "invalid_value",
            )
        tally.check_size(file.bytes, param)
        data = await KeptImages(self.contents).read(file.sha256)
        if data is None:
            raise RecordNotFound("file", file.id, param)
        return await _off_the_loop(lambda: tally.take(data, param), len(data))

    async def _keep(
        self,
        user: UserId,
        data: bytes,
        name: str,
        declared: str | None,
        purpose: str,
        *,
        is_kept: bool,
    ) -> File:
        """The content, then its record, then the content once more, as an upload."""
        most = self.http().max_file_bytes
        if len(data) > most:
            raise PayloadTooLarge(most)
        now_ms = self.now_ms()
        keep_ms = round(self.settings().inline_keep_s * 1000)
        # What isn't kept goes by the clock, so that it is there for one more such time at least.
        period = "" if is_kept else str(now_ms // keep_ms)
        words = (user, hashlib.sha256(data).hexdigest(), name, period)
        id = FileId(f"file-{hashlib.sha256(chr(0).join(words).encode()).hexdigest()[:24]}")
        known = await self.store.run(lambda store: store.file(user, id))
        if known is not None:
            return known
        draft = await self.contents.draft()
        try:
            await draft.write(data)
            stored = await draft.commit()
            file = File(
                id=id,
                user=user,
                filename=name,
                purpose=purpose,
                media_type=media_type(declared, name),
                bytes=stored.size,
                sha256=stored.sha256,
                created_ms=now_ms,
                expires_ms=None if is_kept else (now_ms // keep_ms + 2) * keep_ms,
            )
            with trio.move_on_after(_WRITE_GRACE_S, shield=True):
                await self.store.run(lambda store: store.add_file(file))
                await draft.confirm()
                return file
        finally:
            draft.close()
        raise StoreFailed("the record of a file was not written in time")


async def _decoded(text: str, param: str) -> tuple[str | None, bytes]:
    """The media type, where it is said, and the bytes. Raises InvalidRequest."""
    declared: str | None = None
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise _no_base64(param)
        declared = head.removeprefix("data:").removesuffix(";base64") or None
    try:
        return declared, await _off_the_loop(lambda: _decode(text), len(text))
    except (binascii.Error, ValueError):
        raise _no_base64(param) from None


def _decode(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


async def _off_the_loop(work: Callable[[], T], size: int) -> T:
    return work() if size <= _INLINE_CHARACTERS else await trio.to_thread.run_sync(work)


def _no_base64(param: str) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid '{param}': expected base64, or a URL that begins as 'data:…;base64,'.",
        param,
        "invalid_value",
    )

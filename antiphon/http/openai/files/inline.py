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
from antiphon.files_settings import FilesSettings
from antiphon.http.openai.body import checked_id, wall_ms
from antiphon.http.openai.files.names import media_type, safe_name
from antiphon.ids import FileId, UserId
from antiphon.messages import FILE
from antiphon.ports import Contents
from antiphon.records import File, Item, JsonObject
from antiphon.settings import HttpSettings
from antiphon.storage import StoreAccess

R = TypeVar("R")

INLINE = "file_data"
"""Where a part of a message has a file that is not kept yet."""
MAX_FILENAME = 1024
_PURPOSE = "user_data"
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
        """The items of a request, whose parts name files that are there, each with its name; what
        else is in the list stays as it is. With `is_kept`, what comes inside of them stays as long
        as they do. Raises RecordNotFound, InvalidRequest, PayloadTooLarge, StoreError."""
        return tuple(
            [
                await self._item(user, item, f"input[{index}]", is_kept=is_kept)
                if isinstance(item, Item)
                else item
                for index, item in enumerate(items)
            ]
        )

    async def found(self, user: UserId, given: Iterable[GivenFile]) -> tuple[File, ...]:
        """Those of a chat, of which nothing is kept. Raises as `placed`."""
        return tuple([await self._file(user, each, is_kept=False) for each in given])

    async def _item(self, user: UserId, item: Item, path: str, *, is_kept: bool) -> Item:
        content = item.body.get("content")
        if item.type != "message" or not isinstance(content, list):
            return item
        if all(part.get("type") != FILE for part in content):
            return item
        parts: list[JsonObject] = []
        for place, part in enumerate(content):
            if part.get("type") != FILE:
                parts.append(part)
                continue
            given = GivenFile(
                path=f"{path}.content[{place}]",
                file_id=part.get("file_id"),
                filename=part.get("filename"),
                data=part.get(INLINE),
            )
            file = await self._file(user, given, is_kept=is_kept)
            parts.append({"type": FILE, "file_id": file.id, "filename": file.filename})
        return replace(item, body=item.body | {"content": parts})

    async def _file(self, user: UserId, given: GivenFile, *, is_kept: bool) -> File:
        if given.data is not None:
            return await self._keep(user, given, given.data, is_kept=is_kept)
        param = f"{given.path}.file_id"
        id = FileId(checked_id("file", given.file_id or "", param))
        found = await self.store.run(lambda store: store.file(user, id))
        if found is None:
            raise RecordNotFound("file", id, param)
        return found

    async def _keep(self, user: UserId, given: GivenFile, text: str, *, is_kept: bool) -> File:
        """The content, then its record, then the content once more, as an upload."""
        declared, data = await _decoded(text, f"{given.path}.{INLINE}")
        most = self.http().max_file_bytes
        if len(data) > most:
            raise PayloadTooLarge(most)
        name = safe_name(given.filename)
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
                purpose=_PURPOSE,
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
        if len(text) <= _INLINE_CHARACTERS:
            return declared, base64.b64decode(text, validate=True)
        return declared, await trio.to_thread.run_sync(_decode, text)
    except (binascii.Error, ValueError):
        raise _no_base64(param) from None


def _decode(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _no_base64(param: str) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid '{param}': expected base64, or a URL that begins as 'data:…;base64,'.",
        param,
        "invalid_value",
    )

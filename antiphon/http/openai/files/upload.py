"""A multipart upload, read as it comes: fields to memory, the file to a draft. It keeps one rule:
whatever ends an upload early, nothing of it stays."""

from dataclasses import dataclass, field
from typing import NoReturn

from quart import request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.sansio.multipart import (
    Data,
    Epilogue,
    Event,
    Field,
    File,
    MultipartDecoder,
    NeedData,
    Preamble,
)

from antiphon.errors import InvalidRequest, PayloadTooLarge
from antiphon.http.body_stream import BodyStream
from antiphon.http.openai.body import refuse_compressed
from antiphon.http.openai.files.names import media_type, safe_name
from antiphon.ports import ContentDraft

_PIECE_BYTES = 128 * 1024
_MAX_PARTS = 8
_MAX_FIELD_BYTES = 4096
_PADDING = 64
"""Line ends, dashes and white space around a boundary."""
_MAX_BOUNDARY = 200
"""The standard says 70; some clients write more."""
_FIELDS = ("purpose", "expires_after[anchor]", "expires_after[seconds]")


@dataclass(slots=True)
class Form:
    """What has come of it so far. Mutable, with one owner: the parser."""

    fields: dict[str, str] = field(default_factory=dict)
    filename: str | None = None
    media_type: str = ""
    size: int = 0


def multipart_boundary() -> bytes:
    """Raises UnsupportedMediaType for a body of another kind, InvalidRequest."""
    refuse_compressed()
    if request.mimetype != "multipart/form-data":
        raise UnsupportedMediaType(
            f"Unsupported content type: '{request.mimetype[:100]}'. This API method only accepts "
            "'multipart/form-data' requests."
        )
    boundary = request.mimetype_params.get("boundary", "")
    if not boundary or len(boundary) > _MAX_BOUNDARY or not boundary.isascii():
        raise InvalidRequest("The multipart form has no usable boundary.")
    return boundary.encode("ascii")


class FormReader:
    """Reads one form into one draft."""

    def __init__(self, boundary: bytes, draft: ContentDraft, max_file_bytes: int) -> None:
        self._decoder = MultipartDecoder(boundary, 2 * _PIECE_BYTES, max_parts=_MAX_PARTS)
        self._draft = draft
        self._max_file_bytes = max_file_bytes
        self._form = Form()
        self._held = b""
        self._hold = len(boundary) + _PADDING
        self._part: str | None = None
        self._text = bytearray()

    async def read(self, body: BodyStream) -> Form:
        """The whole form; the file is in the draft. Raises InvalidRequest, PayloadTooLarge,
        RequestTimeout, StoreError."""
        while (piece := await body.next_piece()) is not None:
            await self._receive(self._without_partial_boundary(piece))
        await self._receive(self._held)
        await self._receive(None)
        return self._form

    def _without_partial_boundary(self, piece: bytes) -> bytes:
        """Hold back what may be the beginning of a boundary: werkzeug 3.1 takes the CR before a
        last boundary for content when a piece ends between its two dashes."""
        data = self._held + piece
        near = max(0, len(data) - self._hold)
        line = max(data.rfind(b"\r", near), data.rfind(b"\n", near))
        if line > 0 and data[line - 1 : line + 1] == b"\r\n":
            line -= 1
        self._held = data[line:] if line >= 0 else b""
        return data[:line] if line >= 0 else data

    async def _receive(self, data: bytes | None) -> None:
        if data is None:
            await self._decode(None)
            return
        for start in range(0, len(data), _PIECE_BYTES):
            await self._decode(data[start : start + _PIECE_BYTES])

    async def _decode(self, data: bytes | None) -> None:
        try:
            self._decoder.receive_data(data)
        except RequestEntityTooLarge:
            raise InvalidRequest(
                "The headers of a part of the multipart form are too long."
            ) from None
        while not isinstance(event := self._next(), NeedData | Epilogue):
            await self._take(event)

    def _next(self) -> Event:
        try:
            return self._decoder.next_event()
        except RequestEntityTooLarge:
            raise InvalidRequest(f"The multipart form has more than {_MAX_PARTS} parts.") from None
        except (ValueError, AttributeError):  # malformed in ways the decoder doesn't name
            _malformed()

    async def _take(self, event: Event) -> None:
        match event:
            case Preamble():
                return
            case File(name="file"):
                self._begin_file(event)
            case Field(name=name) | File(name=name):
                self._begin_field(name)
            case Data(data=data, more_data=more):
                await self._data(data)
                if not more and self._part != "file":
                    self._end_field()
            case _:
                _malformed()

    def _begin_file(self, part: File) -> None:
        if self._form.filename is not None:
            raise InvalidRequest("Only one 'file' may be uploaded at a time.", "file")
        self._part = "file"
        self._form.filename = safe_name(part.filename)
        self._form.media_type = media_type(part.headers.get("content-type"), self._form.filename)

    def _begin_field(self, name: str | None) -> None:
        if name == "file":
            raise InvalidRequest(
                "Invalid type for 'file': expected a file, but got a string instead.",
                "file",
                "invalid_type",
            )
        if name not in _FIELDS:
            shown = (name or "")[:100]
            raise InvalidRequest(f"Unrecognized request argument supplied: {shown}", shown or None)
        if name in self._form.fields:
            raise InvalidRequest(f"Duplicate form field: '{name}'.", name)
        self._part = name
        self._text.clear()

    async def _data(self, data: bytes) -> None:
        if self._part == "file":
            self._form.size += len(data)
            if self._form.size > self._max_file_bytes:
                raise PayloadTooLarge(self._max_file_bytes)
            await self._draft.write(data)
            return
        self._text += data
        if len(self._text) > _MAX_FIELD_BYTES:
            raise InvalidRequest(f"Invalid '{self._part}': string too long.", self._part)

    def _end_field(self) -> None:
        assert self._part is not None, "data without a part"
        try:
            self._form.fields[self._part] = self._text.decode()
        except UnicodeDecodeError:
            raise InvalidRequest(f"Invalid '{self._part}': not UTF-8.", self._part) from None


def _malformed() -> NoReturn:
    raise InvalidRequest("We could not parse the multipart form of your request.")

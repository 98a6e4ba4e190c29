"""Files as they go on the wire, and the schema of an upload's form. What has no value is left out:
the specification has no null there."""

from typing import Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.document_records import Document, DocumentStatus
from antiphon.http.openai.conversations.wire import ReceiptObject
from antiphon.http.openai.lists import ListBody
from antiphon.records import File, FileStatus, JsonObject

Purpose = Literal["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]
PURPOSES = get_args(Purpose)
MIN_EXPIRY_S = 3600
MAX_EXPIRY_S = 2_592_000


class ReadingError(msgspec.Struct, kw_only=True):
    code: str
    message: str


class FileReading(msgspec.Struct, kw_only=True):
    """How far the reading of a file has come, and what is to be said of it: `notices` are sentences
    on what was left out, or had to be guessed."""

    status: DocumentStatus
    progress: float
    """0…1."""
    pages: int | None
    notices: list[str]
    error: ReadingError | None


class FileObject(msgspec.Struct, kw_only=True):
    """`reading` is ours, from when the file is to be read; what can be uploaded is `processed` for
    clients that know only `status`."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    filename: str
    purpose: str
    status: FileStatus
    expires_at: int | UnsetType = UNSET
    reading: FileReading | UnsetType = UNSET


class DeletedFile(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["file"] = "file"
    deleted: Literal[True] = True
    receipt: ReceiptObject


FileList = ListBody[FileObject]

UPLOAD_FORM: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["file", "purpose"],
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "purpose": {"type": "string", "enum": list(PURPOSES)},
        "expires_after[anchor]": {"type": "string", "enum": ["created_at"]},
        "expires_after[seconds]": {
            "type": "integer",
            "minimum": MIN_EXPIRY_S,
            "maximum": MAX_EXPIRY_S,
        },
    },
    "dependentRequired": {
        "expires_after[anchor]": ["expires_after[seconds]"],
        "expires_after[seconds]": ["expires_after[anchor]"],
    },
}


def file_object(file: File, document: Document | None = None) -> FileObject:
    """The file, its times in seconds; `document` is what is read of it."""
    return FileObject(
        id=file.id,
        bytes=file.bytes,
        created_at=file.created_ms // 1000,
        filename=file.filename,
        purpose=file.purpose,
        status=file.status,
        expires_at=UNSET if file.expires_ms is None else file.expires_ms // 1000,
        reading=UNSET if document is None else _reading(document),
    )


def _reading(document: Document) -> FileReading:
    failure, error = document.failure, None
    if failure is not None:
        error = ReadingError(code=failure.code, message=failure.message)
    return FileReading(
        status=document.status,
        progress=document.progress,
        pages=document.pages,
        notices=list(document.notices),
        error=error,
    )

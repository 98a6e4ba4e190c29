"""Files as they go on the wire, and the schema of an upload's form. What has no value is left out:
the specification has no null there."""

from typing import Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.http.openai.conversations.wire import ReceiptObject
from antiphon.http.openai.lists import ListBody
from antiphon.records import File, FileStatus, JsonObject

Purpose = Literal["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]
PURPOSES = get_args(Purpose)
MIN_EXPIRY_S = 3600
MAX_EXPIRY_S = 2_592_000


class FileObject(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    filename: str
    purpose: str
    status: FileStatus
    expires_at: int | UnsetType = UNSET


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


def file_object(file: File) -> FileObject:
    """The file, its times in seconds."""
    return FileObject(
        id=file.id,
        bytes=file.bytes,
        created_at=file.created_ms // 1000,
        filename=file.filename,
        purpose=file.purpose,
        status=file.status,
        expires_at=UNSET if file.expires_ms is None else file.expires_ms // 1000,
    )

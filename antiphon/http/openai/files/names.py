"""File names from clients, made harmless, and the headers that send a file as one."""

import mimetypes
import re
import unicodedata
from urllib.parse import quote

_MAX_BYTES = 255
"""What file systems take."""
_MAX_EXTENSION = 20
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][\w!#$&^.+-]{0,126}")
_PLAIN = re.compile(r"[^A-Za-z0-9 ._()+-]")
_UNKNOWN = "application/octet-stream"


def safe_name(given: str | None) -> str:
    """The last part of a path, without control characters, at most 255 bytes long."""
    name = re.split(r"[/\\]", given or "")[-1]
    name = "".join(
        character for character in name if unicodedata.category(character) not in {"Cc", "Cs", "Cf"}
    )
    name = unicodedata.normalize("NFC", name).strip()
    if name.strip(".") == "":
        return "file"
    if len(name.encode()) <= _MAX_BYTES:
        return name
    stem, dot, extension = name.rpartition(".")
    if not stem or len(extension.encode()) > _MAX_EXTENSION:
        stem, dot, extension = name, "", ""
    room = _MAX_BYTES - len(f"{dot}{extension}".encode())
    return stem.encode()[:room].decode(errors="ignore") + dot + extension


def media_type(declared: str | None, name: str) -> str:
    """What the client declared, or what the name suggests. Only told to those who ask: contents
    leave as bytes to be saved."""
    essence = (declared or "").partition(";")[0].strip().lower()
    if essence != _UNKNOWN and _MEDIA_TYPE.fullmatch(essence):
        return essence
    return mimetypes.guess_type(name)[0] or _UNKNOWN


def attachment_headers(name: str, media: str = _UNKNOWN) -> dict[str, str]:
    """No browser shows it as a page of this server's, whatever it holds."""
    clean = safe_name(name)
    plain = _PLAIN.sub("_", clean)
    return {
        "content-type": media,
        "content-disposition": (
            f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(clean, safe='')}"
        ),
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
    }

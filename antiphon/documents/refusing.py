"""Why a file can't be read, in sentences for its owner. None quotes the file."""

from typing import NoReturn

from antiphon.errors import UnreadableFile
from antiphon.reading_files import Unreadable

_SENTENCES = {
    Unreadable.EMPTY: "The file is empty.",
    Unreadable.UNSUPPORTED: "Files of this kind can't be read.",
    Unreadable.DAMAGED: "The file is damaged or incomplete.",
    Unreadable.ENCODING: "The file isn't text, or is in an encoding that can't be told.",
    Unreadable.ENCRYPTED: "The file is protected by a password.",
    Unreadable.FORBIDDEN: "The file contains what documents of its kind must not contain.",
    Unreadable.NO_TEXT: "The file contains no text.",
    Unreadable.TOO_LARGE: "The file is too large.",
    Unreadable.TOO_MANY_PAGES: "The file has too many pages.",
    Unreadable.TOO_MUCH_TEXT: "The file contains too much text.",
    Unreadable.TOO_DEEP: "The file is nested too deeply.",
    Unreadable.TOO_SLOW: "Reading the file took too long.",
    Unreadable.TOO_MUCH_MEMORY: "Reading the file took too much memory.",
    Unreadable.CRASHED: (
        "The file's reader broke down on it: the file is damaged, or takes more memory than a file "
        "may."
    ),
}


def unreadable(code: Unreadable, message: str | None = None) -> UnreadableFile:
    """The error; `message` says more than the usual sentence."""
    return UnreadableFile(code.value, message or _SENTENCES[code])


def refuse(code: Unreadable, message: str | None = None) -> NoReturn:
    """Raises UnreadableFile."""
    raise unreadable(code, message)

"""From bytes to characters: a byte order mark, UTF-8, what the file says of itself, and only then
a guess. What is no text is refused, and nothing is replaced without a word."""

import codecs
import re

from charset_normalizer import from_bytes

from antiphon.documents.refusing import refuse
from antiphon.reading_files import Unreadable

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
LIKELY = [
    *("cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr", "iso8859_2"),
]
"""Those that files without a mark are in, as browsers take them to be (WHATWG Encoding, §4.2)."""
_DECLARABLE = frozenset(
    codecs.lookup(name).name for name in (*LIKELY, "utf-8", "ascii", "latin-1", "iso8859_15")
)
_SAMPLE = 64 * 1024
_WRONG_SHARE = 0.001
"""Of a text's bytes: more than a few that were broken on the way, and it is in another encoding."""
_CONTROL_SHARE = 0.005
_BEYOND_ASCII = re.compile("[^\x00-\x7f\ufffd]")
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def looks_binary(data: bytes) -> bool:
    """Whether this is no text in any encoding without a mark: control characters are in it."""
    sample = data[:_SAMPLE]
    return len(_CONTROLS.findall(sample)) > max(1, _CONTROL_SHARE * len(sample))


def decode(data: bytes, declared: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The text, and notices of what had to be guessed or replaced. Raises UnreadableFile."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _strictly(data[len(mark) :], encoding)
    if (wide := _wide(data)) is not None:
        return _strictly(data, wide)
    if looks_binary(data):
        refuse(Unreadable.ENCODING)
    try:
        return data.decode("utf-8"), ()
    except UnicodeDecodeError:
        pass
    if (named := _known(declared)) is not None and named != "utf-8":
        try:
            return data.decode(named), ()
        except UnicodeDecodeError:
            pass
    text = data.decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    # A few broken bytes among many good characters beyond ASCII: UTF-8 that something has cut.
    good = len(_BEYOND_ASCII.findall(text))
    if wrong <= _WRONG_SHARE * len(data) and good > 4 * wrong:
        return text, (_replaced(wrong),)
    return _guessed(data)


def _strictly(data: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    """In an encoding that is certain, so that what can't be decoded is broken."""
    try:
        return data.decode(encoding), ()
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
    wrong = text.count("\ufffd")
    if wrong > max(1, _WRONG_SHARE * len(text)):
        refuse(Unreadable.ENCODING, f"The file begins as {encoding.upper()} and isn't.")
    return text, (_replaced(wrong),)


def _wide(data: bytes) -> str | None:
    """UTF-16 without a mark: of text in Latin letters, every second byte is 0."""
    sample = data[:_SAMPLE]
    if len(sample) < 4 or len(data) % 2:
        return None
    for encoding, zeros, others in (
        ("utf-16-le", sample[1::2], sample[::2]),
        ("utf-16-be", sample[::2], sample[1::2]),
    ):
        if zeros.count(0) > 0.7 * len(zeros) and others.count(0) == 0:
            return encoding
    return None


def _known(declared: str | None) -> str | None:
    if declared is None:
        return None
    try:
        name = codecs.lookup(declared.strip()[:40]).name
    except (LookupError, ValueError):
        return None
    if name == "iso8859-1":
        return "cp1252"  # what is called so is that (WHATWG Encoding, §4.2)
    return name if name in _DECLARABLE else None


def _guessed(data: bytes) -> tuple[str, tuple[str, ...]]:
    best = from_bytes(data[:_SAMPLE], cp_isolation=LIKELY).best()
    if best is None:
        refuse(Unreadable.ENCODING)
    encoding = best.encoding
    sample = str(best)
    # Where both say the same, the one that nearly all such files are in.
    if encoding.startswith(("cp125", "iso8859")) and sample == _tried(data[:_SAMPLE], "cp1252"):
        encoding = "cp1252"
    text = data.decode(encoding, "replace")
    wrong = text.count("\ufffd")
    if wrong > max(1, _WRONG_SHARE * len(text)):
        refuse(Unreadable.ENCODING)
    notice = f"The file doesn't say its encoding; it was read as {encoding}."
    return text, (notice, _replaced(wrong)) if wrong else (notice,)


def _tried(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _replaced(wrong: int) -> str:
    if wrong == 1:
        return "One place in the file can't be decoded and was replaced."
    return f"{wrong} places in the file can't be decoded and were replaced."

"""Telephone numbers: those whose form alone gives them away, and those that need a word beside them
that says what they are, such as "call me on 450 0840".
"""

import re

PHONE = "PHONE_NUMBER"

_EXTENSION = r"(?: ?(?:x|ext\.? ?)\d{1,5})?"
_USE = r"[Oo]ffice|[Ff]ax|[Mm]obile|[Cc]ell|[Hh]ome|[Dd]esk|[Pp]hone|OFFICE|FAX|MOBILE|CELL|HOME"
_AFTER = rf"(?:(?: ?[-,/] ?| )\(?(?:{_USE}))?"

INTERNATIONAL = (
    rf"\B\+\(?\d{{1,3}}(?:[ .()/-]{{0,3}}\d){{6,13}}{_EXTENSION}\b",
    rf"\b00[1-9](?:[ .()/-]{{0,2}}\d){{8,13}}{_EXTENSION}\b",
)
BRACKETED = (
    rf"\B\(\+?\d{{2,5}}\)[ ./-]?\d{{2,9}}(?:[ ./-]\d{{2,8}}){{0,4}}{_EXTENSION}\b",
    rf"\b[18][ .-]?\(\d{{2,5}}\)[ ./-]?\d{{2,4}}(?:[ .-]?\d{{2,4}}){{1,3}}{_EXTENSION}\b",
)
AMERICAN = tuple(
    rf"\b(?:1[ .-])?[2-9]\d{{2}}{gap}\d{{3}}{gap}\d{{4}}{_EXTENSION}\b" for gap in ("-", r"\.", " ")
)
TRUNK = (r"\b0[1-9]\d{0,4}[ ./-]{1,2}\d{2,8}(?:[ .-]\d{2,5}){0,4}\b",)
ANY = (
    rf"\b\d{{1,5}}(?:[ ./-]\d{{1,8}}){{1,5}}(?:{_EXTENSION}|{_AFTER})\b",
    rf"\b\d{{7,12}}{_AFTER}\b",
)

_COUNTRY = re.compile(
    r"1|7|2[07]|2[1234569]\d|3[0123469]|3[578]\d|4[013-9]|42\d|5[1-8]|50\d|59\d|6[0-6]|6[789]\d"
    r"|8[1246]|8[0578]\d|9[0-58]|9[679]\d"
)
"""Calling codes that are in use, after the + (ITU-T E.164)."""

_WORD = re.compile(
    r"(?:\b(?:(?:(?:tele|cell)?phone|mobile|cell|(?:tele)?fax|hotline|landline)s?|tel|whatsapp"
    r"|telefon(?:nummer)?|handy|mobil(?:nummer)?|t[ée]l[ée]phone|portable|tel[ée]fono|m[óo]vil"
    r"|cellulare)\b\D{0,28}"
    r"|\b(?:desk|office|home|work) ?: ?"
    r"|\b(?:call|dial|ring|reach|contact|text|sms|message|answer|anruf|appele|llam|chiam)[a-z]{0,3}\b"
    r"\D{0,24}\b(?:at|on|to|via|unter|au|al)\b(?: [^\W\d]{1,12}){0,2}[ :]{0,2})"
    r"(?:[\d .()+-]{6,20}(?:[,/]| or| and| oder| und| et| ou| y| o| e)? ?)?$",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"licen[sc]e|passport|account|order|invoice|serial|card|ssn|security|version|zip|postal|postcode"
    r"|tracking|ticket|isbn|issn",
    re.IGNORECASE,
)
_LONGER = re.compile(r"\d[-./]$")
"""What follows is the rest of a longer row of numbers."""
_SUFFIX = re.compile(rf"(?: ?[-,/] ?| )\(?(?:{_USE})$")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DATE = re.compile(
    r"(?:19|20)\d\d[-./ ](?:0?\d|1[0-2])[-./ ][0-3]?\d\b.*"
    r"|[0-3]?\d[-./ ][0-3]?\d[-./ ](?:19|20)\d\d\b.*"
)

Span = tuple[int, int, str]


def international(text: str, before: str) -> Span | None:
    """With a + or 00 before a calling code that is in use."""
    digits = _digits(_number(text))
    number = digits if text.startswith("+") else digits[2:]
    valid = _COUNTRY.match(number) is not None and 8 <= len(number) <= 16
    return (0, len(text), PHONE) if valid else None


def bracketed(text: str, before: str) -> Span | None:
    """With an area code in brackets; "(2019) 123-145" is how volumes are cited."""
    digits = _digits(_number(text))
    area = text.partition("(")[2].partition(")")[0]
    named = _YEAR.fullmatch(area) is None or _is_announced(before)
    return (0, len(text), PHONE) if named and 7 <= len(digits) <= 13 else None


def american(text: str, before: str) -> Span | None:
    """In three groups, as North America and those who imitate it write."""
    return None if _LONGER.search(before) else (0, len(text), PHONE)


def trunk(text: str, before: str) -> Span | None:
    """With the 0 that most countries dial before an area code."""
    least, most = (8, 12) if _is_announced(before) else (9, 11)
    gaps = re.findall(r"\D+", text)[1:]
    plain = least <= len(_digits(text)) <= most and len(set(gaps)) <= 1
    plain = plain and _LONGER.search(before) is None
    return (0, len(text), PHONE) if plain and _DATE.fullmatch(text) is None else None


def announced(text: str, before: str) -> Span | None:
    """Any digits in groups, where a word before or after says what they are."""
    suffix = _SUFFIX.search(text)
    number = text[: suffix.start()] if suffix else text
    if not 7 <= len(_digits(number)) <= 13 or _LONGER.search(before):
        return None
    if _DATE.fullmatch(number) or all(map(_YEAR.fullmatch, re.findall(r"\d+", number))):
        return None
    if suffix is None and not _is_announced(before):
        return None
    return 0, len(number), PHONE


def _is_announced(before: str) -> bool:
    word = _WORD.search(before)
    return word is not None and _OTHER.search(before[max(0, word.start() - 20) :]) is None


def _number(text: str) -> str:
    return re.split(r" ?(?:x|ext)", text)[0]


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)

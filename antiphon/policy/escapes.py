r"""Characters that a text spells out: \u0062 of JSON and programs, %62 of addresses, &#98; of HTML.

Read from the first character on, so that a text may stop anywhere within one.
"""

import functools
import html.entities
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

OPENING = re.compile(r"[\\%&]")
"""What such a character begins with."""


class Reading(Enum):
    MORE = auto()
    """It may still become one."""
    NONE = auto()
    """It is none."""
    WHOLE = auto()
    SHORT = auto()
    """It is one without the last character."""
    EITHER = auto()
    r"""It is one, or two characters as they are: \n, or the \n of C:\new."""


@dataclass(frozen=True, slots=True)
class Escape:
    reading: Reading
    character: str = ""


_H = "[0-9a-fA-F]"
_B = r"\\{1,4}"
"""Text that is quoted within quoted text has its backslashes doubled."""
_T = "[89abAB]"
"""The first digit of a byte that continues a character."""
_FORMS: Sequence[Sequence[str]] = (
    (_B, "u", "[dD]", _T, _H, _H, _B, "u", "[dD]", "[c-fC-F]", _H, _H),
    (_B, "u", "[0-9a-cefA-CEF]", _H, _H, _H),
    (_B, "u", "[dD]", "[0-7]", _H, _H),
    (_B, "x", _H, _H),
    (_B, "U", "0", "0", "[01]", _H, _H, _H, _H, _H),
    ("%", "u", _H, _H, _H, _H),
    ("%", "[0-7]", _H),
    ("%", "[cdCD]", _H, "%", _T, _H),
    ("%", "[eE]", _H, "%", _T, _H, "%", _T, _H),
    ("%", "[fF]", "[0-4]", "%", _T, _H, "%", _T, _H, "%", _T, _H),
)
_WHOLE = re.compile("|".join("".join(form) for form in _FORMS) + rf"|{_B}u\{{{_H}{{1,6}}\}}")
_PART = re.compile(
    "|".join(
        functools.reduce(lambda rest, each: f"{each}(?:{rest})?", reversed(form[:-1]))
        for form in _FORMS
    )
    + rf"|{_B}u\{{{_H}{{0,6}}"
)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "b": "\b"}
_CONTROLLED = re.compile(f"{_B}[{''.join(_CONTROL)}]")
_NUMBER = re.compile(rf"&#(?:(\d{{1,8}})|[xX]({_H}{{1,7}}))")
_NUMBER_PART = re.compile(rf"&(?:#(?:\d{{0,8}}|[xX]{_H}{{0,7}}))?")


def read_escape(text: str) -> Escape:
    """What a text that begins with an opening character is. At its end there may be one more."""
    if text[0] == "&":
        return _entity(text)
    if _CONTROLLED.fullmatch(text):
        return Escape(Reading.EITHER, _CONTROL[text[-1]])
    if _WHOLE.fullmatch(text):
        character = _decoded(text)
        return Escape(Reading.WHOLE, character) if character else Escape(Reading.NONE)
    return Escape(Reading.MORE if _PART.fullmatch(text) else Reading.NONE)


def _decoded(text: str) -> str:
    if text[0] == "%" and text[1] != "u":
        return bytes.fromhex(text.replace("%", "")).decode(errors="ignore")
    codes = [int(digits, 16) for digits in re.findall(rf"[uUx]\{{?({_H}+)", text)]
    if len(codes) == 2:
        return chr(0x10000 + ((codes[0] & 0x3FF) << 10) + (codes[1] & 0x3FF))
    return _character(codes[0])


def _character(code: int) -> str:
    return chr(code) if code <= 0x10FFFF else ""


def _entity(text: str) -> Escape:
    if _NUMBER_PART.fullmatch(text):
        return Escape(Reading.MORE)
    number = _NUMBER.fullmatch(text[:-1])
    if number is not None:
        character = _character(int(number[1]) if number[1] else int(number[2], 16))
        if not character:
            return Escape(Reading.NONE)
        return Escape(Reading.WHOLE if text[-1] == ";" else Reading.SHORT, character)
    names, beginnings = _names()
    if text[1:] in names:
        return Escape(Reading.WHOLE, names[text[1:]])
    return Escape(Reading.MORE if text[1:] in beginnings else Reading.NONE)


def at_end(text: str) -> Escape:
    """What it is if nothing follows."""
    number = _NUMBER.fullmatch(text)
    if number is None:
        return Escape(Reading.NONE)
    character = _character(int(number[1]) if number[1] else int(number[2], 16))
    return Escape(Reading.WHOLE if character else Reading.NONE, character)


@functools.cache
def _names() -> tuple[dict[str, str], frozenset[str]]:
    """Of HTML: those of one character, and all that they begin with."""
    names = {
        name: value
        for name, value in html.entities.html5.items()
        if len(value) == 1 and name.endswith(";")
    }
    return names, frozenset(name[:length] for name in names for length in range(1, len(name)))

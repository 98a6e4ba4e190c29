"""What a character stands for, whatever it is disguised as: folded to plain lower case, without
marks, with letters of other scripts that look the same as Latin ones.

One character at a time and without memory, so that a text cut anywhere folds to the same, and each
folded character knows where it comes from.
"""

import functools
import re
import unicodedata
from enum import Enum, auto

CAPITAL_I = "I"
"""Folded, it stays what it is: it may stand for an i or for an l."""


class Kind(Enum):
    """What a folded character is, as far as words are concerned."""

    WORD = auto()
    APART = auto()
    """Of a script that sets no spaces: no neighbour makes it less of a word."""
    SPACE = auto()
    SIGN = auto()
    """May be put between letters to split a word."""
    APOSTROPHE = auto()
    """Is within ordinary words."""
    OTHER = auto()


_MARKS = ((0x0300, 0x036F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F))
"""Combining marks that decorate; those of Indic scripts, of kana and the like are letters."""
_POINTS = ((0x0591, 0x05BD), (0x05BF, 0x05C7), (0x0610, 0x061A), (0x064B, 0x065F), (0x0670, 0x0670))
"""Of Hebrew and Arabic, which are mostly not written."""
_UNSEEN = (
    (0x0000, 0x0008),
    (0x000E, 0x001F),
    (0x007F, 0x0084),
    (0x0086, 0x009F),
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xD800, 0xDFFF),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0xE0000, 0xE0FFF),
)
"""Not seen where they stand, besides the category Cf: controls, fillers, variation selectors."""
_NOTHING = (*_MARKS, *_POINTS, *_UNSEEN)

_ALIKE = dict(
    zip(
        # Cyrillic, Greek, Armenian, Cherokee, and signs
        "авекмнорстухьѕіјԁԛԝһԍѵүґгпАВЕКМНОРСТУХЬЅІЈԀԚԜҺԌѴҮҐГП"
        "αβγδεζηικλμνορςστυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϿ"
        "օոսհցզյՕՈՍՀ"
        "ᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᎩᏃ"
        "ıɩſƨꜱℓ∂∈∋∪ǀ∣¢€£¥§†",
        "abekmhopctyxbsijdqwhgvyrrnabekmhopctyxbsijdqwhgvyrrn"
        "abydezniklmvopsstuxwcjabezhikmnoptyxcj"
        "onuhgqjonuh"
        "abcdeghijklmprstvwyz"
        "iissslde3ullceeyst".replace("eey", "ely"),
        strict=True,
    )
)
"""Confusable at a glance. Chosen by eye from the shapes in common fonts."""
_NAMED = re.compile(
    r"LATIN (?:SMALL LETTER |CAPITAL LETTER |LETTER |SMALL CAPITAL )*"
    r"(?:TURNED |REVERSED |OPEN |DOTLESS |INSULAR |SCRIPT |LONG |SIDEWAYS |BARRED |SMALL CAPITAL )*"
    r"([A-Z])(?: WITH .*)?"
)
_ENCLOSED = re.compile(
    r"(?:REGIONAL INDICATOR SYMBOL LETTER"
    r"|(?:NEGATIVE |CROSSED )*(?:CIRCLED|SQUARED|PARENTHESIZED)(?: ITALIC)?"
    r" LATIN (?:CAPITAL|SMALL) LETTER) ([A-Z])"
)
_APART_NAMES = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "BOPOMOFO",
    "IDEOGRAPHIC",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)

LEET = {
    "a": "4@*",
    "b": "86",
    "c": "",
    "e": "3*",
    "g": "96",
    "i": "1!|*",
    "l": "1|I",
    "o": "0*",
    "s": "5$",
    "t": "7+",
    "u": "*",
    "z": "2",
}
"""Signs that stand for a letter, where they are within a word. A star is for any vowel."""
SIGNS = {"a": "@", "s": "$"}
"""Those that hardly stand for anything else, so that letters set apart may have them too."""


@functools.lru_cache(maxsize=65_536)
def fold(character: str) -> str:
    """None, one or several characters."""
    if character.isascii():
        return "" if _is_nothing(character) else _lower(character)
    name = unicodedata.name(character, "")
    enclosed = _ENCLOSED.fullmatch(name)
    if enclosed is not None:
        return enclosed[1].lower()
    return "".join(map(_plain, unicodedata.normalize("NFKD", character)))


def _plain(character: str) -> str:
    if _is_nothing(character):
        return ""
    alike = _ALIKE.get(character)
    if alike is not None:
        return alike
    if character.isascii():
        return _lower(character)
    named = _NAMED.fullmatch(unicodedata.name(character, ""))
    if named is not None:
        return named[1].lower()
    lower = character.casefold()
    return "".join(_ALIKE.get(each, each) for each in lower if not _is_nothing(each))


def _lower(character: str) -> str:
    return character if character == CAPITAL_I else character.lower()


def _is_nothing(character: str) -> bool:
    code = ord(character)
    return unicodedata.category(character) == "Cf" or any(
        first <= code <= last for first, last in _NOTHING
    )


def folded(text: str) -> str:
    """A whole text, as rules compare it: I is i here."""
    return "".join(map(fold, text)).replace(CAPITAL_I, "i")


@functools.lru_cache(maxsize=65_536)
def kind_of(character: str) -> Kind:
    category = unicodedata.category(character)
    if character in "'’ʼ‘`´":
        return Kind.APOSTROPHE
    if character.isspace() or category[0] == "Z":
        return Kind.SPACE
    if category[0] in "LM" and unicodedata.name(character, "").startswith(_APART_NAMES):
        return Kind.APART
    if category[0] in "LMN":
        return Kind.WORD
    return Kind.SIGN if category[0] in "PS" or category == "Co" else Kind.OTHER


def is_word(character: str) -> bool:
    """Whether it belongs to a word that spaces set apart."""
    return kind_of(character) is Kind.WORD

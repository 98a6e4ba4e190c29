"""Ways to write a phrase so that people, or a program that decodes it, still read it and a plain
search doesn't find it. For tests of the policy: none of its code is used here.
"""

import base64
import codecs
import random
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Disguised:
    """`text` holds the phrase from its character `start` on; what is before may be shown."""

    text: str
    start: int = 0


Disguise = Callable[[str, random.Random], Disguised]

_CYRILLIC = dict(zip("aeopcyxisjh", "аеорсухіѕјһ", strict=True))
_GREEK = dict(zip("aoivnpuxtk", "αοινηρυχτκ", strict=True))
_LEET = dict(zip("abegilost", ("4@", "8", "3", "9", "1!", "1", "0", "5$", "7"), strict=True))
_ZERO_WIDTH = "\u200b\u200c\u200d\u2060\u00ad\ufeff\u200e\u202e\u061c"
_MARKS = "\u0301\u0308\u0327\u0332\u0336\u20dd"


def _each(change: Callable[[str, random.Random], str]) -> Disguise:
    """Letter by letter; gaps stay."""

    def disguise(phrase: str, rng: random.Random) -> Disguised:
        return Disguised("".join(each if each == " " else change(each, rng) for each in phrase))

    return disguise


def _from_block(first: int) -> Disguise:
    return _each(lambda letter, rng: chr(first + ord(letter) - ord("a")))


def _between(*signs: str) -> Disguise:
    """Something between any two letters, and more between words."""

    def disguise(phrase: str, rng: random.Random) -> Disguised:
        sign = rng.choice(signs)
        words = [sign.join(word) for word in phrase.split()]
        return Disguised(f"{sign} {sign}".join(words))

    return disguise


def _leet(phrase: str, rng: random.Random) -> Disguised:
    """Signs for letters, but never for most of a short word."""
    letters = sum(each != " " for each in phrase)
    most = letters // 2 if letters <= 4 else letters - 2
    places = [at for at, each in enumerate(phrase) if each in _LEET]
    chosen = set(rng.sample(places, min(most, len(places))))
    return Disguised(
        "".join(rng.choice(_LEET[x]) if at in chosen else x for at, x in enumerate(phrase))
    )


def _drawn_out(phrase: str, rng: random.Random) -> Disguised:
    letters = [at for at, each in enumerate(phrase) if each != " "]
    chosen = set(rng.sample(letters, max(1, len(letters) // 3)))
    return Disguised(
        "".join(x * rng.randint(3, 9) if at in chosen else x for at, x in enumerate(phrase))
    )


def _cut_in_two(phrase: str, rng: random.Random) -> Disguised:
    words = []
    for word in phrase.split():
        at = rng.randint(1, len(word) - 1)
        words.append(word[:at] + rng.choice(["-", ".", "", "|"]) + word[at:])
    return Disguised(" ".join(words))


def _punctuated(phrase: str, rng: random.Random) -> Disguised:
    return Disguised(phrase.replace(" ", rng.choice(["_", " - ", ", ", "..."])))


def _percent_all(phrase: str, rng: random.Random) -> Disguised:
    return Disguised("".join(f"%{byte:02x}" for byte in phrase.encode()))


def _base64(phrase: str, rng: random.Random) -> Disguised:
    return _encoded_within(phrase, rng, base64.b64encode)


def _base64_for_urls(phrase: str, rng: random.Random) -> Disguised:
    return _encoded_within(phrase, rng, base64.urlsafe_b64encode)


def _encoded_within(phrase: str, rng: random.Random, encode: Callable[[bytes], bytes]) -> Disguised:
    before = rng.choice(["", "a ", "so: ", "why? ", "\x00\x01 ", "caf\u00e9 ", "\u201c"]).encode()
    after = rng.choice(["", " ", "!", ". And", "\n", "\u201d"]).encode()
    text = encode(before + phrase.encode() + after).decode()
    return Disguised(text.rstrip("=") if rng.random() < 0.5 else text, len(before) * 8 // 6)


def _base64_in_lines(phrase: str, rng: random.Random) -> Disguised:
    whole = _base64(phrase, rng)
    at = rng.randint(whole.start + 1, len(whole.text) - 1)
    line = rng.choice(["\n", "\r\n"])
    return Disguised(whole.text[:at] + line + whole.text[at:], whole.start)


def _base64_after_path(phrase: str, rng: random.Random) -> Disguised:
    before = rng.choice(["tmp/", "id-", "x_", "Q", "ab"])
    return Disguised(before + base64.b64encode(phrase.encode()).decode(), len(before))


def _hexadecimal(separator: str, prefix: str = "") -> Disguise:
    def disguise(phrase: str, rng: random.Random) -> Disguised:
        digits = [f"{byte:02x}" for byte in phrase.encode()]
        if rng.random() < 0.5:
            digits = [each.upper() for each in digits]
        return Disguised(separator.join(prefix + each for each in digits), len(prefix))

    return disguise


def _rot13(phrase: str, rng: random.Random) -> Disguised:
    return Disguised(codecs.encode(phrase, "rot13"))


def _backwards(phrase: str, rng: random.Random) -> Disguised:
    return Disguised(phrase[::-1])


def _mixed(*disguises: Disguise) -> Disguise:
    """Each letter in one of several ways."""

    def disguise(phrase: str, rng: random.Random) -> Disguised:
        return Disguised(
            "".join(
                each if each == " " else rng.choice(disguises)(each, rng).text for each in phrase
            )
        )

    return disguise


def _inside(outer: Disguise, inner: Disguise) -> Disguise:
    return lambda phrase, rng: inner(outer(phrase, rng).text, rng)


_cased = _each(lambda letter, rng: letter.upper() if rng.random() < 0.5 else letter)
_fullwidth = _each(lambda letter, rng: chr(ord(letter) + 0xFEE0))
_cyrillic = _each(lambda letter, rng: _CYRILLIC.get(letter, letter))
_zero_width = _each(
    lambda letter, rng: letter + "".join(rng.choices(_ZERO_WIDTH, k=rng.randint(0, 4)))
)
_marked = _each(lambda letter, rng: letter + "".join(rng.choices(_MARKS, k=rng.randint(0, 3))))
_json = _each(lambda letter, rng: f"\\u{ord(letter):04x}")
_percent = _each(lambda letter, rng: f"%{ord(letter):02X}")
_decimal = _each(lambda letter, rng: f"&#{ord(letter)};")
_plain = _each(lambda letter, rng: letter)

DISGUISES: Mapping[str, Disguise] = {
    "plain": _plain,
    "cased": _cased,
    "fullwidth": _fullwidth,
    "mathematical bold": _from_block(0x1D41A),
    "mathematical sans": _from_block(0x1D5BA),
    "monospace": _from_block(0x1D68A),
    "circled": _from_block(0x24D0),
    "parenthesised": _from_block(0x249C),
    "negative squared": _from_block(0x1F170),
    "regional": _from_block(0x1F1E6),
    "cyrillic": _cyrillic,
    "greek": _each(lambda letter, rng: _GREEK.get(letter, letter)),
    "capital i": _each(lambda letter, rng: "I" if letter in "il" else letter),
    "zero width": _zero_width,
    "marks": _marked,
    "variation selectors": _each(lambda letter, rng: letter + "\ufe0f"),
    "tags": _each(lambda letter, rng: letter + "\U000e0041"),
    "no-break space": lambda phrase, rng: Disguised(phrase.replace(" ", "\u00a0")),
    "line break": lambda phrase, rng: Disguised(phrase.replace(" ", "\n")),
    "punctuated": _punctuated,
    "leet": _leet,
    "drawn out": _drawn_out,
    "apart": _between(" ", "\n", "\t", "  "),
    "dotted": _between("."),
    "dashed": _between("-", "_", "\u2013"),
    "starred": _between("*", "/", "|", "~", "\U0001f600"),
    "cut in two": _cut_in_two,
    "base64": _base64,
    "base64 for urls": _base64_for_urls,
    "base64 in lines": _base64_in_lines,
    "base64 after a path": _base64_after_path,
    "base64 of capitals": _inside(_cased, _base64),
    "hexadecimal": _hexadecimal(""),
    "hexadecimal apart": _hexadecimal(" "),
    "hexadecimal by colons": _hexadecimal(":"),
    "hexadecimal prefixed": _hexadecimal(", ", "0x"),
    "bytes": _each(lambda letter, rng: f"\\x{ord(letter):02x}"),
    "percent": _percent,
    "percent all": _percent_all,
    "percent of marks": _each(
        lambda letter, rng: "".join(f"%{byte:02x}" for byte in (letter + "\u0301").encode())
    ),
    "plus for space": lambda phrase, rng: Disguised(phrase.replace(" ", "+")),
    "html decimal": _decimal,
    "html hexadecimal": _each(lambda letter, rng: f"&#x{ord(letter):x};"),
    "html names": _each(lambda letter, rng: f"&{letter}opf;"),
    "json": _json,
    "json of mathematical": _each(
        lambda letter, rng: "\\ud835\\u{:04x}".format(0xDC1A + ord(letter) - ord("a"))
    ),
    "javascript": _each(lambda letter, rng: f"\\u{{{ord(letter):x}}}"),
    "mixed": _mixed(_json, _percent, _decimal, _plain, _zero_width, _fullwidth, _cyrillic, _marked),
    "zero width of fullwidth": _inside(_fullwidth, _zero_width),
    "dotted cyrillic": _inside(_between("."), _cyrillic),
    "rot13": _rot13,
    "backwards": _backwards,
}


def disguises_of(phrase: str) -> dict[str, Disguise]:
    """Those under which a phrase of small letters is expected to be found."""
    letters = [each for each in phrase if each != " "]
    assert set(letters) <= set(string.ascii_lowercase)
    left_out = set()
    if len(letters) < 3:
        left_out |= {"apart"} | {name for name in DISGUISES if name.startswith(("base", "hexa"))}
    if len(letters) < 4:
        left_out.add("rot13")
    if len(letters) < 6:
        left_out.add("backwards")
    return {name: each for name, each in DISGUISES.items() if name not in left_out}

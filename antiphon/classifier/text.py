"""What a text looks like to the classifier: disguises undone, whitespace single, cut into pieces.

Quick and lossy on purpose: nothing here maps back to the original, unlike the policy's rules.
"""

import re
import unicodedata
from collections.abc import Sequence

LONGEST = 200_000
"""Characters of a text that are looked at: its first and its last half of so many."""

_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
                        "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]"
                        "|[\U000e0000-\U000e0fff]")  # fmt: skip
_LOOKALIKE = str.maketrans(
    "аеорсухіјѕԁһкмтпбвгԛԝαβεικνορτυχ‘’“”„«»–—…ıł",
    'aeopcyxijsdhkmtnbbrqwabeiknoptux\'\'"""""--.il',
)
_LEET = str.maketrans("013457@$!|", "oieastasil")
_LEETED_HINT = re.compile(r"[a-z@$][013457@$!|]+[a-z]|[03457@$][a-z]{2}|[@$][a-z][013!|@$]")
_MEASURE = re.compile(r"\d+[a-z]+")
_LEETED = re.compile(r"[a-z013457@$!|]{3,24}")
_SPACED_HINT = re.compile(r"\b[a-z][ .\-_*]{1,2}[a-z][ .\-_*]{1,2}[a-z]\b")
_SPACED = re.compile(r"(?<![^\W_])[a-z](?:[ .\-_*]{1,2}[a-z](?![^\W_])){2,}")
_RUN = re.compile(r"(.)\1{3,}", re.DOTALL)
_PUNCTUATION = re.compile(r"([^\w\s])")
_SENTENCE_END = re.compile(
    r"(?<=[.!?。！？])[\"'”’)\]]*\s+|[\r\n]+|\s[|•*]\s|(?<=[:;])\s+(?=[A-Z])"
)


def cleaned(text: str) -> str:
    """The text in lower case with the common disguises undone: for n-grams and for embedding."""
    if len(text) > LONGEST:
        text = text[: LONGEST // 2] + " " + text[-LONGEST // 2 :]
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates are no text
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
        text = text.casefold().translate(_LOOKALIKE)
        if not text.isascii():
            bare = unicodedata.normalize("NFD", text)
            text = "".join(each for each in bare if not unicodedata.combining(each))
    else:
        text = text.lower()
    if _SPACED_HINT.search(text):
        text = _SPACED.sub(_joined, text)
    if _LEETED_HINT.search(text):
        text = _LEETED.sub(_unleeted, text)
    return _RUN.sub(r"\1\1\1", text)


def spread(text: str) -> str:
    """A cleaned text with every punctuation mark a word of its own."""
    return " ".join(_PUNCTUATION.sub(r" \1 ", text).split())


def sentences(text: str, *, longest: int = 400) -> Sequence[str]:
    """The text in pieces of a sentence or a line each; a longer one is cut."""
    pieces = []
    for piece in _SENTENCE_END.split(text):
        piece = piece.strip()
        while len(piece) > longest:
            at = piece.rfind(" ", longest // 2, longest)
            at = at if at > 0 else longest
            pieces.append(piece[:at])
            piece = piece[at:].strip()
        if piece:
            pieces.append(piece)
    return pieces


def statements(text: str, *, shortest: int = 40, longest: int = 240) -> Sequence[str]:
    """The text in sentences, a short one together with the next; one at least."""
    found: list[str] = []
    for sentence in sentences(text, longest=longest):
        if found and len(found[-1]) < shortest:
            found[-1] = f"{found[-1]} {sentence}"
        else:
            found.append(sentence)
    return found or [""]


def _joined(found: re.Match[str]) -> str:
    letters = "".join(filter(str.isalpha, found[0]))
    if letters[0] in "ia" and len(letters) > 3:  # the word "i" or "a", then a word in pieces
        return f"{letters[0]} {letters[1:]}"
    return letters


def _unleeted(found: re.Match[str]) -> str:
    word = found[0]
    letters = sum(map(str.isalpha, word))
    if letters == len(word) or letters * 2 < len(word) or word.rstrip("!|").isalpha():
        return word
    if _MEASURE.fullmatch(word):  # such as 10am
        return word
    return word.translate(_LEET)

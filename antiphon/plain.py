"""Text from elsewhere, made safe for a terminal."""

import unicodedata


def plain(text: str) -> str:
    """Without what would move a terminal's cursor or reorder its text: controls, formats,
    separators of lines."""
    spaced = "".join(" " if char in "\t\r\n" else char for char in text)
    return "".join(
        char for char in spaced if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    )


def plain_lines(text: str) -> str:
    """The same of a text of several lines, as a model writes it: they stay, and so do the joiners
    that some scripts and signs are made with."""
    spaced = text.replace("\r\n", "\n").replace("\t", "    ")
    return "".join(
        char
        for char in spaced
        if char in _KEPT or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    )


_KEPT = "\n\u200c\u200d"

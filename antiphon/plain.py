"""Text from elsewhere, made safe for a terminal."""

import unicodedata


def plain(text: str) -> str:
    """Without what would move a terminal's cursor or reorder its text: controls, formats,
    separators of lines."""
    spaced = "".join(" " if char in "\t\r\n" else char for char in text)
    return "".join(
        char for char in spaced if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    )

"""Regular expressions that are long lists of phrases, written so that people can read them."""

import re

_BREAK = re.compile(r"\n(?: {4})?")


def phrases(expression: str, *, ignore_case: bool = True) -> re.Pattern[str]:
    """Line breaks and four spaces after them mean nothing, and a space is any white space. An
    apostrophe is a straight one."""
    flat = _BREAK.sub("", expression).replace(" ", r"\s+")
    return re.compile(flat, re.IGNORECASE if ignore_case else 0)

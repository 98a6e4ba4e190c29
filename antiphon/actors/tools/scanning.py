"""Finding where a JSON object or array ends in a text that comes in pieces. Pure.

It counts brackets outside strings, and is no check: whether it is JSON is seen when it is whole.
"""

import re

_MARK = re.compile(r'["\\{}\[\]]')


class ValueScanner:
    """From the value's first character, which is a bracket, to its last."""

    __slots__ = ("_depth", "_is_escaped", "_is_string")

    def __init__(self) -> None:
        self._depth = 0
        self._is_string = self._is_escaped = False

    def feed(self, text: str) -> int | None:
        """How many characters of this piece belong to it, if it ends here; None if it goes on."""
        at = 0
        if self._is_escaped and text:
            self._is_escaped, at = False, 1
        while (found := _MARK.search(text, at)) is not None:
            at = found.end()
            mark = found[0]
            if self._is_string:
                if mark == '"':
                    self._is_string = False
                elif mark == "\\":
                    if at == len(text):
                        self._is_escaped = True
                    at += 1
            elif mark == '"':
                self._is_string = True
            elif mark in "{[":
                self._depth += 1
            elif mark in "}]":
                self._depth -= 1
                if self._depth == 0:
                    return at
        return None

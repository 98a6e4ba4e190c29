"""Keeping what users write from becoming control tokens.

A template pastes contents between control tokens; a content that spells one, `<|im_start|>` say,
would forge a message. Each place in a content where one begins gets a mark, a character that occurs
nowhere else; after rendering, an unmarked one is the template's own and a marked one is text.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence

from tokenizers import AddedToken

from antiphon.errors import InvalidRequest
from antiphon.events import Message

_MARKS = range(0xE000, 0xF900)
"""The private use area: no script is written with it."""
_SPACE = re.compile(r"\s*")
_NOTHING = r"(?!)"


class AddedTokens:
    """Finds a vocabulary's added tokens in text: control tokens, and others that anybody may write.

    Immutable, so any thread may use it.
    """

    def __init__(self, tokens: Mapping[int, AddedToken]) -> None:
        # The longest first, as the tokenizers library matches them.
        self._tokens = sorted(tokens.items(), key=lambda item: -len(item[1].content))
        control = [re.escape(token.content) for _, token in self._tokens if token.special]
        self._control = re.compile("|".join(control) or _NOTHING)
        self._starts = re.compile(f"(?={'|'.join(control) or _NOTHING})")

    def spelled_in(self, messages: Sequence[Message]) -> bool:
        """Whether any text that comes from the client spells a control token."""
        return any(
            self._control.search(message.content) or self._control.search(message.name or "")
            for message in messages
        )

    def mark(self, messages: Sequence[Message]) -> tuple[list[Message], str]:
        """The messages with each spelled control token marked, and the mark. Raises
        InvalidRequest."""
        used: set[str] = set()
        for message in messages:
            used.update(message.content, message.name or "")
        mark = next((chr(code) for code in _MARKS if chr(code) not in used), None)
        if mark is None:
            raise InvalidRequest("the messages use every private-use character", "messages")
        marked = [
            dataclasses.replace(
                message,
                content=self._starts.sub(mark, message.content),
                name=None if message.name is None else self._starts.sub(mark, message.name),
            )
            for message in messages
        ]
        return marked, mark

    def pieces(self, rendered: str, mark: str) -> Iterator[int | str]:
        """The rendered prompt as ids of added tokens and the texts between them, without marks."""
        at = 0
        for match in re.finditer(self._unmarked(mark), rendered):
            index, token = self._tokens[(match.lastindex or 1) - 1]
            text = rendered[at : match.start()].replace(mark, "")
            if text := text.rstrip() if token.lstrip else text:
                yield text
            yield index
            space = _SPACE.match(rendered, match.end()) if token.rstrip else None
            at = space.end() if space is not None else match.end()
        if text := rendered[at:].replace(mark, ""):
            yield text

    def _unmarked(self, mark: str) -> str:
        """One group a token, so that a match says which one it was."""
        groups = (
            f"(?<!{mark})({re.escape(token.content)})"
            if token.special
            else f"({re.escape(token.content)})"
            for _, token in self._tokens
        )
        return "|".join(groups) or _NOTHING

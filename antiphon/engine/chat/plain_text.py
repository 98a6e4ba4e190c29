"""Keeping what users write from becoming control tokens.

A template pastes contents between control tokens; a content that spells one, `<|im_start|>` say,
would forge a message. Each place in a content where one begins gets a mark, a character that occurs
nowhere else; after rendering, an unmarked one is the template's own and a marked one is text.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tokenizers import AddedToken

from antiphon.errors import InvalidRequest
from antiphon.events import Message
from antiphon.tools import Tool, ToolCall

_MARKS = range(0xE000, 0xF900)
"""The private use area: no script is written with it."""
_SPACE = re.compile(r"\s*")
_NOTHING = r"(?!)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """What a client wrote, with each spelled control token marked."""

    messages: list[Message]
    tools: list[Tool]


class AddedTokens:
    """Finds a vocabulary's added tokens in text: control tokens, and others that anybody may write.

    Immutable, so any thread may use it.
    """

    def __init__(self, tokens: Mapping[int, AddedToken], *, is_plain: bool) -> None:
        """`is_plain` says that the vocabulary looks at text as it is."""
        # The longest first, as the tokenizers library matches them.
        longest = sorted(tokens.items(), key=lambda item: -len(item[1].content))
        self._tokens = {token.content: (index, token) for index, token in longest}
        self.are_found_by_text = not any(
            token.single_word or (token.normalized and not is_plain) for _, token in longest
        )
        """Whether that alone says where there is one."""
        # Nothing but literal texts, which a search skips to: there may be hundreds of them.
        self._any = re.compile("|".join(map(re.escape, self._tokens)) or _NOTHING)
        control = [re.escape(token.content) for _, token in longest if token.special]
        self._control = re.compile("|".join(control) or _NOTHING)
        self._starts = re.compile(f"(?={'|'.join(control) or _NOTHING})")

    def spelled_in(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> bool:
        """Whether any text that comes from the client spells a control token."""
        return any(map(self._control.search, _texts(messages, tools)))

    def mark(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[Marked, str]:
        """The messages and tools, marked, and the mark. Raises InvalidRequest."""
        used: set[str] = set()
        for text in _texts(messages, tools):
            used.update(text)
        mark = next((chr(code) for code in _MARKS if chr(code) not in used), None)
        if mark is None:
            raise InvalidRequest("the messages use every private-use character", "messages")

        def marked(text: str) -> str:
            return self._starts.sub(mark, text)

        return (
            Marked(
                messages=[_marked(message, marked) for message in messages],
                tools=[tool.reworded(marked(tool.text)) for tool in tools],
            ),
            mark,
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """Of all of them, the longest first."""
        return tuple(self._tokens)

    def pieces(self, rendered: str, mark: str = "") -> Iterator[int | str]:
        """The rendered prompt as ids of added tokens and the texts between them. With a `mark`,
        which is taken out, what it stands before is text."""
        at = 0
        for match in (self._unmarked(mark) if mark else self._any).finditer(rendered):
            index, token = self._tokens[match[0]]
            text = rendered[at : match.start()].replace(mark, "")
            if text := text.rstrip() if token.lstrip else text:
                yield text
            yield index
            space = _SPACE.match(rendered, match.end()) if token.rstrip else None
            at = space.end() if space is not None else match.end()
        if text := rendered[at:].replace(mark, ""):
            yield text

    def _unmarked(self, mark: str) -> re.Pattern[str]:
        patterns = (
            f"(?<!{mark}){re.escape(text)}" if token.special else re.escape(text)
            for text, (_, token) in self._tokens.items()
        )
        return re.compile("|".join(patterns) or _NOTHING)


def _texts(messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[str]:
    for message in messages:
        yield message.content
        if message.name is not None:
            yield message.name
        if message.call_id is not None:
            yield message.call_id
        if message.call is not None:
            yield from (message.call.id, message.call.name, _plain(message.call.arguments))
    for tool in tools:
        yield tool.text


def _marked(message: Message, marked: Callable[[str], str]) -> Message:
    call = message.call
    return replace(
        message,
        content=marked(message.content),
        name=None if message.name is None else marked(message.name),
        call_id=None if message.call_id is None else marked(message.call_id),
        call=None
        if call is None
        else ToolCall(
            id=marked(call.id), name=marked(call.name), arguments=marked(_plain(call.arguments))
        ),
    )


def _plain(arguments: str) -> str:
    """Without escapes that would hide what a template makes of them."""
    if "\\" not in arguments:
        return arguments
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments

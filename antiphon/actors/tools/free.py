"""An answer of a model that may speak or call, as it likes: its text as it comes, without what is
or may become a call, which is kept until it is whole. Pure; the same however the answer is cut.
"""

import enum
import re
from dataclasses import dataclass

import msgspec

from antiphon.actors.tools.scanning import ValueScanner
from antiphon.tools import ToolFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spelling:
    """`marker` says that a call follows, wherever it stands. Engines leave out special tokens, and
    some models' markers are such: at the beginning of an answer, what `bare` matches may be one."""

    marker: str
    closing: str = ""
    bare: re.Pattern[str] | None = None
    beginning: re.Pattern[str] | None = None
    """What may still become `bare`."""
    bracket: str = ""
    """Where a bare one begins."""


_SPELLINGS = {
    ToolFormat.HERMES: _Spelling(marker="<tool_call>", closing="</tool_call>"),
    ToolFormat.LLAMA: _Spelling(
        marker="<|python_tag|>",
        bare=re.compile(r'[\s;]*\{\s*"'),
        beginning=re.compile(r"[\s;]*(?:\{\s*)?\Z"),
        bracket="{",
    ),
    ToolFormat.MISTRAL: _Spelling(
        marker="[TOOL_CALLS]",
        bare=re.compile(r"\s*\[\s*\{"),
        beginning=re.compile(r"\s*(?:\[\s*)?\Z"),
        bracket="[",
    ),
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """So many characters of the answer are dealt with, and this of them may leave."""

    source: int
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What stands where a call is. `raw` has all around it; it `is_whole` when its end has come."""

    raw: str
    content: str
    is_whole: bool


class _Place(enum.Enum):
    TEXT = enum.auto()
    BEFORE = enum.auto()
    """Behind the marker."""
    VALUE = enum.auto()
    RUBBISH = enum.auto()
    """Where a JSON value should be."""
    AFTER = enum.auto()


class FreeReader:
    """One answer."""

    def __init__(self, format: ToolFormat) -> None:
        self.bodies: list[Body] = []
        self._spelling = _SPELLINGS[format]
        self._place = _Place.TEXT
        self._buffer = ""
        self._may_be_bare = True
        self._is_bare = False
        self._raw = self._content = ""
        self._scanner = ValueScanner()
        self._dealt: list[Stretch] = []

    def feed(self, text: str) -> list[Stretch]:
        """The next piece."""
        self._buffer += text
        while self._step():
            pass
        return self._deal()

    def finish(self) -> list[Stretch]:
        """There is no more. All that was kept is in `bodies` now."""
        rest, self._buffer = self._buffer, ""
        match self._place:
            case _Place.TEXT:
                is_nothing = bool(self.bodies) and not rest.strip(" \t\r\n;")
                self._dealt.append(Stretch(len(rest), "" if is_nothing else rest))
            case _Place.AFTER:
                self._raw += rest
                self._close(is_whole=True)
            case _:
                self._raw += rest
                self._content += rest
                self._close(is_whole=False)
        return self._deal()

    def _deal(self) -> list[Stretch]:
        dealt, self._dealt = self._dealt, []
        return dealt

    def _step(self) -> bool:
        """False when more text must come first."""
        match self._place:
            case _Place.TEXT:
                return self._text()
            case _Place.BEFORE:
                return self._before()
            case _Place.VALUE:
                return self._value()
            case _Place.RUBBISH:
                return self._rubbish()
            case _Place.AFTER:
                return self._after()

    def _text(self) -> bool:
        spelling, buffer = self._spelling, self._buffer
        if self._may_be_bare and spelling.bare and (begun := self._begins_bare()) is not None:
            return begun
        at = buffer.find(spelling.marker)
        if at >= 0:
            self._leave(len(buffer[:at].rstrip()))
            self._keep(self._buffer.index(spelling.marker) + len(spelling.marker))
            self._is_bare = False
            self._place = _Place.BEFORE
            return True
        # Blanks before a call are no text, either.
        self._leave(len(buffer[: len(buffer) - _overlap(buffer, spelling.marker)].rstrip()))
        return False

    def _begins_bare(self) -> bool | None:
        """None where no bare call begins here."""
        spelling, buffer = self._spelling, self._buffer
        assert spelling.bare is not None
        assert spelling.beginning is not None
        if (found := spelling.bare.match(buffer)) is not None:
            self._keep(found[0].index(spelling.bracket))
            self._is_bare = True
            self._place = _Place.BEFORE
            return True
        if spelling.beginning.match(buffer) is not None:
            return False
        stripped = buffer.lstrip()
        if spelling.marker.startswith(stripped) or stripped.startswith(spelling.marker):
            return None
        self._may_be_bare = False
        return None

    def _before(self) -> bool:
        blank = len(self._buffer) - len(self._buffer.lstrip())
        self._keep(blank)
        if not self._buffer:
            return False
        self._scanner = ValueScanner()
        self._place = _Place.VALUE if self._buffer[0] in "{[" else _Place.RUBBISH
        return True

    def _value(self) -> bool:
        end = self._scanner.feed(self._buffer)
        self._take(len(self._buffer) if end is None else end)
        if end is None:
            return False
        self._place = _Place.AFTER
        return True

    def _rubbish(self) -> bool:
        closing = self._spelling.closing
        at = self._buffer.find(closing) if closing else -1
        if at < 0:
            self._take(len(self._buffer) - _overlap(self._buffer, closing))
            return False
        self._take(at)
        self._place = _Place.AFTER
        return True

    def _after(self) -> bool:
        closing, stripped = self._spelling.closing, self._buffer.lstrip()
        if closing and closing != stripped and closing.startswith(stripped):
            return False
        if closing and stripped.startswith(closing):
            self._keep(len(self._buffer) - len(stripped) + len(closing))
        self._close(is_whole=True)
        return True

    def _close(self, *, is_whole: bool) -> None:
        body = Body(raw=self._raw, content=self._content, is_whole=is_whole)
        if self._is_bare and not (is_whole and is_call(body.content)):
            self._dealt.append(Stretch(len(body.raw), body.raw))
            self._may_be_bare = False
        else:
            self._dealt.append(Stretch(len(body.raw)))
            self.bodies.append(body)
            self._may_be_bare = True
        self._raw = self._content = ""
        self._place = _Place.TEXT

    def _leave(self, size: int) -> None:
        if size:
            self._dealt.append(Stretch(size, self._buffer[:size]))
            self._buffer = self._buffer[size:]

    def _keep(self, size: int) -> None:
        self._raw += self._buffer[:size]
        self._buffer = self._buffer[size:]

    def _take(self, size: int) -> None:
        self._content += self._buffer[:size]
        self._keep(size)


def is_call(content: str) -> bool:
    """Whether it is JSON that calls something, and not merely JSON."""
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return False
    calls = value if isinstance(value, list) else [value]
    return bool(calls) and all(
        isinstance(call, dict)
        and isinstance(call.get("name"), str)
        and not call.keys().isdisjoint({"arguments", "parameters"})
        for call in calls
    )


def _overlap(text: str, marker: str) -> int:
    """How many characters at the end of the text may be the beginning of the marker."""
    longest = min(len(text), len(marker) - 1)
    return next((size for size in range(longest, 0, -1) if marker.startswith(text[-size:])), 0)

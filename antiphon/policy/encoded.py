"""Base64 and hexadecimal as an automaton's source: each run of digits is decoded at every place at
which a byte may begin, and what it decodes to is looked for in another source.

A partial match dies with the digit after which nothing it looks for can be decoded any more, so
ordinary words are hardly ever held.
"""

import string
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from antiphon.policy.automaton import Alphabet, End, Match, Outcome, Source, State, Unit
from antiphon.policy.normal import fold

_BREAK = -1
_SEPARATOR = -2
_PREFIX = -3
"""The x of 0x62: the 0 before it is no digit."""
_LINE = -4
"""A line's end within a run of digits."""
_BLANK_MOST = 4
"""Characters in a row that are no digits and end no run."""
_DENSE = -1
"""Instead of their number: there may be none."""

_FRESH = 4
"""Digits of a run at which a byte may begin whatever is before it: what is encoded may follow
something that is not, such as a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    digits: dict[str, int]
    width: int
    """Bits of a digit."""
    lines: str
    """Characters between digits that mean nothing."""
    separators: str = ""
    """Those that stand between bytes."""
    prefix: str = ""


_BASE64 = string.ascii_uppercase + string.ascii_lowercase + string.digits

BASE64 = Encoding(
    digits={sign: value for value, sign in enumerate(_BASE64)}
    | {"+": 62, "-": 62, "/": 63, "_": 63},
    width=6,
    lines="\r\n\\",
)
HEXADECIMAL = Encoding(
    digits={sign: int(sign, 16) for sign in string.hexdigits},
    width=4,
    lines="\\",
    separators=" \t\r\n,:;-.%$\"'{}[]()",
    prefix="xX",
)


@dataclass(frozen=True, slots=True)
class _Context:
    """What was read of a run, as far as it matters to where a byte may begin."""

    count: int = 0
    """Digits."""
    fresh: int = 0
    """Digits since anything else."""
    last: int = 0
    """The bits of the last digits."""
    bytes_apart: bool = False
    """The digits before what is between them were two: perhaps a byte of several."""


class Encoded:
    """A source whose units are digits; `inner` is the source of the decoded text."""

    def __init__(
        self, encoding: Encoding, inner: Source, *, root: tuple[int, ...], wide: bool
    ) -> None:
        """`root` are the rules that text waits for before anything is decoded; `wide` where what is
        looked for may begin with a character that is not ASCII."""
        self._encoding = encoding
        self._inner = inner
        self._characters = Alphabet(inner)
        self.holds = bool(root)
        self.root = root
        self._wide = wide
        self._states: dict[Hashable, _Decoding | None] = {}
        self.start: Hashable = _Context()

    def signature(self, character: str) -> Hashable:
        return self._unit(character)

    def units(self, character: str) -> Sequence[Unit]:
        unit = self._unit(character)
        return () if unit is None else (unit,)

    def _unit(self, character: str) -> int | None:
        encoding = self._encoding
        if character in encoding.digits:
            return encoding.digits[character]
        if not fold(character):
            return None
        if character in encoding.lines:
            return _LINE
        if character in encoding.separators:
            return _SEPARATOR
        return _PREFIX if character in encoding.prefix else _BREAK

    def context(self, before: Hashable, unit: Unit) -> Hashable:
        assert isinstance(before, _Context)
        assert isinstance(unit, int)
        width = self._encoding.width
        if unit == _BREAK:
            return self.start
        if unit in (_SEPARATOR, _LINE):
            apart = before.fresh == 2 or (before.bytes_apart and not before.fresh)
            return _Context(before.count, 0, before.last, apart)
        if unit == _PREFIX:
            return _Context(before.count, 0, before.last >> width, before.bytes_apart)
        joined = width == 6 and unit >= 62
        fresh = 0 if joined else min(before.fresh + 1, _FRESH)
        last = (before.last << width | unit) & (0xFF if width == 6 else 0xFFF)
        return _Context(min(before.count + 1, _FRESH), fresh, last, before.bytes_apart)

    def begin(self, before: Hashable, unit: Unit) -> Sequence[Outcome]:
        assert isinstance(before, _Context)
        assert isinstance(unit, int)
        if unit < 0:
            return ()
        found: list[Outcome] = []
        width = self._encoding.width
        for skipped in range(0, width, 2 if width == 6 else width):
            blank = self._begins(before, unit, skipped)
            if blank is not None:
                bits = width - skipped
                state = self.state(None, b"", unit & ((1 << bits) - 1), bits, blank)
                if state is not None:
                    found.append(state)
        return found

    def _begins(self, before: _Context, unit: int, skipped: int) -> int | None:
        """Whether a match may begin with this digit: 0 or `_DENSE` if so. The byte before must be
        none of a word's, or not be there."""
        width = self._encoding.width
        if width == 6 and not skipped and before.fresh < _FRESH:
            return 0
        if width == 4 and not before.fresh and not before.bytes_apart:
            return 0
        if before.count * width + skipped >= 8:
            byte = (before.last << skipped | unit >> (width - skipped)) & 0xFF
            wide = byte >= 0x80 and (byte < 0xC0 or width == 4)
            if wide or not (byte >= 0x80 or chr(byte).isalnum()):
                return 0
        # Of "63 6c 61 73 73" no word begins at 61, but one may after the number in "42 616263".
        return _DENSE if width == 4 and not before.fresh else None

    def state(
        self, inner: State | None, pending: bytes, bits: int, count: int, blank: int
    ) -> "_Decoding | None":
        """The partial match: `inner` is None before its first character; `pending` begins a
        character of UTF-8, `bits` a byte. None where nothing can become of it."""
        key = (inner, pending, bits, count, blank)
        if key not in self._states:
            state = _Decoding(self, key)
            self._states[key] = state if state.is_possible() else None
        return self._states[key]

    def followed(
        self, inner: State | None, pending: bytes, byte: int
    ) -> list[tuple[Outcome | None, bytes]]:
        """Where one more byte leads: what then is alive or complete, and pending bytes."""
        raw = pending + bytes([byte])
        try:
            character = raw.decode()
        except UnicodeDecodeError as error:
            if "unexpected end" in error.reason:
                return [(inner, raw)] if inner is not None or self._wide else []
            return [(Match(rule, End.BEFORE), b"") for rule in inner.complete] if inner else []
        units = self._inner.units(self._characters[ord(character)])
        if inner is None:
            if not units:
                return []
            reached = list(self._inner.begin(self._inner.start, units[0]))
            units = units[1:]
        else:
            reached = [inner]
        for unit in units:
            following: list[Outcome] = []
            for outcome in reached:
                following += [outcome] if isinstance(outcome, Match) else outcome.after(unit)
            reached = following
        return [(outcome, b"") for outcome in reached]

    @property
    def weight(self) -> int:
        return len(self._states) // 4

    @property
    def size(self) -> int:
        return self._inner.size

    @property
    def width(self) -> int:
        return self._encoding.width

    def forget(self) -> None:
        self._states.clear()
        self._inner.forget()


class _Decoding:
    """A partial match of what digits decode to."""

    __slots__ = ("_after", "_bits", "_blank", "_count", "_inner", "_pending", "_source")

    def __init__(self, source: Encoded, key: tuple[State | None, bytes, int, int, int]) -> None:
        self._source = source
        self._inner, self._pending, self._bits, self._count, self._blank = key
        self._after: dict[Unit, tuple[Outcome, ...]] = {}

    @property
    def holding(self) -> tuple[int, ...]:
        return self._inner.holding if self._inner is not None else self._source.root

    @property
    def complete(self) -> tuple[int, ...]:
        return self._inner.complete if self._inner is not None else ()

    def is_possible(self) -> bool:
        """Whether any byte that begins with these bits leads on."""
        if not self._count:
            return True
        missing = 8 - self._count
        first = self._bits << missing
        return any(
            self._source.followed(self._inner, self._pending, byte)
            for byte in range(first, first + (1 << missing))
        )

    def after(self, unit: Unit) -> tuple[Outcome, ...]:
        known = self._after.get(unit)
        if known is None:
            assert isinstance(unit, int)
            known = self._after[unit] = tuple(self._read(unit))
        return known

    def _read(self, unit: int) -> Iterator[Outcome]:
        if unit >= 0:
            yield from self._digit(unit)
            return
        goes_on = self._goes_on_after(unit)
        if unit == _LINE or not goes_on:
            # Without padding nothing tells whether the next line goes on or is a sentence.
            yield from (Match(rule, End.BEFORE) for rule in self.complete)
        if goes_on:
            # Of 0x62 the 0 is forgotten at the x.
            bits, count = (0, 0) if unit == _PREFIX else (self._bits, self._count)
            yield from self._alive(self._inner, self._pending, bits, count, self._blank + 1)

    def _goes_on_after(self, unit: int) -> bool:
        if unit == _BREAK or not 0 <= self._blank < _BLANK_MOST:
            return False
        if unit == _SEPARATOR:
            return not self._count
        return unit == _LINE or not self._bits

    def _digit(self, unit: int) -> Iterator[Outcome]:
        bits = self._bits << self._source.width | unit
        count = self._count + self._source.width
        blank = min(self._blank, 0)
        if count < 8:
            yield from self._alive(self._inner, self._pending, bits, count, blank)
            return
        count -= 8
        rest = bits & ((1 << count) - 1)
        byte = bits >> count
        for reached, pending in self._source.followed(self._inner, self._pending, byte):
            if isinstance(reached, Match):
                yield reached
            else:
                yield from self._alive(reached, pending, rest, count, blank)

    def _alive(
        self, inner: State | None, pending: bytes, bits: int, count: int, blank: int
    ) -> Iterator[State]:
        state = self._source.state(inner, pending, bits, count, blank)
        if state is not None:
            yield state

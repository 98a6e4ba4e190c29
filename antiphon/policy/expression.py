"""Expressions that a rule may have: the part of the standard library's syntax that has a longest
match and is followed in linear time. Whatever else is written is refused, with its place."""

import re
import warnings
from dataclasses import dataclass, field

from antiphon.policy.graph import Graph, GraphTooLarge, graph_of
from antiphon.policy.normal import is_word
from antiphon.policy.syntax import (
    Between,
    Chars,
    Choice,
    Guard,
    Part,
    Repeat,
    Row,
    longest,
    size,
)

LONGEST = 512
"""Characters of the longest match that an expression may have."""
_PARTS = 4_096
"""While it is read; the graph has a narrower limit, and says so with a sentence of its own."""
_DEPTH = 40
_WHITE = 4
"""White space that may stand where a phrase has a gap."""
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_CODES = {"x": 2, "u": 4, "U": 8}


class ExpressionError(Exception):
    """The expression is not one of the subset: `problem` says why, `position` where."""

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(f"{problem} (character {position + 1})")
        self.position = position
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Checked. `phrase` is there where it is one, in words of its own or not."""

    pattern: str
    longest: int
    root: Part
    graph: Graph = field(repr=False, compare=False)
    phrase: str | None = None
    whole_words: bool = False


def parse(pattern: str, *, ignore_case: bool = False) -> Expression:
    """Raises ExpressionError."""
    return _expression(pattern, _Parser(pattern, ignore_case).whole())


def literal(text: str, *, whole_words: bool, ignore_case: bool) -> Expression:
    """A phrase as it stands, where white space stands for any white space. With `whole_words` no
    letter or digit touches its ends, except where words aren't set apart, as in Chinese. Raises
    ExpressionError."""
    words = text.split()
    if not words:
        raise ExpressionError(0, "an empty phrase would match everywhere")
    parts: list[Part] = []
    for word in words:
        if parts:
            parts.append(Repeat(Chars(r"\s"), 1, _WHITE))
        parts += [Chars(re.escape(each), each, ignore_case) for each in word]
    if whole_words and is_word(words[0][0]):
        parts.insert(0, Between(Guard.AFTER_NO_WORD))
    if whole_words and is_word(words[-1][-1]):
        parts.append(Between(Guard.BEFORE_NO_WORD))
    return _expression(text, Row(tuple(parts)), phrase=" ".join(words), whole_words=whole_words)


def _expression(
    pattern: str, root: Part, phrase: str | None = None, whole_words: bool = False
) -> Expression:
    length = longest(root)
    if length > LONGEST:
        raise ExpressionError(0, f"may match {length} characters; {LONGEST} is the limit")
    try:
        graph = graph_of(root)
    except GraphTooLarge:
        problem = (
            "has too many parts, or too many ways through them, when its counts are written out"
        )
        raise ExpressionError(0, problem) from None
    if graph.may_be_empty:
        raise ExpressionError(0, "may match nothing at all, and so would match everywhere")
    return Expression(
        pattern=pattern,
        longest=length,
        root=root,
        graph=graph,
        phrase=phrase,
        whole_words=whole_words,
    )


class _Parser:
    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self._text = pattern
        self._at = 0
        self._ignore_case = ignore_case

    def whole(self) -> Part:
        if self._take("(?i)"):
            self._ignore_case = True
        part = self._choice(0)
        if self._at < len(self._text):
            raise self._error("a closing bracket without an opening one")
        return part

    def _choice(self, depth: int) -> Part:
        if depth > _DEPTH:
            raise self._error(f"is nested more than {_DEPTH} deep")
        rows = [self._row(depth)]
        while self._take("|"):
            rows.append(self._row(depth))
        return rows[0] if len(rows) == 1 else Choice(tuple(rows))

    def _row(self, depth: int) -> Part:
        parts: list[Part] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            start = self._at
            part = self._repeated(self._one(depth), start)
            parts.append(part)
        return parts[0] if len(parts) == 1 else Row(tuple(parts))

    def _repeated(self, part: Part, start: int) -> Part:
        count = self._count()
        if count is None:
            return part
        least, most = count
        if isinstance(part, Between):
            raise self._error("there is no character here to repeat", start)
        if least > most:
            raise self._error("the least is more than the most", start)
        if self._at < len(self._text) and self._text[self._at] in "?+*":
            raise self._error("lazy and possessive counts make no difference here: leave it out")
        if self._count() is not None:
            raise self._error("is counted twice", start)
        repeat = Repeat(part, least, most)
        if longest(repeat) > LONGEST or most > LONGEST:
            raise self._error(f"may match more than {LONGEST} characters", start)
        if size(repeat) > _PARTS:
            raise self._error("is too large when its counts are written out", start)
        return repeat

    def _count(self) -> tuple[int, int] | None:
        if self._take("?"):
            return 0, 1
        for sign, example in (("*", "{0,20}"), ("+", "{1,20}")):
            if self._text.startswith(sign, self._at):
                raise self._error(
                    f"{sign} has no longest match: say how many at most, as {example}"
                )
        counted = re.compile(r"\{(\d*)(,?)(\d*)\}").match(self._text, self._at)
        if counted is None or not (counted[1] or counted[3]):
            return None
        if counted[2] and not counted[3]:
            raise self._error("has no longest match: say how many at most")
        if max(len(counted[1]), len(counted[3])) > 6:
            raise self._error(f"may match more than {LONGEST} characters")
        self._at = counted.end()
        least = int(counted[1] or 0)
        return least, int(counted[3]) if counted[2] else least

    def _one(self, depth: int) -> Part:
        sign = self._text[self._at]
        if sign in "?*+":
            raise self._error("there is nothing before it to repeat")
        if sign in "^$":
            raise self._error(
                f"{sign} is not supported: a stream's ends are not where a text's are"
            )
        if sign == "(":
            return self._group(depth)
        if sign == "[":
            return self._class()
        if sign == "\\":
            return self._escape()
        self._at += 1
        if sign == ".":
            return Chars(".")
        return self._literal(sign)

    def _group(self, depth: int) -> Part:
        start = self._at
        before = self._ignore_case
        named = re.compile(r"\(\?P<\w+>").match(self._text, self._at)
        if named is not None:
            self._at = named.end()
        elif self._take("(?i:"):
            self._ignore_case = True
        elif self._text.startswith("(?", self._at) and not self._text.startswith("(?:", self._at):
            raise self._error(_GROUPS.get(self._text[self._at + 2 : self._at + 3], _UNKNOWN_GROUP))
        else:
            self._at += 3 if self._text.startswith("(?:", self._at) else 1
        part = self._choice(depth + 1)
        if not self._take(")"):
            raise self._error("this bracket is never closed", start)
        self._ignore_case = before
        # Groups stay together when they are counted, also those of no or several parts.
        return part if isinstance(part, Chars | Choice | Row) else Row((part,))

    def _class(self) -> Part:
        start = self._at
        self._at += 1
        source = "[^" if self._take("^") else "["
        empty = True
        while empty or not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                raise self._error("this bracket is never closed", start)
            source += self._class_item()
            empty = False
        self._at += 1
        source += "]"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                re.compile(source)
        except (re.error, Warning) as error:
            raise self._error(f"is no set of characters: {error}", start) from None
        return Chars(source, None, self._ignore_case)

    def _class_item(self) -> str:
        at = self._at
        first = self._class_character()
        if not (
            self._text.startswith("-", self._at) and self._text[self._at + 1 : self._at + 2] != "]"
        ):
            return first
        self._at += 1
        if self._at >= len(self._text):
            return first
        last = self._class_character()
        if len(first) > 1 and first[1] in "dDwWsS" and first[0] == "\\":
            raise self._error("a range goes from one character to another", at)
        return f"{first}-{last}"

    def _class_character(self) -> str:
        sign = self._text[self._at]
        if sign != "\\":
            self._at += 1
            return re.escape(sign) if not sign.isalnum() else sign
        part = self._escape(in_class=True)
        assert isinstance(part, Chars)
        return part.source

    def _escape(self, *, in_class: bool = False) -> Part:
        start = self._at
        sign = self._text[start + 1 : start + 2]
        self._at += 2
        if not sign:
            raise self._error("a backslash with nothing after it", start)
        if sign in "dDwWsS":
            return Chars(f"\\{sign}")
        if sign in _CONTROLS:
            return self._literal(_CONTROLS[sign])
        if sign in _CODES:
            code = self._text[self._at : self._at + _CODES[sign]]
            if re.fullmatch(rf"[0-9a-fA-F]{{{_CODES[sign]}}}", code) is None or (
                int(code, 16) > 0x10FFFF
            ):
                raise self._error(f"\\{sign} needs {_CODES[sign]} hexadecimal digits", start)
            self._at += _CODES[sign]
            return self._literal(chr(int(code, 16)))
        if sign == "b" and in_class:
            return self._literal("\b")
        if sign in "bB" and not in_class:
            return Between(Guard.BORDER if sign == "b" else Guard.INSIDE)
        if sign in "123456789":
            raise self._error("back-references can't be followed in linear time", start)
        if sign.isascii() and sign.isalnum():
            raise self._error(f"\\{sign} is not supported", start)
        return self._literal(sign)

    def _literal(self, character: str) -> Chars:
        return Chars(re.escape(character), character, self._ignore_case)

    def _take(self, token: str) -> bool:
        found = self._text.startswith(token, self._at)
        self._at += len(token) * found
        return found

    def _error(self, problem: str, position: int | None = None) -> ExpressionError:
        return ExpressionError(self._at if position is None else position, problem)


_UNKNOWN_GROUP = "this kind of group is not supported"
_AROUND = "look-arounds can't be followed in a stream: write out what stands there"
_GROUPS = {
    "=": _AROUND,
    "!": _AROUND,
    "<": _AROUND,
    "P": "back-references can't be followed in linear time",
    "(": "conditions can't be followed in linear time",
    ">": "atomic groups make no difference here: leave the ?> out",
}

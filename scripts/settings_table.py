"""The settings as tables, made from the code that defines them: each with its default, its own
explanation, and what a change of it needs.

    python scripts/settings_table.py          write them into docs/operating.md
    python scripts/settings_table.py --check  say whether they are current
"""

import ast
import inspect
import sys
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from antiphon.live_settings import EFFECTS, Effect
from antiphon.settings import Settings

DOCUMENT = Path(__file__).parent.parent / "docs" / "operating.md"
BEGIN = "<!-- settings: made by scripts/settings_table.py -->\n"
END = "<!-- end of settings -->\n"
_NEEDS = {
    Effect.NOW: "nothing",
    Effect.ENGINE: "engine restart",
    Effect.PROCESS: "process restart",
}
_TABLES = {"pools": "pools.<name>", "aliases": "aliases.<name>", "plans": "plans.<name>"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    key: str
    kind: str
    default: str
    needs: str
    text: str


def sections() -> Iterator[tuple[str, str, list[Row]]]:
    """The name of each section, what it is about, and its settings; those of no section first."""
    hints = typing.get_type_hints(Settings)
    top: list[Row] = []
    inner: list[tuple[str, str, list[Row]]] = []
    for name, kind in hints.items():
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            inner.append((name, _about(kind), list(_rows(kind, f"{name}."))))
        elif name in _TABLES:
            [_, value] = typing.get_args(kind)
            rows = _rows(value, "", needs=_NEEDS[EFFECTS[name]])
            inner.append((_TABLES[name], _about(value), [row for row in rows if row.kind]))
    for row in _rows(Settings, ""):
        if row.key not in hints or row.key in _TABLES:
            continue
        kind = hints[row.key]
        if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            top.append(row)
    yield "", "", top
    yield from inner


def tables() -> str:
    """All of it, as Markdown."""
    parts = []
    for name, about, rows in sections():
        title = f"### `[{name}]`\n\n{about}\n\n" if name else ""
        head = "| setting | values | default | a change needs | |\n|---|---|---|---|---|\n"
        lines = (
            f"| `{row.key}` | {row.kind} | {row.default} | {row.needs} | {row.text} |\n"
            for row in rows
        )
        parts.append(title + head + "".join(lines))
    return "\n".join(parts)


def written(document: str) -> str:
    """The document with its tables as they should be."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


def _rows(struct: type[msgspec.Struct], prefix: str, *, needs: str | None = None) -> Iterator[Row]:
    hints, texts = typing.get_type_hints(struct), _texts(struct)
    for field in msgspec.structs.fields(struct):
        kind = hints[field.name]
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and needs is None:
            continue
        key = f"{prefix}{field.name}"
        is_section = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
        yield Row(
            key=key,
            kind=f"as `[{field.name}]`" if is_section else _kind(kind),
            default="" if is_section else _default(field),
            needs=needs or _NEEDS.get(EFFECTS.get(key, Effect.NOW), ""),
            text=texts.get(field.name, ""),
        )


def _texts(struct: type) -> dict[str, str]:
    """The string that follows each field in the source, in one line."""
    [definition] = ast.parse(inspect.cleandoc("\n" + inspect.getsource(struct))).body
    assert isinstance(definition, ast.ClassDef)
    texts = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=text)):
                texts[name] = " ".join(str(text).split()).replace("|", "\\|")
    return texts


def _about(struct: type) -> str:
    return " ".join((struct.__doc__ or "").split())


def _kind(kind: Any) -> str:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in args)
    if args and type(None) in args:
        return " or ".join(_kind(each) for each in args if each is not type(None))
    if origin in (tuple, list, frozenset):
        return f"list of {_kind(args[0])}"
    if origin is dict:
        return "table"
    names = {
        bool: "true, false",
        int: "whole number",
        float: "number",
        str: "text",
        Path: "path",
    }
    return names.get(kind, "table")


def _default(field: Any) -> str:
    if field.default is msgspec.NODEFAULT:
        return "none" if field.default_factory is not msgspec.NODEFAULT else "must be said"
    match field.default:
        case None:
            return "none"
        case bool() as value:
            return f"`{str(value).lower()}`"
        case int() as value:
            return f"`{value:_}`" if abs(value) >= 10_000 else f"`{value}`"
        case float() as value:
            return f"`{value:g}`"
        case tuple() | frozenset() as values:
            return ", ".join(f"`{value}`" for value in values) or "none"
        case value:
            return f"`{value}`" if str(value) else "empty"


def main() -> int:
    document = DOCUMENT.read_text(encoding="utf-8")
    current = written(document)
    if "--check" in sys.argv[1:]:
        if current == document:
            return 0
        sys.stderr.write(f"{DOCUMENT} is not current: run python scripts/settings_table.py\n")
        return 1
    DOCUMENT.write_text(current, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""From the text of a rules' file to its values, with the line and the key of whatever is wrong.

Knows the form of a file; what its rules mean together is for `checks`.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, get_args, get_origin, get_type_hints

import msgspec

from antiphon.errors import RulesError
from antiphon.near_names import nearest
from antiphon.policy.positions import Path, Positions, positions_in
from antiphon.policy.rules import Matcher, Rule, Rules

LONGEST_FILE = 1 << 20
"""Bytes. Long lists of phrases belong into files of their own."""

_KINDS: Mapping[str, type[msgspec.Struct]] = {
    str(each.__struct_config__.tag): each for each in get_args(Matcher)
}
_PLACE = re.compile(r"(?P<problem>.*) - at `(?:key in )?\$(?P<path>[^`]*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_TOML_PLACE = re.compile(
    r"(?P<problem>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)"
)
_QUOTED = re.compile(r"`([^`]*)`|'([^']*)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesFile:
    """A file that has the right form, and where everything in it stands."""

    source: str
    rules: Rules
    positions: Positions
    tables: Mapping[str, Any]
    """As TOML gives them: they tell what was written from what is a default."""

    def fail(self, path: Path, problem: str) -> NoReturn:
        """Raises RulesError."""
        raise RulesError(self.source, self.positions.line(path), key_of(path), problem)

    def written(self, path: Path) -> bool:
        """Whether the file itself has something there."""
        try:
            _at(path, self.tables)
        except (KeyError, IndexError):
            return False
        return True


def read_form(source: str, text: str) -> RulesFile:
    """Raises RulesError."""
    if len(text.encode("utf-8", "surrogatepass")) > LONGEST_FILE:
        raise RulesError(source, 0, "", f"is longer than {LONGEST_FILE >> 20} MiB")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _toml_error(source, text, str(error)) from error
    except RecursionError as error:
        raise RulesError(source, 0, "", "is nested too deeply") from error
    positions = positions_in(text)
    try:
        rules = msgspec.convert(tables, Rules)
    except msgspec.ValidationError as error:
        problem, path = _in_words(*_placed(str(error), tables), tables)
        raise RulesError(source, positions.line(path), key_of(path), problem) from error
    return RulesFile(source=source, rules=rules, positions=positions, tables=tables)


def key_of(path: Path) -> str:
    """As an operator would write it: `rules[2].match.entities[0]`, the first one being 0."""
    key = ""
    for step in path:
        key += f"[{step}]" if isinstance(step, int) else f".{step}" if key else step
    return key


def meant(word: str, known: Iterable[str]) -> str:
    """What can be said of a word that isn't known: the one it is like, else all there are."""
    names = sorted(map(str, known))
    beginning = (name for name in names if word and name.startswith(word))
    if (near := nearest(word, names) or next(beginning, None)) is not None:
        return f"did you mean {near!r}?"
    return f"known are {', '.join(names)}"


def _toml_error(source: str, text: str, message: str) -> RulesError:
    place = _TOML_PLACE.fullmatch(message)
    if place is None:
        return RulesError(source, 0, "", message)
    line = int(place["line"] or text.rstrip().count("\n") + 1)
    return RulesError(source, line, "", f"is not TOML: {place['problem'].lower()}")


def _placed(message: str, tables: Mapping[str, Any]) -> tuple[str, Path]:
    """What msgspec says, and of what."""
    place = _PLACE.fullmatch(message)
    if place is None:
        return message, ()
    before, any_key, _ = place["path"].partition("[...]")
    path: Path = tuple(name or int(index) for name, index in _STEP.findall(before))
    return place["problem"], (*path, *_wrong_key(path, tables)) if any_key else path


def _wrong_key(path: Path, tables: Mapping[str, Any]) -> Path:
    """msgspec says that a value of a table is wrong, and not which: texts and numbers are all there
    is in tables whose keys are free."""
    table = _at(path, tables)
    wanted = (int, float) if path[-1] == "thresholds" else str
    return next(((key,) for key, value in table.items() if not isinstance(value, wanted)), ())


def _in_words(problem: str, path: Path, tables: Mapping[str, Any]) -> tuple[str, Path]:
    quoted = _QUOTED.search(problem)
    word = (quoted[1] or quoted[2] or "") if quoted else ""
    if problem.startswith("Object contains unknown field"):
        known = _struct_at(path, tables).__struct_fields__
        tag = ("kind",) if path[-1:] == ("match",) else ()
        return f"is no such key; {meant(word, (*tag, *known))}", (*path, word)
    if problem.startswith("Object missing required field"):
        return f"{word!r} is missing", path
    if problem.startswith("Invalid value") and path[-1:] == ("kind",):
        return f"{word!r} is no kind of matcher; {meant(word, _KINDS)}", path
    if problem.startswith("Invalid enum value"):
        given = _at(path, tables)
        return f"can't be {given!r}; {meant(str(given), _choices(path, tables))}", path
    return problem[:1].lower() + problem[1:].replace("`", ""), path


def _at(path: Path, tables: Mapping[str, Any]) -> Any:
    at: Any = tables
    for step in path:
        at = at[step]
    return at


def _struct_at(path: Path, tables: Mapping[str, Any]) -> type[msgspec.Struct]:
    match path:
        case ("rules", int(), "match"):
            return _KINDS[_at(path, tables)["kind"]]
        case ("rules", int()):
            return Rule
        case _:
            return Rules


def _choices(path: Path, tables: Mapping[str, Any]) -> list[str]:
    """What may stand where one of a few words must."""
    if isinstance(path[-1], int):
        path = path[:-1]
    hint = get_type_hints(_struct_at(path[:-1], tables))[str(path[-1])]
    if get_origin(hint) is tuple:
        hint = get_args(hint)[0]
    return [str(choice) for choice in (get_args(hint) or hint)]

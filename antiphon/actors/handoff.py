"""What one incarnation of an actor leaves to the next: a small frozen value that it saved itself.

Never the crashed object: only plain immutable parts are taken, and nothing once it has crashed. A
value under which incarnations keep crashing is dropped. What must survive belongs in the store.
"""

import dataclasses
import enum

from antiphon.errors import SpecError
from antiphon.ids import ActorPath
from antiphon.supervision.exits import Crashed, Exit, InitFailed

_MOST_PARTS = 1_000
_MOST_CHARACTERS = 65_536
"""Checked on every save, in the actor's own time: so it is small, and stays cheap."""
_TRIES = 3
"""Crashes in a row that a value is tried for. One failed start is enough: `start` is what reads
it."""
_STABLE_S = 30.0
"""An incarnation that lived this long was not killed by what it was given."""


class Handoff:
    """Belongs to an address. `now` is Trio's clock."""

    __slots__ = ("_given", "_open", "_row", "_since", "_value")

    def __init__(self) -> None:
        self._value: object = None
        self._given = False
        self._open = False
        self._row = 0
        self._since = 0.0

    def begin(self, now: float) -> None:
        """An incarnation is about to run, and may save."""
        self._since = now
        self._given = self._value is not None
        self._open = True

    @property
    def value(self) -> object:
        """What was saved last; None if nothing was, or if it had to be dropped."""
        return self._value

    def save(self, path: ActorPath, value: object) -> None:
        """Keep it in place of what was saved before; None keeps nothing. Raises SpecError."""
        problem = problem_of(value)
        if problem is not None:
            raise SpecError(f"hand-over of {path}", problem)
        if self._open:
            self._value = value

    def seal(self) -> None:
        """The incarnation has crashed: what its clean-up may still save is not to be trusted."""
        self._open = False

    def end(self, exit: Exit, now: float) -> bool:
        """It is over. True if the value is dropped because incarnations that were given it keep
        crashing."""
        self._open = False
        if not isinstance(exit, Crashed | InitFailed):
            self._row = 0
            return False
        if not self._given:
            return False
        self._row = 1 if now - self._since >= _STABLE_S else self._row + 1
        dropped = isinstance(exit, InitFailed) or self._row >= _TRIES
        if dropped:
            self.clear()
        return dropped

    def clear(self) -> None:
        """No incarnation follows, or none that may be given it."""
        self._value = None
        self._row = 0


def problem_of(value: object) -> str | None:
    """Why a value can't be handed over: something in it can change, or there is too much of it."""
    parts = characters = 0
    left = [value]
    while left:
        part = left.pop()
        parts += 1
        match part:
            case None | bool() | int() | float() | enum.Enum():
                pass
            case str() | bytes():
                characters += len(part)
            case tuple() | frozenset():
                left.extend(part)
            case _ if _is_frozen(part):
                left.extend(
                    getattr(part, field.name)
                    for field in dataclasses.fields(part)  # type: ignore[arg-type]  # it is one
                )
            case _:
                return f"it holds a {type(part).__name__}, which may change"
        if parts > _MOST_PARTS or characters > _MOST_CHARACTERS:
            return f"more than {_MOST_PARTS} parts or {_MOST_CHARACTERS} characters"
    return None


def _is_frozen(part: object) -> bool:
    parameters = getattr(type(part), "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)

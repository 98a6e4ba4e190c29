"""Looks for all matches of many things at once, character by character: an automaton whose states
are made deterministic only as texts need them.

A node is every partial match that is alive, each with its age: how many characters ago it began.
Of partial matches that can only go on alike the oldest is kept. Nodes are shared by all texts and
never change, so a text in progress is one node and a position. Knows no rule and no disguise.
"""

from collections.abc import Hashable, Sequence
from enum import Enum, auto
from typing import NamedTuple, Protocol

HELD_MOST = 8_192
"""Characters of a partial match. Whoever strings so many invisible characters between two letters,
or repeats one so often, is taken to have completed it."""
KEPT = 16_000
"""How much of nodes and ways between them is kept; then all is forgotten, and made as needed."""
_RECURS = 64
"""Nodes whose oldest partial match is older hardly come twice, so they are not kept."""
_CHARACTERS = 20_000
"""Characters whose class is kept."""

Unit = str | int
"""What an alphabet makes of a character."""
Symbol = str | tuple[str, int]
"""A character, with its width in the original where that is not 1."""


class End(Enum):
    """A match is complete."""

    HERE = auto()
    """This character is its last."""
    BEFORE = auto()
    """This character is what comes after it."""


class Match(NamedTuple):
    """One of a rule."""

    rule: int
    end: End


class State(Protocol):
    """A partial match, without where it began; or several that began in the same place. Equal only
    to itself: there is one for each."""

    @property
    def holding(self) -> tuple[int, ...]:
        """The rules for which text must wait for what becomes of it."""

    @property
    def complete(self) -> tuple[int, ...]:
        """The rules that have a match if nothing follows."""

    def after(self, unit: Unit) -> "tuple[Outcome, ...]": ...


Outcome = State | Match


class Source(Protocol):
    """What an automaton is made of."""

    @property
    def start(self) -> Hashable:
        """The context at the beginning of a text."""

    @property
    def holds(self) -> bool:
        """Whether text must wait for any of its partial matches."""

    @property
    def weight(self) -> int:
        """What it has made and keeps, in partial matches."""

    @property
    def size(self) -> int:
        """How much more than is usual may be kept, for it looks for so much."""

    def signature(self, character: str) -> Hashable:
        """Characters of the same signature are read alike, whatever the state."""

    def units(self, character: str) -> Sequence[Unit]: ...

    def context(self, before: Hashable, unit: Unit) -> Hashable:
        """What matters for where a match may begin, after this unit."""

    def begin(self, before: Hashable, unit: Unit) -> Sequence[Outcome]:
        """The partial matches of which this unit is the first."""

    def forget(self) -> None:
        """Drop what was made on the way: it is made again."""


Hit = tuple[int, int, int]
"""A rule, how long ago its match began, and how long ago it ended."""


class Node(dict[Symbol, "Node"]):
    """The next node by symbol, made when it is asked for."""

    __slots__ = ("alive", "contexts", "held", "hits", "machine", "partial")

    def __init__(
        self,
        machine: "Machine",
        contexts: frozenset[Hashable],
        partial: tuple[tuple[State, int], ...],
        hits: tuple[Hit, ...],
    ) -> None:
        super().__init__()
        self.machine = machine
        self.contexts = contexts
        self.partial = partial
        self.hits = hits
        self.alive = max((age for _, age in partial), default=0)
        """The age of the oldest partial match."""
        self.held = max((age for state, age in partial if state.holding), default=0)
        """And of the oldest that text waits for."""

    def __missing__(self, symbol: Symbol) -> "Node":
        node = self.machine.step(self, symbol)
        if node.alive <= _RECURS and self.alive <= _RECURS:
            self[symbol] = node
        return node

    def at_end(self) -> list[Hit]:
        """What is complete if the text ends here."""
        return [(rule, age, 0) for state, age in self.partial for rule in state.complete]


class Alphabet(dict[int, str]):
    """A table for `str.translate`: from a character to one that stands for all read alike."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._stands_for: dict[Hashable, str] = {}

    def __missing__(self, code: int) -> str:
        if len(self) >= _CHARACTERS:
            self.clear()
        character = chr(code)
        self[code] = self._stands_for.setdefault(self._source.signature(character), character)
        return self[code]


class Machine:
    """Makes the nodes of one source, and keeps a bounded number of them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.alphabet = Alphabet(source)
        self.steps = 0
        """How often a state was followed: what the work of a text is counted in."""
        self._nodes: dict[Hashable, Node] = {}
        self.kept = 0
        """Partial matches of nodes, and ways between nodes."""
        self.first = self._node(frozenset([source.start]), {}, ())

    def step(self, node: Node, symbol: Symbol) -> Node:
        character, width = symbol if isinstance(symbol, tuple) else (symbol, 1)
        units = self.source.units(character)
        ages = dict(node.partial)
        contexts = node.contexts
        hits: dict[tuple[int, int], int] = {}
        if not units:
            ages = {state: age + width for state, age in ages.items()}
        for number, unit in enumerate(units):
            # All units of one character are in its place: the first moves on, the others don't.
            moved, back = (width, width) if number == 0 else (0, 0)
            following: dict[State, int] = {}
            for state, age in ages.items():
                self.steps += 1
                _put(state.after(unit), age + moved, back, following, hits)
            for context in contexts:
                _put(self.source.begin(context, unit), width, back, following, hits)
            contexts = frozenset(self.source.context(context, unit) for context in contexts)
            ages = following
        for state, age in list(ages.items()):
            if age > HELD_MOST:
                del ages[state]
                hits |= {(rule, age): 0 for rule in state.holding}
        self.kept += 1
        if self.kept + self.source.weight > KEPT + self.source.size:
            self.forget()
        told = sorted((rule, age, back) for (rule, age), back in hits.items())
        return self._node(contexts, ages, tuple(told))

    def merged(self, one: Node, other: Node) -> Node:
        """Both at once, for a text that may be read in two ways. Hits are not kept."""
        ages = dict(one.partial)
        for state, age in other.partial:
            ages[state] = max(ages.get(state, 0), age)
        return self._node(one.contexts | other.contexts, ages, ())

    def _node(
        self, contexts: frozenset[Hashable], ages: dict[State, int], hits: tuple[Hit, ...]
    ) -> Node:
        if ages and max(ages.values()) > _RECURS:
            return Node(self, contexts, tuple(ages.items()), hits)
        partial = frozenset(ages.items())
        key = (contexts, partial, hits)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(self, contexts, tuple(partial), hits)
            self.kept += len(partial)
        return node

    def forget(self) -> None:
        """Drop all nodes. Those that a text stands on live on, but find their neighbours anew."""
        for node in self._nodes.values():
            node.clear()
        self._nodes.clear()
        self.kept = 0
        self.source.forget()


def _put(
    outcomes: Sequence[Outcome],
    age: int,
    back: int,
    following: dict[State, int],
    hits: dict[tuple[int, int], int],
) -> None:
    for outcome in outcomes:
        if isinstance(outcome, Match):
            known = hits.get((outcome.rule, age), back)
            hits[outcome.rule, age] = 0 if outcome.end is End.HERE else known
        elif age > following.get(outcome, 0):
            following[outcome] = age

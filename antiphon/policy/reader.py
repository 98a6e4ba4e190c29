"""Feeds one text to automata as it comes: as it is to one, with its escapes undone to the others.

An escape that is not complete is waited for, as a match is.
"""

from collections.abc import Sequence

from antiphon.policy.automaton import Machine, Node
from antiphon.policy.escapes import OPENING, Escape, Reading, at_end, read_escape


class Reader:
    """`hits` are matches that are complete: rule, start, end; whoever reads them clears them."""

    def __init__(self, as_is: Machine | None, disguised: Sequence[Machine]) -> None:
        self.fed = 0
        self.hits: list[tuple[int, int, int]] = []
        self._as_is = as_is
        self._node = as_is.first if as_is is not None else None
        self._machines = tuple(disguised)
        self._nodes = [machine.first for machine in disguised]
        self._read = 0
        """Characters that the disguised ones have read."""
        self._escape = ""
        """Those that may become an escape."""
        self._holds = any(machine.source.holds for machine in disguised)

    def feed(self, text: str) -> None:
        if self._as_is is not None and self._node is not None:
            symbols = text.translate(self._as_is.alphabet)
            self._node = self._run(self._node, symbols, self.fed)
        self.fed += len(text)
        if not self._machines:
            return
        at = 0
        while self._escape and at < len(text):
            self._offer(text[at])
            at += 1
        while at < len(text):
            opening = OPENING.search(text, at)
            end = opening.start() if opening is not None else len(text)
            if end > at:
                self._plain(text[at:end])
            at = end
            while at < len(text) and (at == end or self._escape):
                self._offer(text[at])
                at += 1

    def finish(self) -> None:
        while self._escape:
            self._settle(at_end(self._escape), self._escape)
        if self._node is not None:
            self._end(self._node, self.fed)
        for node in self._nodes:
            self._end(node, self.fed)
        # Nothing is possible any more.
        self._node = None
        self._nodes = []
        self._read = self.fed

    @property
    def held_from(self) -> int:
        """Where the oldest partial match begins that text must wait for."""
        held = self.fed
        if self._node is not None:
            held -= self._node.held
        if self._escape and self._holds:
            held = min(held, self._read)
        for node in self._nodes:
            if node.held and self._read - node.held < held:
                held = self._read - node.held
        return held

    @property
    def alive_from(self) -> int:
        """Where the oldest of all begins."""
        alive = self.fed if self._node is None else self.fed - self._node.alive
        if self._escape:
            alive = min(alive, self._read)
        for node in self._nodes:
            if node.alive:
                alive = min(alive, self._read - node.alive)
        return alive

    def _run(self, node: Node, symbols: str, at: int) -> Node:
        for read, symbol in enumerate(symbols, at + 1):
            node = node[symbol]
            if node.hits:
                self._note(node, read)
        return node

    def _note(self, node: Node, at: int) -> None:
        for rule, age, back in node.hits:
            self.hits.append((rule, at - age, at - back))

    def _end(self, node: Node, at: int) -> None:
        for rule, age, back in node.at_end():
            self.hits.append((rule, at - age, at - back))

    def _plain(self, text: str) -> None:
        for number, machine in enumerate(self._machines):
            symbols = text.translate(machine.alphabet)
            self._nodes[number] = self._run(self._nodes[number], symbols, self._read)
        self._read += len(text)

    def _offer(self, character: str) -> None:
        """One that may belong to an escape."""
        if self._escape or OPENING.match(character):
            whole = self._escape + character
            escape = read_escape(whole)
            if escape.reading is Reading.MORE:
                self._escape = whole
            else:
                self._settle(escape, whole)
        else:
            self._plain(character)

    def _settle(self, escape: Escape, text: str) -> None:
        self._escape = ""
        match escape.reading:
            case Reading.WHOLE:
                self._spelled_out(escape.character, len(text))
            case Reading.SHORT:
                self._spelled_out(escape.character, len(text) - 1)
                self._offer(text[-1])
            case Reading.EITHER:
                before = list(self._nodes)
                self._plain(text)
                self._read -= len(text)
                literal, self._nodes = self._nodes, before
                self._spelled_out(escape.character, len(text))
                self._nodes = [
                    machine.merged(one, other)
                    for machine, one, other in zip(
                        self._machines, literal, self._nodes, strict=True
                    )
                ]
            case _:
                self._plain(text[0])
                for character in text[1:]:
                    self._offer(character)

    def _spelled_out(self, character: str, width: int) -> None:
        self._read += width
        for number, machine in enumerate(self._machines):
            symbol = machine.alphabet[ord(character)]
            node = self._nodes[number] = self._nodes[number][symbol, width]
            if node.hits:
                self._note(node, self._read)

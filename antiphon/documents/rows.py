"""The vectors of one set of files, and the search for those nearest to another one. Pure numpy.

All are compared, so nothing near is lost as it is in a graph, and files come and go at no cost to
what is found. Of many, only the signs of their numbers are compared first, which is a sixteenth of
the memory that has to be read; the numbers decide among the best of those.
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from antiphon.embedding_frames import BYTES_PER_VECTOR, DIMENSIONS

_EXACT = 4096
"""Up to so many, the numbers are compared right away."""
_WORDS = DIMENSIONS // 64
_FIRST_ROWS = 64
_BYTES_PER_ROW = BYTES_PER_VECTOR + DIMENSIONS // 8 + 8

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]


class VectorRows:
    """One owner, one thread."""

    def __init__(self) -> None:
        self.editions: dict[str, str] = {}
        """The files that are here as a whole, and what names their vectors."""
        self._places: dict[str, int] = {}
        self._names: list[str] = []
        self._count = 0
        self._halves = np.empty((_FIRST_ROWS, DIMENSIONS), dtype=np.float16)
        self._signs = np.empty((_WORDS, _FIRST_ROWS), dtype=np.uint64)
        self._file = np.empty(_FIRST_ROWS, dtype=np.int32)
        self._number = np.empty(_FIRST_ROWS, dtype=np.int32)

    @property
    def taken_bytes(self) -> int:
        """What it takes, with the room that it keeps for more."""
        return len(self._file) * _BYTES_PER_ROW

    def put(self, file: str, edition: str, first: int, vectors: bytes, *, last: bool) -> None:
        """The file's vectors from that number on; from 0, in place of those that it has. Raises
        ValueError for what are none, or not the next ones."""
        if len(vectors) % BYTES_PER_VECTOR:
            raise ValueError(f"{len(vectors)} bytes are no vectors")
        added = np.frombuffer(vectors, dtype=np.float16).reshape(-1, DIMENSIONS)
        if not np.isfinite(added).all():
            raise ValueError("not all of it is numbers")
        if first == 0:
            self.drop([file])
        elif first != self._has(file):
            raise ValueError(f"number {first} is not the next one")
        place = self._places.setdefault(file, len(self._names))
        if place == len(self._names):
            self._names.append(file)
        start, end = self._count, self._count + len(added)
        self._grow(end)
        self._halves[start:end] = added
        self._signs[:, start:end] = _signs(added)
        self._file[start:end] = place
        self._number[start:end] = np.arange(first, first + len(added))
        self._count = end
        if last:
            self.editions[file] = edition

    def drop_torn(self) -> None:
        """Files that never had their last vectors."""
        self.drop([file for file in self._names if file not in self.editions])

    def drop(self, files: Collection[str]) -> None:
        """Those that aren't here don't matter."""
        gone = {self._places[file] for file in files if file in self._places}
        if not gone:
            return
        kept = [place for place in range(len(self._names)) if place not in gone]
        renumbered = np.full(len(self._names), -1, dtype=np.int32)
        renumbered[kept] = np.arange(len(kept))
        of_file = renumbered[self._file[: self._count]]
        stays = of_file >= 0
        self._halves = self._halves[: self._count][stays]
        self._signs = np.ascontiguousarray(self._signs[:, : self._count][:, stays])
        self._number = self._number[: self._count][stays]
        self._file = of_file[stays]
        self._count = len(self._file)
        self._names = [self._names[place] for place in kept]
        self._places = {file: place for place, file in enumerate(self._names)}
        self.editions = {
            file: edition for file, edition in self.editions.items() if file in self._places
        }

    def nearest(
        self, vector: Floats, limit: int, only: Collection[str] | None = None
    ) -> list[tuple[str, int, float]]:
        """File, number and similarity, the nearest first; equal ones as they were put in."""
        rows = self._preselected(vector, max(_EXACT // 2, 4 * limit), only)
        similar = self._halves[rows].astype(np.float32) @ vector
        best = np.lexsort((rows, -similar))[:limit]
        return [
            (
                self._names[self._file[rows[at]]],
                int(self._number[rows[at]]),
                float(similar[at]),
            )
            for at in best
        ]

    def _has(self, file: str) -> int:
        place = self._places.get(file, -1)
        return int((self._file[: self._count] == place).sum())

    def _preselected(
        self, vector: Floats, most: int, only: Collection[str] | None
    ) -> NDArray[np.intp]:
        """Where those are that may be the nearest."""
        among: NDArray[np.intp] | None = None
        if only is not None:
            wanted = np.zeros(len(self._names), dtype=bool)
            wanted[[self._places[file] for file in only if file in self._places]] = True
            among = np.flatnonzero(wanted[self._file[: self._count]])
        if (self._count if among is None else len(among)) <= _EXACT:
            return np.arange(self._count) if among is None else among
        asked = _signs(vector[None, :])[:, 0]
        different = np.zeros(self._count, dtype=np.uint16)
        for word, own in enumerate(asked):
            different += np.bitwise_count(self._signs[word, : self._count] ^ own)
        if among is not None:
            different = different[among]
        most = min(most, len(different) - 1)
        found = np.argpartition(different, most)[:most]
        return found if among is None else among[found]

    def _grow(self, rows: int) -> None:
        """By half at least, so that many small files don't mean as many copies."""
        room = len(self._file)
        if rows <= room:
            return
        room = max(rows, room + room // 2)
        for name in ("_halves", "_file", "_number"):
            old = getattr(self, name)
            new = np.empty((room, *old.shape[1:]), dtype=old.dtype)
            new[: self._count] = old[: self._count]
            setattr(self, name, new)
        signs = np.empty((_WORDS, room), dtype=np.uint64)
        signs[:, : self._count] = self._signs[:, : self._count]
        self._signs = signs


def _signs(vectors: Halves | Floats) -> NDArray[np.uint64]:
    """Of each row, a bit for each number; word by word, as they are compared."""
    packed = np.packbits(vectors > 0, axis=1)
    found: NDArray[np.uint64] = np.ascontiguousarray(packed).view(np.uint64).T
    return found

"""The sets of files whose vectors are at hand, within a bound on memory: what was not searched for
the longest time goes first, and is put in anew when it is searched again."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from antiphon.documents.rows import Floats, VectorRows


class TooLarge(Exception):
    """A set that doesn't fit, even alone."""


@dataclass(slots=True)
class _Set:
    rows: VectorRows = field(default_factory=VectorRows)
    revision: int | None = None
    """None while it is being put together."""
    is_too_large: bool = False


class VectorIndex:
    """One owner, one thread."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._sets: OrderedDict[str, _Set] = OrderedDict()

    @property
    def taken_bytes(self) -> int:
        return sum(each.rows.taken_bytes for each in self._sets.values())

    def put(
        self, key: str, file: str, edition: str, first: int, vectors: bytes, *, last: bool
    ) -> None:
        """As `VectorRows.put`; of a set that is too large nothing is kept. Raises ValueError."""
        found = self._open(key)
        if not found.is_too_large:
            found.rows.put(file, edition, first, vectors, last=last)
            self._make_room(key)

    def drop(self, key: str, files: Collection[str]) -> None:
        self._open(key).rows.drop(files)

    def settle(self, key: str, revision: int) -> None:
        """The set is whole."""
        found = self._open(key)
        found.rows.drop_torn()
        found.revision = revision

    def missing(self, scopes: Sequence[tuple[str, int]]) -> dict[str, dict[str, str]]:
        """Which of these sets are not here in that revision, and what there is of them."""
        missing: dict[str, dict[str, str]] = {}
        for key, revision in scopes:
            found = self._sets.get(key)
            if found is None or found.revision != revision:
                missing[key] = {} if found is None else dict(found.rows.editions)
                if found is not None:
                    found.is_too_large = False  # it may have become smaller
        return missing

    def nearest(
        self,
        scopes: Sequence[tuple[str, int]],
        vector: Floats,
        limit: int,
        only: Collection[str] | None = None,
    ) -> list[tuple[str, int, float]]:
        """Of all the sets, each chunk once. They must be here. Raises TooLarge."""
        found: dict[tuple[str, int], float] = {}
        for key, _ in scopes:
            each = self._sets[key]
            self._sets.move_to_end(key)
            if each.is_too_large:
                raise TooLarge(key)
            for file, number, similarity in each.rows.nearest(vector, limit, only):
                found.setdefault((file, number), similarity)
        best = sorted(found.items(), key=lambda each: -each[1])[:limit]
        return [(file, number, similarity) for (file, number), similarity in best]

    def _open(self, key: str) -> _Set:
        """To be changed: it is not whole until that is said."""
        found = self._sets.setdefault(key, _Set())
        found.revision = None
        self._sets.move_to_end(key)
        return found

    def _make_room(self, key: str) -> None:
        while self.taken_bytes > self._most_bytes and len(self._sets) > 1:
            self._sets.popitem(last=False)
        if self.taken_bytes > self._most_bytes:
            self._sets[key] = _Set(is_too_large=True)

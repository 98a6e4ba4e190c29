"""A store that remembers what was asked of it, so that a unit of work can be counted as a read or a
write: the work itself is opaque."""

from typing import Any

from antiphon.storage import READS, Store

_PERHAPS = frozenset({"expire", "orphans", "renew_leases"})
"""Writes that mostly find nothing to write, and so prove nothing."""


class WatchedStore:
    """Passes everything on."""

    __slots__ = ("_store", "kind", "operation")

    def __init__(self, store: Store) -> None:
        self._store = store
        self.kind = "read"
        self.operation: str | None = None

    @property
    def wrote(self) -> bool:
        """Whether a success says that the database can be written to."""
        return self.kind == "write" and self.operation not in _PERHAPS

    def __getattr__(self, name: str) -> Any:
        self.operation = name
        if name not in READS:
            self.kind = "write"
        return getattr(self._store, name)

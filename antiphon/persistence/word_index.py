"""Makes SQLite's full-text index forget what was removed from it. FTS5 notes a removal beside what
it removes, and both stay until the parts of the index that have them are merged; since SQLite 3.42
it can do better (`secure-delete`), but many a Python comes with an older one.
"""

import sqlite3

_BEGIN, _GO_ON = -150, 150
"""Pages of 4 KB that one step merges: some milliseconds. A negative number makes one part of all
(https://sqlite.org/fts5.html#the_merge_command)."""


class WordIndex:
    """Merges the parts of the index, one step at a time, in the writer's thread."""

    def __init__(self) -> None:
        self._merging = False

    def some(self, connection: sqlite3.Connection) -> bool:
        """Whether nothing is left that was removed. One transaction, with the lock to write."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            done = self._step(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return done

    def _step(self, connection: sqlite3.Connection) -> bool:
        if not _any(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'chunk_index_removals'"):
            return True  # not migrated yet
        if not _any(connection, "SELECT 1 FROM chunk_index_removals"):
            return True
        before = connection.total_changes
        pages = _GO_ON if self._merging else _BEGIN
        connection.execute(
            "INSERT INTO chunk_index (chunk_index, rank) VALUES ('merge', ?)", [pages]
        )
        # Fewer than two changes are no work: see there.
        self._merging = connection.total_changes - before >= 2
        if self._merging or _parts(connection) > 1:
            return False
        connection.execute("DELETE FROM chunk_index_removals")
        return True


def problems(connection: sqlite3.Connection) -> list[str]:
    """Where the index and what it is of differ. Every entry has one word in common."""
    every = "SELECT rowid FROM chunk_index WHERE chunk_index MATCH '\"\ue001\"'"
    counts = {
        "chunks are not in the full-text index": "SELECT COUNT(*) FROM chunk_words"
        f" WHERE place NOT IN ({every})",
        "entries of the full-text index are of chunks that are gone": "SELECT COUNT(*) FROM"
        f" ({every}) WHERE rowid NOT IN (SELECT place FROM chunk_words)",
    }
    found = []
    for sentence, text in counts.items():
        (count,) = connection.execute(text).fetchone()
        if count:
            found.append(f"{count} {sentence}")
    return found


def _parts(connection: sqlite3.Connection) -> int:
    count: int = connection.execute("SELECT COUNT(DISTINCT segid) FROM chunk_index_idx").fetchone()[
        0
    ]
    return count


def _any(connection: sqlite3.Connection, text: str) -> bool:
    return connection.execute(text).fetchone() is not None

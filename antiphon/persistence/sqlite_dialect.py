"""PostgreSQL's words, in which statements and migrations are written, in SQLite's."""

import re
from functools import lru_cache

from antiphon.persistence.port import Dialect, Statement
from antiphon.persistence.schema import APPLICATION_ID

_ARRAY = re.compile(r"= ANY\(\$(\d+)\)")
_LOCKING = re.compile(r" FOR (?:NO KEY |KEY )?(?:UPDATE|SHARE)\b(?: SKIP LOCKED)?")


def words_of(sql: Statement) -> str:
    """What SQLite is asked."""
    return translated(sql.text if sql.sqlite is None else sql.sqlite)


@lru_cache(maxsize=1024)
def translated(text: str) -> str:
    """PostgreSQL's words in SQLite's: numbered placeholders, arrays as JSON, no row locks."""
    text = _ARRAY.sub(r"IN (SELECT value FROM json_each(?\1))", text)
    return _LOCKING.sub("", text).replace("$", "?")


def table_definition(text: str) -> str:
    """A migration's statement as SQLite has it: strict tables, clustered where it says so."""
    if text.startswith("{only postgresql}"):
        return ""
    for theirs, ours in (
        ("{only sqlite}", ""),
        ("BIGINT", "INTEGER"),
        ("DOUBLE PRECISION", "REAL"),
        ("BYTEA", "BLOB"),
        ("{strict}", " STRICT"),
        ("{clustered}", " STRICT, WITHOUT ROWID"),
    ):
        text = text.replace(theirs, ours)
    return text


DIALECT = Dialect(
    name="sqlite",
    definition=table_definition,
    tables=Statement(
        "schema.tables",
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'",
    ),
    lock_schema=None,
    mark=Statement("schema.mark", f"PRAGMA application_id = {APPLICATION_ID}"),
)

"""Items, wherever they lie: how they are written, and read in order.

Each has a position in its home, given by the transaction that wrote it and never by a clock. What
files an item names is noted when it is written.
"""

from collections.abc import Sequence
from typing import Any

from antiphon.errors import InvalidRequest
from antiphon.ids import UserId
from antiphon.persistence import codec
from antiphon.persistence.port import DuplicateKey, Transaction, Write, statement
from antiphon.records import Item

INSERT = statement(
    "items.insert",
    """INSERT INTO items (home, position, id, response_id, direction, type, role, status, tokens,
        created_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)""",
)
INSERT_BODY = statement(
    "item_bodies.insert", "INSERT INTO item_bodies (home, position, body) VALUES ($1, $2, $3)"
)
USE_FILE = statement(
    "file_uses.insert",
    """INSERT INTO file_uses (file_id, home, position)
        SELECT id, CAST($3 AS TEXT), CAST($4 AS BIGINT) FROM files WHERE id = $1 AND user_id = $2
        ON CONFLICT (file_id, home, position) DO NOTHING""",
)

INPUT, OUTPUT = "in", "out"


def writes(
    items: Sequence[Item],
    *,
    user: UserId,
    home: str,
    first: int,
    response: str | None = None,
    direction: str | None = None,
) -> list[Write]:
    """Rows for these items at `first` and after, to be written with others in one batch."""
    rows: list[Write] = []
    bodies: list[Write] = []
    uses: list[Write] = []
    for position, item in enumerate(items, first):
        row: tuple[Any, ...] = (
            home,
            position,
            item.id,
            response,
            direction,
            item.type,
            item.role,
            item.status,
            item.tokens,
            item.created_ms,
        )
        rows.append((INSERT, row))
        bodies.append((INSERT_BODY, (home, position, codec.to_json(item.body))))
        uses += [
            (USE_FILE, (file, user, home, position)) for file in set(codec.file_ids(item.body))
        ]
    return rows + bodies + uses


async def write(tx: Transaction, batch: Sequence[Write], param: str) -> None:
    """Raises InvalidRequest when an item's id is taken in its home."""
    try:
        await tx.batch(batch)
    except DuplicateKey as error:
        if "items" not in error.reason:
            raise
        raise InvalidRequest(
            "An item with that id is already there.", param=param, code="duplicate_item"
        ) from error

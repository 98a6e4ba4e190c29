"""Units of work on files: what is known about them; their content lies elsewhere."""

from collections.abc import Sequence

from antiphon.errors import UnknownCursor
from antiphon.ids import FileId, UserId
from antiphon.persistence import codec
from antiphon.persistence.conversations import FIRST, LAST
from antiphon.persistence.port import Transaction, statement
from antiphon.records import File, Page

_INSERT = statement(
    "files.insert",
    f"INSERT INTO files ({codec.FILE}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
)
_GET = statement("files.get", f"SELECT {codec.FILE} FROM files WHERE id = $1 AND user_id = $2")
_CURSOR = statement(
    "files.cursor", "SELECT created_ms, id FROM files WHERE id = $1 AND user_id = $2"
)
_LISTS = {
    (newest_first, by_purpose): statement(
        f"files.list_{'newest' if newest_first else 'oldest'}{'_purpose' if by_purpose else ''}",
        f"""SELECT {codec.FILE} FROM files
            WHERE user_id = $1 AND (created_ms, id) {"<" if newest_first else ">"} ($2, $3)
            {"AND purpose = $5" if by_purpose else ""}
            ORDER BY created_ms {"DESC" if newest_first else "ASC"},
                id {"DESC" if newest_first else "ASC"} LIMIT $4""",
    )
    for newest_first in (False, True)
    for by_purpose in (False, True)
}
_USED_CONTENTS = statement(
    "files.used_contents", "SELECT DISTINCT sha256 FROM files WHERE sha256 = ANY($1)"
)


async def add(tx: Transaction, file: File) -> None:
    await tx.execute(
        _INSERT,
        file.id,
        file.user,
        file.filename,
        file.purpose,
        file.media_type,
        file.bytes,
        file.sha256,
        file.created_ms,
        file.status.value,
        file.expires_ms,
    )


async def get(tx: Transaction, user: UserId, id: FileId) -> File | None:
    row = await tx.fetchrow(_GET, id, user)
    return None if row is None else codec.file(row)


async def listed(
    tx: Transaction, user: UserId, page: Page, purpose: str | None
) -> tuple[File, ...]:
    start: Sequence[object] = (LAST if page.newest_first else FIRST, "")
    if page.after is not None:
        cursor = await tx.fetchrow(_CURSOR, page.after, user)
        if cursor is None:
            raise UnknownCursor(page.after)
        start = cursor
    sql = _LISTS[page.newest_first, purpose is not None]
    filters = () if purpose is None else (purpose,)
    rows = await tx.fetch(sql, user, start[0], start[1], max(page.limit, 0), *filters)
    return tuple(map(codec.file, rows))


async def unused(tx: Transaction, contents: Sequence[str]) -> tuple[str, ...]:
    if not contents:
        return ()
    used = {row[0] for row in await tx.fetch(_USED_CONTENTS, list(contents))}
    return tuple(content for content in dict.fromkeys(contents) if content not in used)

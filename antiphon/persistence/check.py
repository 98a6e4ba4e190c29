"""What `antiphon db check` looks at: the files, the references that no constraint keeps, and the
books."""

from dataclasses import dataclass

from antiphon.errors import StoreFailed
from antiphon.persistence.document_schema import CHUNKS_AT_MOST
from antiphon.persistence.migrations import require_current
from antiphon.persistence.port import Database, Statement, Transaction, statement
from antiphon.persistence.schema import TABLES
from antiphon.progress import Told, telling, untold

_COUNTS = {
    table.name: statement(f"check.{table.name}", f"SELECT COUNT(*) FROM {table.name}")
    for table in TABLES
}


def _problem(name: str, text: str) -> Statement:
    return statement(f"check.{name}", f"SELECT COUNT(*) {text}")


_PROBLEMS = {
    "items have no body": _problem(
        "items_without_body",
        """FROM items i WHERE NOT EXISTS (SELECT 1 FROM item_bodies b
            WHERE b.home = i.home AND b.position = i.position)""",
    ),
    "items lie in no conversation and no response": _problem(
        "items_without_home",
        """FROM items i WHERE NOT EXISTS (SELECT 1 FROM conversations c WHERE c.id = i.home)
            AND NOT EXISTS (SELECT 1 FROM responses r WHERE r.id = i.home)""",
    ),
    "items belong to a response that is gone": _problem(
        "items_without_response",
        """FROM items i WHERE i.response_id IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM responses r WHERE r.id = i.response_id)""",
    ),
    "uses of files are of items that are gone": _problem(
        "file_uses_without_item",
        """FROM file_uses u WHERE NOT EXISTS (SELECT 1 FROM items i
            WHERE i.home = u.home AND i.position = u.position)""",
    ),
    "responses have no parameters": _problem(
        "responses_without_body",
        """FROM responses r WHERE NOT EXISTS (SELECT 1 FROM response_bodies b
            WHERE b.response_id = r.id)""",
    ),
    "responses have no bill": _problem(
        "responses_without_usage",
        """FROM responses r WHERE NOT EXISTS (SELECT 1 FROM usage_entries u
            WHERE u.response_id = r.id)""",
    ),
    "ended responses have no settled bill": _problem(
        "unsettled",
        """FROM usage_entries u JOIN responses r ON r.id = u.response_id
            WHERE u.settled_ms IS NULL AND r.completed_ms IS NOT NULL""",
    ),
    "bills are open of responses that are gone": _problem(
        "reserved_for_nothing",
        """FROM usage_entries u WHERE u.settled_ms IS NULL AND u.lease_ms IS NULL
            AND NOT EXISTS (SELECT 1 FROM responses r WHERE r.id = u.response_id)""",
    ),
    "users have another number of answers counted as running than there are": _problem(
        "running",
        """FROM user_quotas q WHERE q.running <> (SELECT COUNT(*) FROM usage_entries u
            WHERE u.user_id = q.user_id AND u.settled_ms IS NULL AND u.reserved_ms IS NOT NULL)""",
    ),
    "responses have a status that contradicts their end": _problem(
        "status",
        """FROM responses WHERE (status IN ('queued', 'in_progress')) = (completed_ms IS NOT NULL)
        """,
    ),
    "summaries end with an item that is gone": _problem(
        "summaries_without_item",
        """FROM summaries s WHERE NOT EXISTS (SELECT 1 FROM items i
            WHERE i.home = s.conversation_id AND i.position = s.until_position)""",
    ),
    "memories come from items that are gone": _problem(
        "memories_without_item",
        """FROM memory_sources s WHERE NOT EXISTS (SELECT 1 FROM items i
            WHERE i.home = s.conversation_id AND i.id = s.item_id)""",
    ),
    "memories were stated nowhere": _problem(
        "memories_without_source",
        """FROM memories m WHERE m.origin = 'stated'
            AND NOT EXISTS (SELECT 1 FROM memory_sources s WHERE s.memory_id = m.id
                AND s.conversation_id = m.conversation_id AND s.item_id = m.item_id)""",
    ),
    "documents are needed by nothing": _problem(
        "documents_without_use",
        """FROM documents d WHERE NOT EXISTS (SELECT 1 FROM vector_store_files v
                WHERE v.document_id = d.id)
            AND NOT EXISTS (SELECT 1 FROM file_documents f WHERE f.document_id = d.id)""",
    ),
    "documents are another user's than their file": _problem(
        "documents_of_others",
        """FROM documents d WHERE EXISTS (SELECT 1 FROM vector_store_files v
                JOIN files f ON f.id = v.file_id JOIN vector_stores s ON s.id = v.store_id
                WHERE v.document_id = d.id AND (f.user_id <> d.user_id OR s.user_id <> d.user_id))
            OR EXISTS (SELECT 1 FROM file_documents w JOIN files f ON f.id = w.file_id
                WHERE w.document_id = d.id AND f.user_id <> d.user_id)""",
    ),
    "documents wait for nobody to make them": _problem(
        "documents_forgotten",
        "FROM documents WHERE status IN ('pending', 'reading') AND due_ms IS NULL",
    ),
    "documents that are ready have no text": _problem(
        "documents_without_text",
        """FROM documents d WHERE d.status = 'ready' AND NOT EXISTS (SELECT 1 FROM document_texts t
            WHERE t.document_id = d.id)""",
    ),
    "documents have another number of chunks than they say": _problem(
        "documents_with_other_chunks",
        f"""FROM documents d WHERE d.chunks <> (SELECT COUNT(*) FROM chunks c
            WHERE c.place >= d.number * {CHUNKS_AT_MOST}
            AND c.place < (d.number + 1) * {CHUNKS_AT_MOST})""",
    ),
    "chunks are of documents that are gone": _problem(
        "chunks_without_document",
        f"""FROM chunks c WHERE NOT EXISTS (SELECT 1 FROM documents d
                WHERE d.number = c.place / {CHUNKS_AT_MOST})
            AND NOT EXISTS (SELECT 1 FROM removed_documents r
                WHERE r.number = c.place / {CHUNKS_AT_MOST})""",
    ),
    "documents that were removed are there": _problem(
        "removed_documents_there",
        """FROM removed_documents r WHERE EXISTS (SELECT 1 FROM documents d
            WHERE d.number = r.number)""",
    ),
    "chunks can't be found by their words": _problem(
        "chunks_without_words",
        "FROM chunks c WHERE NOT EXISTS (SELECT 1 FROM chunk_words w WHERE w.place = c.place)",
    ),
    "words are of chunks that are gone": _problem(
        "words_without_chunk",
        "FROM chunk_words w WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.place = w.place)",
    ),
    "vector stores that are empty have files": _problem(
        "emptied_with_files",
        """FROM vector_stores s WHERE s.expired = 2 AND EXISTS (SELECT 1 FROM vector_store_files v
            WHERE v.store_id = s.id)""",
    ),
    "conversations are locked by a response that has ended": _problem(
        "stale_locks",
        """FROM conversations c WHERE c.lock_response IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM responses r
                WHERE r.id = c.lock_response AND r.completed_ms IS NULL)""",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What was found. `rows` counts what is there, by table."""

    problems: tuple[str, ...]
    rows: dict[str, int]

    @property
    def sound(self) -> bool:
        return not self.problems


async def check_database(database: Database, told: Told = untold) -> CheckReport:
    """Reads everything, changes nothing. A server may be at work meanwhile. Raises
    SchemaMismatch."""
    await require_current(database)
    problems = await database.health()

    async def look(tx: Transaction) -> tuple[list[str], dict[str, int]]:
        found, rows = [], {}
        for sentence, sql in telling(_PROBLEMS.items(), len(_PROBLEMS), told):
            if count := await _count(tx, sql):
                found.append(f"{count} {sentence}")
        for table, sql in _COUNTS.items():
            rows[table] = await _count(tx, sql)
        return found, rows

    try:
        found, rows = await database.read(look)
    except StoreFailed as error:
        if not problems:
            raise
        found, rows = [error.reason], {}  # damaged beyond reading
    return CheckReport(problems=(*problems, *found), rows=rows)


async def _count(tx: Transaction, sql: Statement) -> int:
    row = await tx.fetchrow(sql)
    return 0 if row is None else int(row[0])

"""Everything that is stored about one user, as plain JSON."""

from antiphon.ids import UserId
from antiphon.persistence import (
    codec,
    document_codec,
    memories,
    people,
    policy,
    quotas,
    responses,
    summaries,
    vector_stores,
)
from antiphon.persistence.port import Transaction, statement
from antiphon.records import Item, JsonObject

_CONVERSATIONS = statement(
    "account.conversations",
    f"SELECT {codec.CONVERSATION} FROM conversations WHERE user_id = $1 ORDER BY id",
)
_ITEMS = statement(
    "account.items",
    f"""SELECT {codec.ITEM} FROM items i
        JOIN item_bodies b ON b.home = i.home AND b.position = i.position
        WHERE i.home = $1 ORDER BY i.position""",
)
_RESPONSES = statement(
    "account.responses",
    f"""SELECT {codec.RESPONSE} FROM responses r JOIN response_bodies b ON b.response_id = r.id
        WHERE r.user_id = $1 ORDER BY r.kind, r.created_ms, r.id""",
)
_FEEDBACK = statement(
    "account.feedback",
    """SELECT f.response_id, f.rating, f.reason, f.created_ms FROM responses r
        JOIN feedback f ON f.response_id = r.id WHERE r.user_id = $1
        ORDER BY f.created_ms, f.response_id""",
)
_FILES = statement(
    "account.files", f"SELECT {codec.FILE} FROM files WHERE user_id = $1 ORDER BY created_ms, id"
)
_DOCUMENTS = statement(
    "account.documents",
    f"""SELECT {document_codec.DOCUMENT}, t.text FROM documents d
        LEFT JOIN document_texts t ON t.document_id = d.id WHERE d.user_id = $1
        ORDER BY d.sha256, d.kind, d.max_tokens, d.overlap_tokens""",
)


async def export(tx: Transaction, id: UserId) -> JsonObject | None:
    """Without secrets and their hashes."""
    user = await people.user(tx, id)
    if user is None:
        return None
    conversations = []
    summarised = await summaries.of_user(tx, id)
    for row in await tx.fetch(_CONVERSATIONS, id):
        items = codec.items(await tx.fetch(_ITEMS, row[0]))
        summary = summarised.get(row[0])
        conversations.append(
            {
                **codec.plain(codec.conversation(row)),
                "items": list(map(_plain_item, items)),
                "summary": None if summary is None else codec.plain(summary),
            }
        )
    answers = []
    for row in await tx.fetch(_RESPONSES, id):
        response = codec.response(row)
        plain = codec.plain(response)
        # What ran in a conversation stands there with all its items.
        items = () if response.conversation else codec.items(await tx.fetch(_ITEMS, row[0]))
        plain["items"] = list(map(_plain_item, items))
        del plain["output"], plain["feedback"]  # each has a place of its own
        answers.append(plain)
    return {
        "user": codec.plain(user),
        "keys": [codec.plain(key) for key in await people.keys(tx, id)],
        "conversations": conversations,
        "responses": answers,
        "memories": [codec.plain(memory) for memory in await memories.of_user(tx, id)],
        "feedback": [codec.plain(codec.feedback(row)) for row in await tx.fetch(_FEEDBACK, id)],
        "files": [codec.plain(codec.file(row)) for row in await tx.fetch(_FILES, id)],
        "documents": [
            {**codec.plain(document_codec.document(tuple(row)[:-1])), "text": row[-1]}
            for row in await tx.fetch(_DOCUMENTS, id)
        ],
        "vector_stores": await vector_stores.export(tx, id),
        "quota": await quotas.export(tx, id),
        "policy_events": await policy.export(tx, id),
        "usage": [codec.plain(entry) for entry in await responses.usage(tx, id, 0)],
    }


def _plain_item(item: Item) -> JsonObject:
    """As the API has it, with what only the store knows."""
    known = {"id": item.id, "type": item.type, "role": item.role, "status": item.status}
    return {**item.body, **known, "created_ms": item.created_ms}

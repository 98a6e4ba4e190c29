"""Conversations for training, as JSON lines of chat messages: only of users who allow it, without a
name of anybody."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from antiphon.errors import StoreFailed
from antiphon.persistence import codec
from antiphon.persistence.migrations import require_current
from antiphon.persistence.port import Database, Transaction, statement
from antiphon.persistence.transfer import created
from antiphon.records import Item, JsonObject

_PAGE = 200

_WILLING = statement(
    "transfer.training_users", "SELECT id FROM users WHERE training = 1 ORDER BY id"
)
_CONVERSATIONS = statement(
    "training.conversations",
    f"""SELECT id FROM conversations WHERE user_id = $1 AND id > $2
        ORDER BY id LIMIT {_PAGE}""",
)
_ITEMS = statement(
    "training.items",
    f"""SELECT {codec.ITEM} FROM items i
        JOIN item_bodies b ON b.home = i.home AND b.position = i.position
        WHERE i.home = $1 ORDER BY i.position""",
)


async def export_training(database: Database, target: Path) -> int:
    """Write what may be learned from into a new file, readable by the owner alone; how many
    conversations. Raises StoreFailed when the file exists or can't be written, and
    SchemaMismatch."""
    await require_current(database)

    async def write(tx: Transaction) -> int:
        try:
            with created(target) as file:
                return await _write(tx, file)
        except OSError as error:
            raise StoreFailed(f"{target}: {error.strerror}") from error

    return await database.read(write)


async def _write(tx: Transaction, file: BinaryIO) -> int:
    encode = msgspec.json.Encoder().encode
    count = 0
    for (user,) in await tx.fetch(_WILLING):
        after = ""
        while page := await tx.fetch(_CONVERSATIONS, user, after):
            for (id,) in page:
                messages = messages_of(codec.items(await tx.fetch(_ITEMS, id)))
                if messages:
                    file.write(encode({"conversation": id, "messages": messages}) + b"\n")
                    count += 1
            after = page[-1][0]
    return count


def messages_of(items: Iterable[Item]) -> list[JsonObject]:
    """What was said to the end; nothing where nobody answered."""
    messages = [
        {"role": item.role, "content": text}
        for item in items
        if item.type == "message" and item.status == "completed" and (text := _text(item.body))
    ]
    return messages if any(message["role"] == "assistant" for message in messages) else []


def _text(body: JsonObject) -> str:
    content: Any = body.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if "text" in part)

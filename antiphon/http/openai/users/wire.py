"""Users and what they used, as they go on the wire. None of it is in OpenAI's API."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

import msgspec

from antiphon.http.openai.conversations.wire import ReceiptObject
from antiphon.http.openai.schema import Strict
from antiphon.records import UsageEntry, User


class UpdateUser(Strict, frozen=True):
    training: bool


class UserObject(msgspec.Struct, kw_only=True):
    """`training`: whether their conversations may be part of a training export."""

    id: str
    object: Literal["user"] = "user"
    name: str
    tenant: str
    created_at: int
    training: bool


class UserList(msgspec.Struct, kw_only=True):
    """All of them: there are as many as somebody made by hand."""

    object: Literal["list"] = "list"
    data: list[UserObject]
    has_more: Literal[False] = False


class DeletedUser(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["user.deleted"] = "user.deleted"
    deleted: Literal[True] = True
    receipt: ReceiptObject


class UsageRow(msgspec.Struct, kw_only=True):
    """One model on one day, in UTC. What runs counts as a request without tokens."""

    date: str
    model: str
    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0


class UsageList(msgspec.Struct, kw_only=True):
    object: Literal["list"] = "list"
    data: list[UsageRow]
    has_more: Literal[False] = False


def user_object(user: User) -> UserObject:
    return UserObject(
        id=user.id,
        name=user.name,
        tenant=user.tenant,
        created_at=user.created_ms // 1000,
        training=user.training,
    )


def usage_list(entries: Iterable[UsageEntry]) -> UsageList:
    """Summed by day and model, newest day first."""
    rows: dict[tuple[str, str], UsageRow] = {}
    for entry in entries:
        day = datetime.fromtimestamp(entry.created_ms / 1000, UTC).date().isoformat()
        row = rows.setdefault((day, entry.model), UsageRow(date=day, model=entry.model))
        row.requests += 1
        if entry.usage is not None:
            row.input_tokens += entry.usage.input
            row.cached_tokens += entry.usage.cached
            row.output_tokens += entry.usage.output
            row.total_tokens += entry.usage.total
    ordered = sorted(rows.values(), key=lambda row: row.model)
    return UsageList(data=sorted(ordered, key=lambda row: row.date, reverse=True))

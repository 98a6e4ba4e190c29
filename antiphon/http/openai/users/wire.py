"""Users and what they used, as they go on the wire. None of it is in OpenAI's API."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Literal

import msgspec

from antiphon.http.openai.conversations.wire import ReceiptObject
from antiphon.http.openai.schema import Strict
from antiphon.quotas import UsageSum
from antiphon.records import User

_EPOCH = date(1970, 1, 1)


class UpdateUser(Strict, frozen=True):
    training: bool


class UserObject(msgspec.Struct, kw_only=True):
    """`training`: whether their conversations may be part of a training export. `plan`: the one
    that they were given; null is the server's default. `suspended`: why they are not served."""

    id: str
    object: Literal["user"] = "user"
    name: str
    tenant: str
    created_at: int
    training: bool
    plan: str | None = None
    suspended: str | None = None


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


class UsageTotal(msgspec.Struct, kw_only=True):
    """What was used. What runs counts as a request without tokens."""

    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0


class UsageRow(UsageTotal, kw_only=True):
    """One model on one day, in UTC."""

    date: str
    model: str


class UsageList(msgspec.Struct, kw_only=True):
    """By when requests began. `plan` is the one that counts for the caller; null is no limit."""

    object: Literal["list"] = "list"
    start_time: int
    end_time: int
    plan: str | None
    total: UsageTotal
    data: list[UsageRow]
    has_more: Literal[False] = False


def user_object(user: User) -> UserObject:
    return UserObject(
        id=user.id,
        name=user.name,
        tenant=user.tenant,
        created_at=user.created_ms // 1000,
        training=user.training,
        plan=user.plan,
        suspended=user.suspended,
    )


def usage_list(
    sums: Iterable[UsageSum], *, start_time: int, end_time: int, plan: str | None
) -> UsageList:
    """Newest day first, with the sum of all."""
    ordered = sorted(sums, key=lambda each: (-each.day, each.model))
    data = [
        UsageRow(
            date=(_EPOCH + timedelta(days=each.day)).isoformat(),
            model=each.model,
            requests=each.requests,
            input_tokens=each.input,
            cached_tokens=each.cached,
            output_tokens=each.output,
            total_tokens=each.input + each.output,
        )
        for each in ordered
    ]
    names = UsageTotal.__struct_fields__
    total = UsageTotal(**{name: sum(getattr(row, name) for row in data) for name in names})
    return UsageList(start_time=start_time, end_time=end_time, plan=plan, total=total, data=data)

"""Units of work on policy events: what rules found, and which of them could not be run.

An event whose response or user is gone by the time it is written keeps neither name nor text: it
was on its way while they were deleted.
"""

from collections.abc import Sequence
from types import MappingProxyType

from antiphon.ids import ResponseId, UserId
from antiphon.persistence import codec
from antiphon.persistence.port import Row, Transaction, statement
from antiphon.records import JsonObject
from antiphon.verdicts import PolicyEvent, Stage

_COLUMNS = (
    "id, request_id, response_id, rule, action, stage, created_ms, version, shadow, user_id, "
    "detail, text"
)
_ADD = statement(
    "policy.add",
    f"""INSERT INTO policy_events ({_COLUMNS})
        VALUES ($1, $2, (SELECT r.id FROM responses r WHERE r.id = $3), $4, $5, $6, $7, $8, $9,
            (SELECT u.id FROM users u WHERE u.id = $10), $11,
            CASE WHEN ($3 IS NULL OR EXISTS (SELECT 1 FROM responses r WHERE r.id = $3))
                AND ($10 IS NULL OR EXISTS (SELECT 1 FROM users u WHERE u.id = $10))
                THEN $12 END)
        ON CONFLICT (id) DO NOTHING""",
)
_OF_USER = statement(
    "policy.of_user",
    f"SELECT {_COLUMNS} FROM policy_events WHERE user_id = $1 ORDER BY created_ms, id",
)
_LATEST = statement(
    "policy.latest",
    f"""SELECT {_COLUMNS} FROM policy_events WHERE created_ms >= 0
        ORDER BY created_ms DESC, id DESC LIMIT $1""",
)
_LATEST_OF_RULE = statement(
    "policy.latest_of_rule",
    f"""SELECT {_COLUMNS} FROM policy_events WHERE rule = $2
        ORDER BY created_ms DESC, id DESC LIMIT $1""",
)
_LATEST_OF_USER = statement(
    "policy.latest_of_user",
    f"""SELECT {_COLUMNS} FROM policy_events WHERE user_id = $2
        ORDER BY created_ms DESC, id DESC LIMIT $1""",
)
_LATEST_OF_BOTH = statement(
    "policy.latest_of_both",
    f"""SELECT {_COLUMNS} FROM policy_events WHERE rule = $2 AND user_id = $3
        ORDER BY created_ms DESC, id DESC LIMIT $1""",
)
_DELETE_OF_USER = statement(
    "policy_events.delete_of_user", "DELETE FROM policy_events WHERE user_id = $1"
)
_FORGET_SAID_IN = statement(
    "policy_events.forget_conversation",
    """UPDATE policy_events SET text = NULL WHERE text IS NOT NULL AND response_id IN (
        SELECT r.id FROM responses r WHERE r.conversation_id = $1)""",
)
_FORGET_AFTER = statement(
    "policy_events.forget_following",
    """UPDATE policy_events SET text = NULL WHERE text IS NOT NULL AND response_id IN (
        WITH RECURSIVE chain (id) AS (
            SELECT r.id FROM responses r WHERE r.previous_id = $1
            UNION SELECT r.id FROM chain c JOIN responses r ON r.previous_id = c.id)
        SELECT id FROM chain)""",
)


async def add(tx: Transaction, events: Sequence[PolicyEvent]) -> None:
    await tx.executemany(_ADD, [_row(event) for event in events])


async def latest(
    tx: Transaction, rule: str | None, user: str | None, limit: int
) -> tuple[PolicyEvent, ...]:
    match rule, user:
        case None, None:
            rows = await tx.fetch(_LATEST, limit)
        case str(), None:
            rows = await tx.fetch(_LATEST_OF_RULE, limit, rule)
        case None, str():
            rows = await tx.fetch(_LATEST_OF_USER, limit, user)
        case _:
            rows = await tx.fetch(_LATEST_OF_BOTH, limit, rule, user)
    return tuple(map(_event, rows))


async def export(tx: Transaction, user: UserId) -> list[JsonObject]:
    return [_plain(_event(row)) for row in await tx.fetch(_OF_USER, user)]


async def delete_of_user(tx: Transaction, user: UserId) -> int:
    return await tx.execute(_DELETE_OF_USER, user)


async def forget_words_of(tx: Transaction, conversation: str | None, response: str | None) -> None:
    """Something said there is deleted. What came later was judged with it in its context, and its
    events may hold the same words."""
    if conversation is not None:
        await tx.execute(_FORGET_SAID_IN, conversation)
    if response is not None:
        await tx.execute(_FORGET_AFTER, response)


def _row(event: PolicyEvent) -> tuple[object, ...]:
    return (
        event.id,
        event.request,
        event.response,
        event.rule,
        event.action,
        event.stage.value,
        event.created_ms,
        event.version,
        int(event.shadow),
        event.user,
        codec.to_json(dict(event.detail)),
        event.text,
    )


def _event(row: Row) -> PolicyEvent:
    id, request, response, rule, action, stage, created_ms, version, shadow, user, *rest = row
    detail, text = rest
    return PolicyEvent(
        id=id,
        request=request,
        response=response,
        rule=rule,
        action=action,
        stage=Stage(stage),
        created_ms=created_ms,
        version=version,
        shadow=bool(shadow),
        user=user,
        detail=MappingProxyType({} if detail is None else codec.from_json(detail)),
        text=text,
    )


def _plain(event: PolicyEvent) -> JsonObject:
    return {
        "id": event.id,
        "request": event.request,
        "response": None if event.response is None else ResponseId(event.response),
        "rule": event.rule,
        "version": event.version,
        "action": event.action,
        "stage": event.stage.value,
        "shadow": event.shadow,
        "detail": dict(event.detail),
        "text": event.text,
        "created_ms": event.created_ms,
    }

"""Between records and rows: which column is which field, and how JSON is written down.

JSON is text that msgspec made: U+0000 inside a string is an escape there and survives.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from antiphon.errors import InvalidRequest
from antiphon.ids import (
    ConversationId,
    FileId,
    ItemId,
    KeyId,
    ModelName,
    ResponseId,
    TenantId,
    UserId,
)
from antiphon.persistence.port import Row
from antiphon.records import (
    ApiKey,
    Conversation,
    Feedback,
    File,
    FileStatus,
    Item,
    Rating,
    Response,
    ResponseError,
    ResponseKind,
    ResponseStatus,
    Scope,
    TokenUsage,
    UsageEntry,
    User,
)

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_FOLDED_LENGTH = 256
"""A search sees that much of a title: PostgreSQL's index entries end at 2,704 bytes."""

USER = "id, tenant, name, created_ms, training, plan, suspended, suspended_until_ms"
KEY = (
    "id, user_id, prefix, name, scopes, created_ms, expires_ms, revoked_ms, last_used_ms, suspended"
)
CONVERSATION = (
    "id, user_id, created_ms, updated_ms, title, metadata, archived_ms, memory, title_made"
)
ITEM = "i.id, i.type, i.role, i.status, i.tokens, i.created_ms, b.body"
RESPONSE = (
    "r.id, r.user_id, r.kind, r.model, r.status, r.created_ms, r.metadata, r.conversation_id, "
    "r.previous_id, r.background, r.streamed, r.completed_ms, r.incomplete_reason, "
    "r.input_tokens, r.cached_tokens, r.output_tokens, r.reasoning_tokens, b.request, b.error"
)
FILE = "id, user_id, filename, purpose, media_type, bytes, sha256, created_ms, status, expires_ms"


def to_json(value: Any) -> str:
    """Raises InvalidRequest for what JSON can't hold: lone surrogates, numbers that never end."""
    try:
        return _encoder.encode(value).decode()
    except (UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise InvalidRequest(f"A value can't be stored as JSON: {error}") from error


def from_json(text: str) -> Any:
    return _decoder.decode(text)


def metadata_pair(key: str, value: str) -> str:
    """How one pair looks inside stored metadata. No string can look like it: their quotes are
    escaped."""
    return f"{to_json(key)}:{to_json(value)}"


def folded(title: str | None) -> str | None:
    return None if title is None else title.casefold()[:_FOLDED_LENGTH]


def like_part(text: str) -> str:
    """A pattern for what contains it, with backslash as the escape."""
    text = text.casefold()
    for special in ("\\", "%", "_"):
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"


def scopes_text(scopes: Iterable[Scope]) -> str:
    return " ".join(sorted(scopes))


def user(row: Row) -> User:
    id, tenant, name, created_ms, training, plan, suspended, until_ms = row
    return User(
        id=UserId(id),
        tenant=TenantId(tenant),
        name=name,
        created_ms=created_ms,
        training=bool(training),
        plan=plan,
        suspended=suspended,
        suspended_until_ms=until_ms,
    )


def api_key(row: Row) -> ApiKey:
    id, owner, prefix, name, scopes, created_ms, expires_ms, revoked_ms, last_used_ms, why = row
    return ApiKey(
        id=KeyId(id),
        user=UserId(owner),
        prefix=prefix,
        name=name,
        scopes=frozenset(map(Scope, scopes.split())),
        created_ms=created_ms,
        expires_ms=expires_ms,
        revoked_ms=revoked_ms,
        last_used_ms=last_used_ms,
        suspended=why,
    )


def conversation(row: Row) -> Conversation:
    id, owner, created_ms, updated_ms, title, metadata, archived_ms, memory, title_made = row
    return Conversation(
        id=ConversationId(id),
        user=UserId(owner),
        created_ms=created_ms,
        updated_ms=updated_ms,
        title=title,
        metadata=from_json(metadata),
        archived_ms=archived_ms,
        memory=None if memory is None else bool(memory),
        title_made=bool(title_made),
    )


def item(row: Row) -> Item:
    id, type, role, status, tokens, created_ms, body = row
    return Item(
        id=ItemId(id),
        type=type,
        body=_decoder.decode(body),
        created_ms=created_ms,
        role=role,
        status=status,
        tokens=tokens,
    )


def items(rows: Iterable[Row]) -> tuple[Item, ...]:
    return tuple(map(item, rows))


def response(row: Row, output: tuple[Item, ...] = ()) -> Response:
    (
        id,
        owner,
        kind,
        model,
        status,
        created_ms,
        metadata,
        conversation_id,
        previous_id,
        background,
        streamed,
        completed_ms,
        incomplete_reason,
        input_tokens,
        cached_tokens,
        output_tokens,
        reasoning_tokens,
        request,
        error,
    ) = row
    return Response(
        id=ResponseId(id),
        user=UserId(owner),
        kind=ResponseKind(kind),
        model=ModelName(model),
        status=ResponseStatus(status),
        created_ms=created_ms,
        request=from_json(request),
        metadata=from_json(metadata),
        conversation=None if conversation_id is None else ConversationId(conversation_id),
        previous=None if previous_id is None else ResponseId(previous_id),
        background=bool(background),
        streamed=bool(streamed),
        completed_ms=completed_ms,
        error=None if error is None else ResponseError(**from_json(error)),
        incomplete_reason=incomplete_reason,
        usage=_usage(input_tokens, cached_tokens, output_tokens, reasoning_tokens),
        output=output,
    )


def error_text(error: ResponseError | None) -> str | None:
    return None if error is None else to_json({"code": error.code, "message": error.message})


def file(row: Row) -> File:
    id, owner, filename, purpose, media_type, size, sha256, created_ms, status, expires_ms = row
    return File(
        id=FileId(id),
        user=UserId(owner),
        filename=filename,
        purpose=purpose,
        media_type=media_type,
        bytes=size,
        sha256=sha256,
        created_ms=created_ms,
        status=FileStatus(status),
        expires_ms=expires_ms,
    )


def feedback(row: Row) -> Feedback:
    id, rating, reason, created_ms = row
    return Feedback(
        response=ResponseId(id), rating=Rating(rating), reason=reason, created_ms=created_ms
    )


def usage_entry(row: Row) -> UsageEntry:
    id, owner, model, reserved_tokens, created_ms, settled_ms, *tokens = row
    return UsageEntry(
        response=ResponseId(id),
        user=UserId(owner),
        model=ModelName(model),
        reserved_tokens=reserved_tokens,
        created_ms=created_ms,
        usage=_usage(*tokens),
        settled_ms=settled_ms,
    )


def _usage(
    input: int | None, cached: int | None, output: int | None, reasoning: int | None
) -> TokenUsage | None:
    if input is None:
        return None
    return TokenUsage(input=input, cached=cached or 0, output=output or 0, reasoning=reasoning or 0)


_MENTIONS = frozenset({"annotations", "results"})
"""Where a file is cited or was found: it is none of the conversation's own for that."""


def file_ids(value: Any) -> Iterator[str]:
    """Whatever a body calls a `file_id`, at any depth, but for what only mentions it."""
    pending = [value]
    while pending:
        match pending.pop():
            case dict() as mapping:
                name = mapping.get("file_id")
                if isinstance(name, str):
                    yield name
                pending.extend(each for key, each in mapping.items() if key not in _MENTIONS)
            case list() as sequence:
                pending.extend(sequence)
            case _:
                pass


def plain(record: Any) -> dict[str, Any]:
    """A record's fields as JSON has them."""
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return fields

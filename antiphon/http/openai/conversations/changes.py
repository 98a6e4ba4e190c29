"""What create, update and branch make of a conversation's own fields. Pure."""

from dataclasses import replace

from msgspec import UNSET

from antiphon.http.openai.bounds import check_length, check_metadata
from antiphon.http.openai.conversations.schema import (
    MAX_TITLE,
    BranchConversation,
    CreateConversation,
    UpdateConversation,
)
from antiphon.ids import UserId, new_conversation_id
from antiphon.records import Conversation


def new_conversation(body: CreateConversation, user: UserId, now_ms: int) -> Conversation:
    """Raises InvalidRequest."""
    check_metadata(body.metadata)
    metadata = body.metadata or {}
    return Conversation(
        id=new_conversation_id(),
        user=user,
        created_ms=now_ms,
        updated_ms=now_ms,
        title=checked_title(body.title) or _title_in(metadata),
        metadata=metadata,
        memory=body.memory,
    )


def updated(old: Conversation, body: UpdateConversation, now_ms: int) -> Conversation:
    """Raises InvalidRequest."""
    new = replace(old, updated_ms=max(now_ms, old.updated_ms))
    if body.metadata is not UNSET:
        check_metadata(body.metadata)
        new = replace(new, metadata=body.metadata or {})
        title = _title_in(new.metadata)
        if title is not None and title != _title_in(old.metadata):
            new = replace(new, title=title)
    if body.title is not UNSET:
        new = replace(new, title=checked_title(body.title))
    if body.archived is not UNSET and body.archived is not None:
        archived_ms = (old.archived_ms or now_ms) if body.archived else None
        new = replace(new, archived_ms=archived_ms)
    if body.memory is not UNSET:
        new = replace(new, memory=body.memory)
    return new


def branch_of(
    old: Conversation, body: BranchConversation, user: UserId, now_ms: int
) -> Conversation:
    """Raises InvalidRequest."""
    check_metadata(body.metadata)
    own = checked_title(body.title)
    return Conversation(
        id=new_conversation_id(),
        user=user,
        created_ms=now_ms,
        updated_ms=now_ms,
        title=own or old.title,
        title_made=own is None and old.title_made,
        metadata=old.metadata if body.metadata is None else body.metadata,
        memory=old.memory,
    )


def checked_title(title: str | None) -> str | None:
    """One that says nothing is none. Raises InvalidRequest."""
    check_length("title", title, MAX_TITLE)
    return (title or "").strip() or None


def _title_in(metadata: dict[str, str]) -> str | None:
    """Where clients that know only OpenAI's fields put it; cut rather than refused, since metadata
    may be longer."""
    return metadata.get("title", "")[:MAX_TITLE].strip() or None

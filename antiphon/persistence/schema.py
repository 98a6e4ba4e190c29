"""The tables, as migrations that only go forward. A migration that was released never changes:
its checksum is in every database that has it.

Written in PostgreSQL's words; `{strict}` and `{clustered}` are what SQLite's tables end with.
What begins with `{only …}` is for the one database alone.
"""

import hashlib
from dataclasses import dataclass

from antiphon.persistence import document_schema

APPLICATION_ID = 0x416E7469
""""Anti": what an SQLite file says that it is."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    statements: tuple[str, ...]

    @property
    def checksum(self) -> str:
        text = ";".join(" ".join(each.split()) for each in self.statements)
        return hashlib.sha256(text.encode()).hexdigest()


_PEOPLE = (
    """CREATE TABLE users (
        id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL,
        created_ms BIGINT NOT NULL, training BIGINT NOT NULL){strict}""",
    """CREATE TABLE api_keys (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id),
        secret_hash TEXT NOT NULL UNIQUE, prefix TEXT NOT NULL, name TEXT NOT NULL,
        scopes TEXT NOT NULL, created_ms BIGINT NOT NULL, expires_ms BIGINT, revoked_ms BIGINT,
        last_used_ms BIGINT){strict}""",
    "CREATE INDEX api_keys_by_user ON api_keys (user_id)",
    "CREATE INDEX api_keys_by_prefix ON api_keys (prefix)",
    # Facts outlive the rows they came from: that there once was a key, for one.
    "CREATE TABLE facts (name TEXT PRIMARY KEY, noted_ms BIGINT NOT NULL){strict}",
)

_CONVERSATIONS = (
    """CREATE TABLE conversations (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), title TEXT,
        title_folded TEXT, metadata TEXT NOT NULL, created_ms BIGINT NOT NULL,
        updated_ms BIGINT NOT NULL, archived_ms BIGINT, next_position BIGINT NOT NULL,
        lock_response TEXT, lock_until_ms BIGINT){strict}""",
    # With the folded title, so that a search reads the index alone.
    """CREATE INDEX conversations_open ON conversations (user_id, updated_ms, id, title_folded)
        WHERE archived_ms IS NULL""",
    """CREATE INDEX conversations_archived ON conversations (user_id, updated_ms, id, title_folded)
        WHERE archived_ms IS NOT NULL""",
    "CREATE INDEX conversations_by_user ON conversations (user_id, id)",
    # `home` is the conversation, or the response where there is none. An item lies in one place.
    """CREATE TABLE items (
        home TEXT NOT NULL, position BIGINT NOT NULL, id TEXT NOT NULL, response_id TEXT,
        direction TEXT, type TEXT NOT NULL, role TEXT, status TEXT, tokens BIGINT,
        created_ms BIGINT NOT NULL, PRIMARY KEY (home, position), UNIQUE (home, id)){clustered}""",
    """CREATE TABLE item_bodies (
        home TEXT NOT NULL, position BIGINT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (home, position),
        FOREIGN KEY (home, position) REFERENCES items (home, position)){clustered}""",
)

_RESPONSES = (
    """CREATE TABLE responses (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), kind TEXT NOT NULL,
        model TEXT NOT NULL, status TEXT NOT NULL, created_ms BIGINT NOT NULL,
        completed_ms BIGINT, conversation_id TEXT REFERENCES conversations (id),
        previous_id TEXT, background BIGINT NOT NULL, streamed BIGINT NOT NULL,
        metadata TEXT NOT NULL, incomplete_reason TEXT, input_tokens BIGINT,
        cached_tokens BIGINT, output_tokens BIGINT, reasoning_tokens BIGINT, home TEXT NOT NULL,
        first_position BIGINT NOT NULL, input_count BIGINT NOT NULL, last_position BIGINT NOT NULL,
        owner TEXT NOT NULL, lease_ms BIGINT NOT NULL, orphaned_ms BIGINT, request_id TEXT,
        retry_fingerprint TEXT, events_kept BIGINT NOT NULL,
        cancel_requested BIGINT NOT NULL){strict}""",
    "CREATE INDEX responses_by_user ON responses (user_id, kind, created_ms, id)",
    """CREATE INDEX responses_by_conversation ON responses (conversation_id, created_ms, id)
        WHERE conversation_id IS NOT NULL""",
    """CREATE INDEX responses_by_previous ON responses (previous_id)
        WHERE previous_id IS NOT NULL""",
    "CREATE INDEX responses_by_lease ON responses (lease_ms) WHERE completed_ms IS NULL",
    "CREATE INDEX responses_by_owner ON responses (owner) WHERE completed_ms IS NULL",
    """CREATE INDEX responses_by_retry ON responses (user_id, retry_fingerprint, created_ms)
        WHERE retry_fingerprint IS NOT NULL""",
    "CREATE INDEX responses_with_events ON responses (completed_ms) WHERE events_kept = 1",
    """CREATE INDEX responses_alone ON responses (completed_ms)
        WHERE conversation_id IS NULL""",
    """CREATE TABLE response_bodies (
        response_id TEXT PRIMARY KEY REFERENCES responses (id), request TEXT NOT NULL,
        error TEXT){strict}""",
    """CREATE TABLE response_events (
        response_id TEXT NOT NULL REFERENCES responses (id), first BIGINT NOT NULL,
        last BIGINT NOT NULL, body BYTEA NOT NULL, PRIMARY KEY (response_id, first)){clustered}""",
    """CREATE TABLE idempotency_claims (
        user_id TEXT NOT NULL REFERENCES users (id), key_hash TEXT NOT NULL,
        fingerprint TEXT NOT NULL, response_id TEXT NOT NULL REFERENCES responses (id)
        DEFERRABLE INITIALLY DEFERRED, created_ms BIGINT NOT NULL,
        PRIMARY KEY (user_id, key_hash)){strict}""",
    "CREATE INDEX idempotency_claims_by_response ON idempotency_claims (response_id)",
    "CREATE INDEX idempotency_claims_by_age ON idempotency_claims (created_ms)",
    """CREATE TABLE feedback (
        response_id TEXT PRIMARY KEY REFERENCES responses (id), rating TEXT NOT NULL, reason TEXT,
        created_ms BIGINT NOT NULL){strict}""",
)

_FILES = (
    """CREATE TABLE files (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), filename TEXT NOT NULL,
        purpose TEXT NOT NULL, media_type TEXT NOT NULL, bytes BIGINT NOT NULL,
        sha256 TEXT NOT NULL, created_ms BIGINT NOT NULL, status TEXT NOT NULL,
        expires_ms BIGINT){strict}""",
    "CREATE INDEX files_by_user ON files (user_id, created_ms, id)",
    "CREATE INDEX files_by_content ON files (sha256)",
    "CREATE INDEX files_by_expiry ON files (expires_ms) WHERE expires_ms IS NOT NULL",
    """CREATE TABLE file_uses (
        file_id TEXT NOT NULL REFERENCES files (id), home TEXT NOT NULL, position BIGINT NOT NULL,
        PRIMARY KEY (file_id, home, position)){strict}""",
    "CREATE INDEX file_uses_by_item ON file_uses (home, position)",
)

_BOOKS = (
    # No reference to responses: a bill outlives what it was for.
    """CREATE TABLE usage_entries (
        response_id TEXT PRIMARY KEY, user_id TEXT, model TEXT NOT NULL,
        reserved_tokens BIGINT NOT NULL, created_ms BIGINT NOT NULL, input_tokens BIGINT,
        cached_tokens BIGINT, output_tokens BIGINT, reasoning_tokens BIGINT,
        settled_ms BIGINT){strict}""",
    "CREATE INDEX usage_entries_by_user ON usage_entries (user_id, created_ms, response_id)",
    """CREATE TABLE inference_traces (
        response_id TEXT PRIMARY KEY REFERENCES responses (id), request_id TEXT NOT NULL,
        model TEXT NOT NULL, prompt_version TEXT, status TEXT NOT NULL, finish TEXT,
        queued_s DOUBLE PRECISION, first_token_s DOUBLE PRECISION, total_s DOUBLE PRECISION,
        input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL,
        created_ms BIGINT NOT NULL){strict}""",
    "CREATE INDEX inference_traces_by_request ON inference_traces (request_id)",
    "CREATE INDEX inference_traces_by_model ON inference_traces (model, status, created_ms)",
    """CREATE INDEX inference_traces_by_prompt
        ON inference_traces (prompt_version, status, created_ms)""",
    "CREATE INDEX inference_traces_by_age ON inference_traces (created_ms)",
    """CREATE TABLE policy_events (
        id TEXT PRIMARY KEY, request_id TEXT NOT NULL, response_id TEXT REFERENCES responses (id),
        rule TEXT NOT NULL, action TEXT NOT NULL, stage TEXT NOT NULL,
        created_ms BIGINT NOT NULL){strict}""",
    "CREATE INDEX policy_events_by_request ON policy_events (request_id)",
    "CREATE INDEX policy_events_by_response ON policy_events (response_id)",
    """CREATE TABLE deletion_receipts (
        id TEXT PRIMARY KEY, subject TEXT NOT NULL, deleted_ms BIGINT NOT NULL,
        removed TEXT NOT NULL, contents TEXT NOT NULL){strict}""",
)

_QUOTAS = (
    "ALTER TABLE users ADD COLUMN plan TEXT",
    "ALTER TABLE users ADD COLUMN suspended TEXT",
    "ALTER TABLE api_keys ADD COLUMN suspended TEXT",
    # Of a bill that is counted by a limit, and of one that belongs to no stored response.
    "ALTER TABLE usage_entries ADD COLUMN reserved_ms BIGINT",
    "ALTER TABLE usage_entries ADD COLUMN owner TEXT",
    "ALTER TABLE usage_entries ADD COLUMN lease_ms BIGINT",
    "CREATE INDEX usage_entries_by_lease ON usage_entries (lease_ms) WHERE settled_ms IS NULL",
    """CREATE INDEX usage_entries_by_settlement ON usage_entries (settled_ms, response_id)
        WHERE settled_ms IS NOT NULL""",
    """CREATE TABLE user_quotas (
        user_id TEXT PRIMARY KEY REFERENCES users (id), windows TEXT NOT NULL,
        running BIGINT NOT NULL){strict}""",
)

_POLICY = (
    # Without a version: written before there were rules.
    "ALTER TABLE policy_events ADD COLUMN version TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE policy_events ADD COLUMN shadow BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE policy_events ADD COLUMN user_id TEXT REFERENCES users (id)",
    "ALTER TABLE policy_events ADD COLUMN detail TEXT",
    "ALTER TABLE policy_events ADD COLUMN text TEXT",
    "CREATE INDEX policy_events_by_user ON policy_events (user_id, created_ms, id)",
    "CREATE INDEX policy_events_by_rule ON policy_events (rule, created_ms, id)",
    "CREATE INDEX policy_events_by_age ON policy_events (created_ms, id)",
)

_CONTEXT = (
    "ALTER TABLE conversations ADD COLUMN memory BIGINT",
    # 1 of a title that was made of what was said, which goes with that.
    "ALTER TABLE conversations ADD COLUMN title_made BIGINT",
    # The last item that it covers is there as long as it is: deleting one takes it along.
    """CREATE TABLE summaries (
        conversation_id TEXT PRIMARY KEY REFERENCES conversations (id),
        until_position BIGINT NOT NULL, items BIGINT NOT NULL, tokens BIGINT NOT NULL,
        text TEXT NOT NULL, made_by TEXT NOT NULL, created_ms BIGINT NOT NULL){strict}""",
    """CREATE TABLE memories (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), text TEXT NOT NULL,
        text_hash TEXT NOT NULL, origin TEXT NOT NULL,
        conversation_id TEXT REFERENCES conversations (id), item_id TEXT,
        created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL,
        UNIQUE (user_id, text_hash)){strict}""",
    "CREATE INDEX memories_by_user ON memories (user_id, created_ms, id)",
    """CREATE INDEX memories_by_item ON memories (conversation_id, item_id)
        WHERE conversation_id IS NOT NULL""",
    # Everywhere that it was said: it goes with the last of them.
    """CREATE TABLE memory_sources (
        memory_id TEXT NOT NULL REFERENCES memories (id),
        conversation_id TEXT NOT NULL REFERENCES conversations (id), item_id TEXT NOT NULL,
        PRIMARY KEY (memory_id, conversation_id, item_id)){clustered}""",
    "CREATE INDEX memory_sources_by_item ON memory_sources (conversation_id, item_id)",
    """CREATE TABLE forgotten_memories (
        conversation_id TEXT NOT NULL REFERENCES conversations (id), item_id TEXT NOT NULL,
        text_hash TEXT NOT NULL, PRIMARY KEY (conversation_id, item_id, text_hash)){clustered}""",
    # `due_ms` is NULL where nothing is to be done; the row stays, with what is known of the past.
    """CREATE TABLE context_work (
        conversation_id TEXT PRIMARY KEY REFERENCES conversations (id), mark BIGINT NOT NULL,
        attempts BIGINT NOT NULL, due_ms BIGINT, owner TEXT, lease_ms BIGINT,
        remembered_position BIGINT){strict}""",
    """CREATE INDEX context_work_by_due ON context_work (due_ms, conversation_id)
        WHERE due_ms IS NOT NULL""",
    """CREATE TABLE prompt_versions (
        name TEXT NOT NULL, version BIGINT NOT NULL, text TEXT NOT NULL, note TEXT NOT NULL,
        created_ms BIGINT NOT NULL, PRIMARY KEY (name, version)){strict}""",
    """CREATE TABLE prompt_activations (
        name TEXT NOT NULL, number BIGINT NOT NULL, arms TEXT NOT NULL,
        created_ms BIGINT NOT NULL, PRIMARY KEY (name, number)){strict}""",
)

MIGRATIONS = (
    Migration(1, "first", _PEOPLE + _CONVERSATIONS + _RESPONSES + _FILES + _BOOKS),
    # A request may name an item by its id alone.
    Migration(2, "items_by_id", ("CREATE INDEX items_by_id ON items (id)",)),
    Migration(3, "quotas", _QUOTAS),
    # A suspension that ends by itself.
    Migration(
        4,
        "suspension_ends",
        (
            "ALTER TABLE users ADD COLUMN suspended_until_ms BIGINT",
            """CREATE INDEX users_by_suspension ON users (suspended_until_ms)
                WHERE suspended_until_ms IS NOT NULL""",
        ),
    ),
    Migration(5, "policy", _POLICY),
    Migration(6, "context", _CONTEXT),
    Migration(7, "documents", document_schema.STATEMENTS),
    Migration(8, "removals", document_schema.REMOVALS),
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the transfer and the checks see it: its columns in order, its key first to
    last."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


def _table(name: str, key: str, rest: str) -> Table:
    keys = tuple(key.split())
    return Table(name, (*keys, *rest.split()), keys)


TABLES = (
    _table("users", "id", "tenant name created_ms training plan suspended suspended_until_ms"),
    _table(
        "api_keys",
        "id",
        "user_id secret_hash prefix name scopes created_ms expires_ms revoked_ms last_used_ms "
        "suspended",
    ),
    _table("facts", "name", "noted_ms"),
    _table(
        "conversations",
        "id",
        "user_id title title_folded metadata created_ms updated_ms archived_ms next_position "
        "lock_response lock_until_ms memory title_made",
    ),
    _table(
        "items",
        "home position",
        "id response_id direction type role status tokens created_ms",
    ),
    _table("item_bodies", "home position", "body"),
    _table("summaries", "conversation_id", "until_position items tokens text made_by created_ms"),
    _table(
        "memories",
        "id",
        "user_id text text_hash origin conversation_id item_id created_ms updated_ms",
    ),
    _table("memory_sources", "memory_id conversation_id item_id", ""),
    _table("forgotten_memories", "conversation_id item_id text_hash", ""),
    _table(
        "context_work",
        "conversation_id",
        "mark attempts due_ms owner lease_ms remembered_position",
    ),
    _table("prompt_versions", "name version", "text note created_ms"),
    _table("prompt_activations", "name number", "arms created_ms"),
    _table(
        "responses",
        "id",
        "user_id kind model status created_ms completed_ms conversation_id previous_id background "
        "streamed metadata incomplete_reason input_tokens cached_tokens output_tokens "
        "reasoning_tokens home first_position input_count last_position owner lease_ms orphaned_ms "
        "request_id retry_fingerprint events_kept cancel_requested",
    ),
    _table("response_bodies", "response_id", "request error"),
    _table("response_events", "response_id first", "last body"),
    _table("idempotency_claims", "user_id key_hash", "fingerprint response_id created_ms"),
    _table("feedback", "response_id", "rating reason created_ms"),
    _table(
        "files",
        "id",
        "user_id filename purpose media_type bytes sha256 created_ms status expires_ms",
    ),
    _table("file_uses", "file_id home position", ""),
    _table("counters", "name", "value"),
    _table(
        "vector_stores",
        "id",
        "user_id name description metadata created_ms last_active_ms expires_after_days "
        "expires_ms expired revision",
    ),
    _table("file_batches", "id", "store_id created_ms cancelled"),
    _table(
        "documents",
        "id",
        "number user_id sha256 kind max_tokens overlap_tokens status progress failure_code "
        "failure_message title media_type pages characters chunks words notices usage_bytes "
        "extractor model revision created_ms priority due_ms attempts owner lease_ms",
    ),
    _table(
        "vector_store_files",
        "store_id file_id",
        "document_id batch_id attributes max_tokens overlap_tokens created_ms",
    ),
    _table("file_documents", "file_id document_id", ""),
    _table("document_texts", "document_id", "headings page_starts text"),
    _table("document_vectors", "document_id", "vectors"),
    _table("removed_documents", "number", ""),
    _table("chunks", "place", "page headings starts ends text"),
    _table("chunk_words", "place", "length repeated words"),
    _table(
        "usage_entries",
        "response_id",
        "user_id model reserved_tokens created_ms input_tokens cached_tokens output_tokens "
        "reasoning_tokens settled_ms reserved_ms owner lease_ms",
    ),
    _table("user_quotas", "user_id", "windows running"),
    _table(
        "inference_traces",
        "response_id",
        "request_id model prompt_version status finish queued_s first_token_s total_s input_tokens "
        "output_tokens created_ms",
    ),
    _table(
        "policy_events",
        "id",
        "request_id response_id rule action stage created_ms version shadow user_id detail text",
    ),
    _table("deletion_receipts", "id", "subject deleted_ms removed contents"),
)
"""Each after those that it refers to."""

"""The settings of the server around its engines: the sections `queue`, `generation`, `http`,
`database`, `retention` and `shutdown`, read and checked by `settings`."""

from typing import Literal

import msgspec


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much may wait for a slot, in each lane, before the answer is 503."""

    max_requests: int = 256
    max_tokens: int = 262_144
    """Prompt plus longest answer of all that waits, in tokens."""
    deadline_s: float = 60.0
    """A request that waited this long is refused; SDKs give up or retry about then."""


class GenerationSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds on one answer."""

    default_max_tokens: int = 1024
    """The longest answer when a client names none: KV is reserved for it, so "to the end of the
    window" would let
    one silent client take the room of many."""
    max_choices: int = 16
    turn_deadline_s: float = 900.0
    """A backstop, so that no turn outlives every client's patience."""


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The API listener's patience, in seconds and bytes."""

    max_body_bytes: int = 8 * 1024 * 1024
    max_file_bytes: int = 64 * 1024 * 1024
    """An uploaded file goes to the disk as it comes, so this bounds disk and not memory."""
    body_timeout_s: float = 30.0
    idle_timeout_s: float = 15.0
    """A connection without a request, or one that dribbles its headers, is closed after this."""
    write_timeout_s: float = 10.0
    """A reader that takes nothing for this long is dropped."""
    heartbeat_s: float = 5.0
    """A comment line while a stream has nothing to say; proxies cut silent ones after 30 to 60
    s."""
    headers_after_s: float = 5.0
    """A stream's headers wait for its first event, so that a refusal has a real status, but no
    longer than this."""
    max_connections: int = 1024


class DatabaseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where conversations, keys and usage are kept, and how long anybody waits for it."""

    url: str | None = None
    """`postgresql://user:password@host/name`; without one, SQLite in a file under `data_dir`."""
    durability: Literal["normal", "full"] = "normal"
    """Of SQLite: after a power cut, `normal` may have lost the last moments, but is whole; `full`
    waits for the disk at every write. A crash of the server loses nothing in either. PostgreSQL
    has `synchronous_commit` for this."""
    deadline_s: float = 10.0
    """One operation, its waiting included, is given up after this."""
    start_wait_s: float = 60.0
    """How long the start waits for a PostgreSQL that doesn't answer yet."""
    concurrency: int = 8
    """Operations at once, and connections to PostgreSQL. SQLite writes one after another."""

    def __repr__(self) -> str:
        """Without the address, which may hold a password."""
        place = "SQLite" if self.url is None else "PostgreSQL"
        return f"DatabaseSettings({place}, deadline_s={self.deadline_s!r})"


class RetentionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many days what is stored is kept after its end; 0 is until somebody deletes it. Texts and
    figures each have their own. Usage is kept, without text."""

    claims_days: float = 1.0
    """Idempotency keys: no client repeats a request after a day."""
    events_days: float = 30.0
    """A stream that ended can be watched again, event by event, for this long; its text stays."""
    responses_days: float = 0.0
    """Responses in no conversation, with their texts; OpenAI keeps them for 30 days."""
    traces_days: float = 90.0
    """When and how fast: no text."""


class ShutdownSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long the server takes to stop."""

    drain_s: float = 20.0
    """Streams may run on for this long after SIGTERM."""
    budget_s: float = 30.0
    """The whole ordered stop; must be longer than the drain."""

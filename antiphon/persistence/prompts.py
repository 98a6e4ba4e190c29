"""Units of work on system prompts, which are the operator's and the same for all users: versions
that never change, and which of them were in force since when."""

from antiphon.context_records import PromptActivation, PromptVersion
from antiphon.errors import RecordNotFound
from antiphon.persistence import codec
from antiphon.persistence.port import Row, Transaction, statement

# Of two that take the same number, one waits for the other's commit, and takes the next.
_ADD = statement(
    "prompts.add",
    """INSERT INTO prompt_versions (name, version, text, note, created_ms)
        SELECT CAST($1 AS TEXT), COALESCE(MAX(version), 0) + 1, CAST($2 AS TEXT),
            CAST($3 AS TEXT), CAST($4 AS BIGINT) FROM prompt_versions WHERE name = $1
        ON CONFLICT (name, version) DO NOTHING RETURNING version""",
)
_ACTIVATE = statement(
    "prompts.activate",
    """INSERT INTO prompt_activations (name, number, arms, created_ms)
        SELECT CAST($1 AS TEXT), COALESCE(MAX(number), 0) + 1, CAST($2 AS TEXT),
            CAST($3 AS BIGINT) FROM prompt_activations WHERE name = $1
        ON CONFLICT (name, number) DO NOTHING RETURNING number""",
)
_VERSIONS = "SELECT name, version, text, note, created_ms FROM prompt_versions"
_ALL_VERSIONS = statement("prompts.versions", f"{_VERSIONS} ORDER BY name, version")
_VERSIONS_OF = statement(
    "prompts.versions_of", f"{_VERSIONS} WHERE name = $1 ORDER BY name, version"
)
_THERE = statement(
    "prompts.there", "SELECT version FROM prompt_versions WHERE name = $1 AND version = ANY($2)"
)
_ACTIVATIONS = "SELECT name, number, arms, created_ms FROM prompt_activations"
_ALL_ACTIVATIONS = statement("prompts.activations", f"{_ACTIVATIONS} ORDER BY name, number DESC")
_ACTIVATIONS_OF = statement(
    "prompts.activations_of", f"{_ACTIVATIONS} WHERE name = $1 ORDER BY number DESC"
)


async def add(tx: Transaction, name: str, text: str, note: str, now_ms: int) -> PromptVersion:
    while (row := await tx.fetchrow(_ADD, name, text, note, now_ms)) is None:
        pass
    return PromptVersion(name=name, version=row[0], text=text, note=note, created_ms=now_ms)


async def versions(tx: Transaction, name: str | None) -> tuple[PromptVersion, ...]:
    rows = await (tx.fetch(_ALL_VERSIONS) if name is None else tx.fetch(_VERSIONS_OF, name))
    return tuple(map(_version, rows))


async def activate(
    tx: Transaction, name: str, arms: dict[int, float], now_ms: int
) -> PromptActivation:
    """Raises RecordNotFound for a version that isn't there."""
    there = {row[0] for row in await tx.fetch(_THERE, name, sorted(arms))}
    for version in sorted(arms.keys() - there):
        raise RecordNotFound("prompt version", f"{name}@{version}")
    while (row := await tx.fetchrow(_ACTIVATE, name, codec.to_json(arms), now_ms)) is None:
        pass
    return PromptActivation(name=name, number=row[0], arms=arms, created_ms=now_ms)


async def activations(tx: Transaction, name: str | None) -> tuple[PromptActivation, ...]:
    rows = await (tx.fetch(_ALL_ACTIVATIONS) if name is None else tx.fetch(_ACTIVATIONS_OF, name))
    return tuple(map(_activation, rows))


def _version(row: Row) -> PromptVersion:
    name, version, text, note, created_ms = row
    return PromptVersion(name=name, version=version, text=text, note=note, created_ms=created_ms)


def _activation(row: Row) -> PromptActivation:
    name, number, arms, created_ms = row
    shares = {int(version): share for version, share in codec.from_json(arms).items()}
    return PromptActivation(name=name, number=number, arms=shares, created_ms=created_ms)

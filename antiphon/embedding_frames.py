"""What the server and its embedding process say to each other: the frames of that contract.

The process keeps vectors by set and file, and no text. It is told what is in a set; it never asks.
"""

import msgspec

MODEL = "all-minilm-l6-v2-int8"
"""What makes the vectors. Another name makes those that are stored worthless."""
DIMENSIONS = 384
BYTES_PER_VECTOR = 2 * DIMENSIONS
"""In half precision, which changes no order that anybody would notice."""

# ── server → process ─────────────────────────────────────────────────────────────────────────────


class Passages(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="passages"):
    """Embed these, behind everything else. Answered by Embedded, or Refused."""

    number: int
    texts: tuple[str, ...]


class Nearest(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="nearest"):
    """Find the chunks in these sets, by key and revision, that are nearest to the question; with
    `only`, of these files. Answered by Found; by Missing when a set is not there in that revision;
    by Refused."""

    number: int
    question: str
    scopes: tuple[tuple[str, int], ...]
    limit: int
    only: tuple[str, ...] | None = None


class Put(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="put"):
    """Vectors of a file in a set, from the chunk of that number on; from 0, they take the place of
    what there was. `edition` is another one whenever the file's vectors are; the file counts as
    being there when it has had its last ones."""

    key: str
    file: str
    edition: str
    first: int
    vectors: bytes
    last: bool


class Drop(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="drop"):
    """These files are no more in the set."""

    key: str
    files: tuple[str, ...]


class Settle(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="settle"):
    """The set is whole now, in this revision."""

    key: str
    revision: int


class HaltEmbedder(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="halt"):
    """End in order."""


EmbedderCommand = Passages | Nearest | Put | Drop | Settle | HaltEmbedder

# ── process → server ─────────────────────────────────────────────────────────────────────────────


class EmbedderReady(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="ready"):
    """The first frame: the model is loaded."""

    pid: int


class Embedded(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="embedded"):
    """The passages' vectors, one after the other."""

    number: int
    vectors: bytes


class Found(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="found"):
    """File, number and similarity of each, the nearest first."""

    number: int
    neighbours: tuple[tuple[str, int, float], ...]


class Missing(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="missing"):
    """Of these sets, by key, only these files are there, each in its edition: none where nothing
    is known."""

    number: int
    known: dict[str, dict[str, str]]


class Refused(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="refused"):
    """There is no answer, and why."""

    number: int
    problem: str


class EmbedderBeat(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="beat"):
    """Said when it has had nothing else to say for a second: it lives."""


EmbedderFrame = EmbedderReady | Embedded | Found | Missing | Refused | EmbedderBeat

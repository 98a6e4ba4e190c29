"""A model that is ready to be served: its folder, and the manifest that describes and seals it.

A folder without a manifest of this format whose files all match is not a model. Knows nothing of
how it was made.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from antiphon.errors import ModelDamaged
from antiphon.ids import ModelName
from antiphon.ports import SamplingDefaults

MANIFEST = "antiphon.json"
FORMAT = 2
"""Raised whenever what a prepared folder holds changes: older ones are prepared again."""
_ALWAYS_HASH_BELOW = 512 * 1024 * 1024
"""Half a gigabyte is read in about a second; a larger file is read again only when its size or
time changed."""


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file as it was when it was recorded. The time only decides whether to read it again."""

    size: int
    mtime_ns: int
    sha256: str


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the server must know of a model beside its files; token numbers are vocabulary ids."""

    window: int
    bos_token: str | None
    eos_token: str | None
    stop_tokens: list[int]
    special_tokens: list[int]
    sampling: SamplingDefaults = SamplingDefaults()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What `antiphon.json` says; `source` is the catalogue name or absolute path it was made
    from."""

    format: int
    name: str
    source: str
    source_files: dict[str, StoredFile]
    facts: Facts
    created: int
    files: dict[str, StoredFile]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedModel:
    """A whole model folder: OpenVINO model, tokenizer and detokenizer, `tokenizer.json`,
    `chat_template.jinja`.

    `stop_tokens` end a generation (never empty); `special_tokens` must never appear as text.
    `created` is a Unix time in seconds.
    """

    name: ModelName
    folder: Path
    source: str
    window: int
    stop_tokens: tuple[int, ...]
    special_tokens: tuple[int, ...]
    sampling: SamplingDefaults
    created: int

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.folder.iterdir())


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest, or None where there is none that this version understands."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None
    return manifest if manifest.format == FORMAT else None


def seal(folder: Path, manifest: Manifest) -> None:
    """Write the manifest: the last thing that happens to a folder before it gets its real name."""
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    (folder / MANIFEST).write_bytes(encoded)


def opened(folder: Path, manifest: Manifest) -> PreparedModel:
    facts = manifest.facts
    return PreparedModel(
        name=ModelName(manifest.name),
        folder=folder,
        source=manifest.source,
        window=facts.window,
        stop_tokens=tuple(facts.stop_tokens),
        special_tokens=tuple(facts.special_tokens),
        sampling=facts.sampling,
        created=manifest.created,
    )


def record(path: Path) -> StoredFile:
    """Read a file and remember it."""
    stat = path.stat()
    return StoredFile(size=stat.st_size, mtime_ns=stat.st_mtime_ns, sha256=sha256_of(path))


def verify(folder: Path, files: dict[str, StoredFile]) -> Iterator[ModelDamaged]:
    """Every file that is missing or not what was recorded."""
    for name, stored in files.items():
        path = folder / name
        actual = unchanged_sha256(path, stored)
        if actual != stored.sha256:
            yield ModelDamaged(path, stored.sha256, actual or "of nothing: it is missing")


def unchanged_sha256(path: Path, stored: StoredFile) -> str | None:
    """The file's SHA-256, taken from the record where a large file looks untouched; None where
    unreadable."""
    try:
        stat = path.stat()
        untouched = (stat.st_size, stat.st_mtime_ns) == (stored.size, stored.mtime_ns)
        if untouched and stored.size >= _ALWAYS_HASH_BELOW:
            return stored.sha256
        return sha256_of(path)
    except OSError:
        return None


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

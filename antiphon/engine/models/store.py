"""The model store: a reference goes in, a prepared folder comes out, whole or not at all.

Everything is made in a folder with a temporary name and renamed when it is whole and sealed. A lock
file lets one process at a time make something; whoever has it may sweep the leftovers of the dead.
"""

import fcntl
import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import assert_never

import msgspec
import structlog

from antiphon.engine.models import makers
from antiphon.engine.models.catalogue import CATALOGUE, CatalogueModel
from antiphon.engine.models.fetch import fetch
from antiphon.engine.models.prepared import (
    FORMAT,
    Facts,
    Manifest,
    PreparedModel,
    StoredFile,
    opened,
    read_manifest,
    record,
    seal,
    sha256_of,
    unchanged_sha256,
    verify,
)
from antiphon.engine.models.progress import Progress
from antiphon.engine.models.references import (
    CheckpointFolder,
    GgufFile,
    IrFolder,
    Source,
    resolve,
)
from antiphon.errors import ModelDamaged, ModelFetchFailed, ModelStoreFailed

log = structlog.get_logger(__name__)

_TEMPORARY = ".tmp-"


class ModelStore:
    """The prepared models under `data_dir/models`. Blocking: used before Trio starts."""

    def __init__(self, data_dir: Path) -> None:
        self._root = data_dir / "models"
        self._downloads = self._root / "downloads"

    def ensure(self, reference: str, progress: Progress) -> PreparedModel:
        """The prepared model, fetched and prepared first where needed. Raises ModelError."""
        source = resolve(reference)
        try:
            whole = self._whole(source)
            if whole is not None and self._damage_of_download(source) is None:
                return whole
            with self._locked(progress):
                return self._repair_or_make(reference, source, progress)
        except OSError as error:
            reason = f"{error.strerror}: {error.filename}" if error.filename else str(error)
            raise ModelStoreFailed(self._root, reason) from error

    def find(self, reference: str) -> PreparedModel | None:
        """The prepared model if it is in the cache and whole; changes nothing. Raises
        ModelError."""
        return self._whole(resolve(reference))

    def prepared(self) -> tuple[PreparedModel, ...]:
        """Every prepared model in the cache, not verified."""
        return tuple(opened(folder, manifest) for folder, manifest in self._sealed())

    def _sealed(self) -> Iterator[tuple[Path, Manifest]]:
        for folder in sorted(self._root.glob("*/")):
            manifest = None if folder.name.startswith(_TEMPORARY) else read_manifest(folder)
            if manifest is not None:
                yield folder, manifest

    def _whole(self, source: Source, *, report: bool = False) -> PreparedModel | None:
        for folder, manifest in self._sealed():
            if manifest.source == _key(source) and _made_from(source, manifest):
                damages = list(verify(folder, manifest.files))
                if not damages:
                    return opened(folder, manifest)
                if report:
                    for damage in damages:
                        _report(damage)
        return None

    def _repair_or_make(self, reference: str, source: Source, progress: Progress) -> PreparedModel:
        self._sweep()
        # Another process may have made it while this one waited for the lock.
        whole = self._whole(source, report=True)
        if whole is None:
            return self._make(reference, source, progress)
        if isinstance(source, CatalogueModel):
            try:
                self._downloaded(source, progress)
            except ModelFetchFailed as error:
                # The prepared folder is all that serving needs.
                log.warning("model_fetch_failed", model=source.name, reason=error.reason)
        return whole

    def _make(self, reference: str, source: Source, progress: Progress) -> PreparedModel:
        log.info("model_prepare_started", model=source.name, source=_key(source))
        with self._scratch() as scratch:
            folder = scratch / "model"
            folder.mkdir()
            match source:
                case CatalogueModel():
                    origin = self._downloaded(source, progress)
                    facts = makers.from_gguf(reference, origin, folder, progress)
                case GgufFile(path=origin):
                    facts = makers.from_gguf(reference, origin, folder, progress)
                case IrFolder(path=origin):
                    facts = makers.from_ir(reference, origin, folder, progress)
                case CheckpointFolder(path=origin):
                    facts = makers.from_checkpoint(reference, origin, folder, progress)
                case _:
                    assert_never(source)
            origins = _record_all(origin)
            manifest = Manifest(
                format=FORMAT,
                name=source.name,
                source=_key(source),
                source_files=origins,
                facts=_advised(facts, origins),
                created=int(time.time()),
                # What is only linked is the source's, and is checked there.
                files={p.name: record(p) for p in folder.iterdir() if not p.is_symlink()},
            )
            seal(folder, manifest)
            target = self._root / f"{_slug(source.name)}-{_digest(origins)[:12]}"
            if target.exists():
                target.rename(scratch / "replaced")
            folder.rename(target)
        log.info("model_prepared", model=source.name, folder=str(target))
        return opened(target, manifest)

    def _downloaded(self, model: CatalogueModel, progress: Progress) -> Path:
        """The catalogue model's GGUF file: kept, so that a repair needs no network."""
        damage = self._damage_of_download(model)
        path = self._downloads / model.file_name
        if damage is not None:
            _report(damage)
            path.unlink()
        if not path.exists():
            with self._scratch() as scratch:
                fetch(model, path, scratch, progress)
        return path

    def _damage_of_download(self, source: Source) -> ModelDamaged | None:
        if not isinstance(source, CatalogueModel):
            return None
        path = self._downloads / source.file_name
        if not path.exists():
            return None
        actual = sha256_of(path)
        return None if actual == source.sha256 else ModelDamaged(path, source.sha256, actual)

    @contextmanager
    def _locked(self, progress: Progress) -> Iterator[None]:
        self._root.mkdir(parents=True, exist_ok=True)
        with (self._root / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress.note("waiting for another process that is preparing a model")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A folder that is gone afterwards; one that a killed process left is swept by the next."""
        folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=self._root))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _sweep(self) -> None:
        for leftover in self._root.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(leftover, ignore_errors=True)
            log.info("model_leftover_removed", folder=str(leftover))


def _key(source: Source) -> str:
    return source.name if isinstance(source, CatalogueModel) else str(source.path)


def _made_from(source: Source, manifest: Manifest) -> bool:
    """Whether the source still is, byte for byte, what the manifest was made from."""
    if isinstance(source, CatalogueModel):
        return [stored.sha256 for stored in manifest.source_files.values()] == [source.sha256]
    if isinstance(source, GgufFile):
        files = {source.path.name: source.path}
    else:
        files = _files_in(source.path)
    return files.keys() == manifest.source_files.keys() and all(
        unchanged_sha256(files[name], stored) == stored.sha256
        for name, stored in manifest.source_files.items()
    )


def _record_all(origin: Path) -> dict[str, StoredFile]:
    files = _files_in(origin) if origin.is_dir() else {origin.name: origin}
    return {name: record(path) for name, path in files.items()}


def _files_in(folder: Path) -> dict[str, Path]:
    """The files that make a model; a README or a `.git` beside them is nobody's business."""
    return {
        path.name: path
        for path in sorted(folder.iterdir())
        if path.is_file()
        and path.suffix in {".json", ".jinja", ".xml", ".bin", ".safetensors", ".model"}
    }


def _digest(files: dict[str, StoredFile]) -> str:
    """The content of a source, whatever its files are called when it is a single one."""
    if len(files) == 1:
        return next(iter(files.values())).sha256
    lines = "".join(f"{name} {stored.sha256}\n" for name, stored in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _advised(facts: Facts, origins: dict[str, StoredFile]) -> Facts:
    """A catalogue model keeps its card's sampling defaults, also when it comes as a path."""
    digest = _digest(origins)
    for model in CATALOGUE.values():
        if model.sha256 == digest:
            return msgspec.structs.replace(facts, sampling=model.sampling)
    return facts


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).lstrip(".") or "model"


def _report(damage: ModelDamaged) -> None:
    log.warning(
        "model_damaged",
        path=str(damage.path),
        expected_sha256=damage.expected_sha256,
        actual_sha256=damage.actual_sha256,
    )

"""Removing the contents of files that no record names any more: at once after a deletion, and by a
sweep for what a crash left behind."""

from collections.abc import Iterable
from functools import partial

import structlog

from antiphon.errors import StoreError
from antiphon.ports import Contents
from antiphon.storage import Store, StoreAccess

log = structlog.get_logger(__name__)

SWEEP_AFTER_MS = 3_600_000
"""An upload writes its record seconds after its content; an hour later none will come."""
_BATCH = 200


async def discard(store: StoreAccess, contents: Contents, hashes: Iterable[str]) -> tuple[str, ...]:
    """Remove those that no record names, after their records were deleted; what was removed. What
    the disk or the database refuses is left to the sweep: the deletion itself stands."""
    removed = []
    for sha256 in hashes:
        try:
            if await contents.remove(sha256, partial(_is_unused, store, sha256)):
                removed.append(sha256)
        except StoreError as error:
            log.warning("removal_postponed", sha256=sha256, error=str(error))
    return tuple(removed)


async def sweep(store: StoreAccess, contents: Contents, now_ms: int) -> tuple[str, ...]:
    """Remove contents without a record; what was removed. Raises StoreError."""
    old = await contents.older_than(now_ms - SWEEP_AFTER_MS)
    removed: list[str] = []
    for start in range(0, len(old), _BATCH):
        batch = old[start : start + _BATCH]
        unused = await store.run(partial(_unused, batch))
        removed += await discard(store, contents, unused)
    return tuple(removed)


async def _unused(hashes: tuple[str, ...], store: Store) -> tuple[str, ...]:
    return await store.unused_contents(hashes)


async def _is_unused(store: StoreAccess, sha256: str) -> bool:
    return bool(await store.run(partial(_unused, (sha256,))))

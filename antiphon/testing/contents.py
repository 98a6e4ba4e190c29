"""Files' contents where there are none, for what must run on a clock that jumps: the real folder
works in threads."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from antiphon.ports import ContentDraft, ContentReader


class NoContents:
    """Keeps nothing, and takes nothing."""

    async def prepare(self) -> int:
        return 0

    async def draft(self) -> ContentDraft:
        raise NotImplementedError

    async def open(self, sha256: str) -> ContentReader | None:
        return None

    def path(self, sha256: str) -> Path:
        return Path(os.devnull)

    async def remove(self, sha256: str, is_unused: Callable[[], Awaitable[bool]]) -> bool:
        return False

    async def older_than(self, before_ms: int) -> tuple[str, ...]:
        return ()

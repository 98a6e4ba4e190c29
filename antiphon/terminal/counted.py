"""A file that tells how much of it was read, so that somebody can watch it leave."""

import io
from collections.abc import Callable
from pathlib import Path


class CountedFile(io.BufferedReader):
    """Raises OSError where it can't be read."""

    def __init__(self, path: Path, told: Callable[[int], None]) -> None:
        super().__init__(io.FileIO(path))
        self._told = told

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self._told(len(data))
        return data

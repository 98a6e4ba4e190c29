"""An embedder that looks at nothing twice: sentences of the same documents come again and again."""

from collections.abc import Sequence

from antiphon.classifier.embedder import Embedder
from antiphon.classifier.linear import Floats


class Remembering:
    """Gives the very vectors of the embedder inside it."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._seen: dict[tuple[tuple[int, ...], ...], Floats] = {}

    def windows(self, text: str) -> list[list[int]]:
        return self._inner.windows(text)

    def vector(self, windows: Sequence[Sequence[int]]) -> Floats:
        key = tuple(map(tuple, windows))
        if key not in self._seen:
            self._seen[key] = self._inner.vector(windows)
        return self._seen[key]

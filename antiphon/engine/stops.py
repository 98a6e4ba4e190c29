"""Stop strings in a stream of text: what can't become part of one leaves, a stop string never does.

The result doesn't depend on how the text is cut into pieces. Pure.
"""

from collections.abc import Sequence


class StopFilter:
    """Holds back the longest end of the text that a stop string may still begin with.

    Of several stop strings the one complete first wins, and of those complete at once the longest.
    """

    __slots__ = ("_held", "_stops", "hit")

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.hit = False
        """A stop string was found; nothing leaves after what `push` returned then."""

    def push(self, text: str) -> str:
        """The text that may leave now."""
        if self.hit:
            return ""
        if not self._stops:
            return text
        text = self._held + text
        if (cut := self._found(text)) is not None:
            self.hit = True
            self._held = ""
            return text[:cut]
        keep = self._may_begin(text)
        self._held = text[keep:]
        return text[:keep]

    def flush(self) -> str:
        """What was held back, now that no more text comes."""
        held, self._held = self._held, ""
        return held

    def _found(self, text: str) -> int | None:
        best: tuple[int, int] | None = None
        for stop in self._stops:
            start = text.find(stop)
            if start != -1 and (best is None or (start + len(stop), start) < best):
                best = (start + len(stop), start)
        return None if best is None else best[1]

    def _may_begin(self, text: str) -> int:
        """Where the longest end of `text` begins that is also the beginning of a stop string."""
        keep = len(text)
        for stop in self._stops:
            start = text.find(stop[0], max(0, len(text) - len(stop) + 1), keep)
            while start != -1:
                if stop.startswith(text[start:]):
                    keep = start
                    break
                start = text.find(stop[0], start + 1, keep)
        return keep

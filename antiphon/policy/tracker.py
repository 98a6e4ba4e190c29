"""What looks for matches in a text that comes in pieces, as a window sees it."""

from collections.abc import Sequence
from typing import Protocol

from antiphon.verdicts import Finding


class Tracker(Protocol):
    """Positions are characters of the text as it was generated, from 0.

    However the text is cut into pieces, the findings are the same, in the same places. A block may
    be said as soon as one match of it is complete. Any other finding is said once no match that is
    still possible begins at or before its start, and is held until then.
    """

    def feed(self, text: str) -> Sequence[Finding]:
        """The next piece; what became certain with it."""

    def finish(self) -> Sequence[Finding]:
        """There is no more: whatever was still possible is decided."""

    @property
    def held_from(self) -> int:
        """No match that is still possible, and that would change the text, begins before this;
        as many characters as were fed, where nothing is possible."""

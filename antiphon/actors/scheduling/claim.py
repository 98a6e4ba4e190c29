"""KV blocks that are kept for a ticket which has aged and doesn't fit: small ones may pass it until
then, and from then on only where that doesn't make it wait for longer."""

from antiphon.actors.scheduling.holdings import Held, Holdings
from antiphon.actors.scheduling.waiting import Waiting


class Claim:
    """One at a time. What is granted meanwhile leaves room for it beside itself: so it fits at the
    latest when what ran before it is over."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self.of: Waiting | None = None
        self._passed = 0
        """Blocks of the leases that were granted since."""

    def make(self, waiting: Waiting) -> None:
        """Unless there is one."""
        if self.of is None:
            self.of, self._passed = waiting, 0

    def drop(self, waiting: Waiting) -> None:
        """That ticket waits no more."""
        if waiting is self.of:
            self.of = None

    def passed_by(self, waiting: Waiting) -> Waiting | None:
        """The ticket that this one, which is granted now, was let past."""
        if self.of is not None:
            self._passed += waiting.blocks
        return self.of

    def returned(self, held: Held) -> None:
        if held.passed is not None and held.passed is self.of:
            self._passed -= held.waiting.blocks

    def bars(self, waiting: Waiting) -> bool:
        """Whether the KV that it would take is kept for another one."""
        of = self.of
        return of is not None and of is not waiting and waiting.blocks > self._spare(of)

    @property
    def free_blocks(self) -> int:
        """What others may have."""
        free = self._holdings.free_blocks
        return free if self.of is None else max(min(free, self._spare(self.of)), 0)

    def _spare(self, of: Waiting) -> int:
        return self._holdings.capacity.kv_blocks - of.blocks - self._passed

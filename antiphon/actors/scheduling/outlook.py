"""How things stand for one more request of one workload: what a prediction is made from. A value,
filled by the schedule from what it counts anyway, in O(lanes)."""

import math
from dataclasses import dataclass

from antiphon.workload import WorkloadClass

RELEASE_STEPS = (0, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 4096)
"""The steps from now at which `Outlook.releases` counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The slots that lanes without a reserve share: how many there are, how many of them are taken,
    and how many tickets that would have one of them are ahead."""

    lanes: frozenset[WorkloadClass]
    slots: int
    running: int
    ahead: int
    releases: tuple[float, ...] = ()
    """As those of the outlook, of these slots alone."""

    @property
    def short(self) -> int:
        """How many of those running must end first."""
        return max(self.running + self.ahead + 1 - self.slots, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Of a pool, at one moment, for a ticket that would be submitted now and is not yet counted.

    What is `free` is what this workload may have: without what is reserved for others, with what it
    would take from others by pre-emption, and before those who are ahead have had theirs. What is
    `ahead` are waiting tickets that would be granted before it. The mirror of the engine knows
    better about what is inside it, and fills in what no schedule can know.
    """

    lane: WorkloadClass = WorkloadClass.INTERACTIVE
    free_slots: int
    free_blocks: int
    block_size: int
    running: int
    """Leases, of whatever lane, in whatever state."""
    reserved_blocks: int
    """KV blocks that those leases hold."""
    shared: Shared | None = None
    """What its lane may have at most; None where that is all."""
    overtaking: float = 0.0
    """How many a second come and are granted before it while it waits."""
    longest_wait_s: float = math.inf
    """After so long it gets one of `AGED_EVERY` slots that come free, whoever else waits."""
    ahead: int = 0
    ahead_prompt_tokens: float = 0
    ahead_blocks: int = 0
    first_tokens: int = 0
    """Prompt tokens that must have been read before this lane's next prompt may begin: of the long
    ones, where as many are being read as may be at once. 0 for other lanes."""
    decoding: int = 0
    """Of those running, the ones that have had their first token."""
    context_tokens: int = 0
    """Prompt and answer so far of those decoding."""
    prefilling: int = 0
    """Of those running, the ones without a first token."""
    prefill_tokens: float = 0
    """Prompt tokens of theirs that are still to be read, after the step that runs now."""
    attended_tokens: float = 0
    """The sum over these of how much context each is to read."""
    step_left_s: float = 0.0
    """Until the engine takes in what comes now: the rest of the step that it is in."""
    releases: tuple[float, ...] = ()
    """How many slots are expected to have come free within each of RELEASE_STEPS, those who get
    them and end again included; empty where only mean answer lengths are known."""

    @property
    def joining(self) -> int:
        """Of those ahead, the ones that have a slot at once."""
        return max(min(self.free_slots, self.ahead), 0)

    def with_inside(
        self,
        *,
        shared: Shared | None,
        ahead_prompt_tokens: float,
        decoding: int,
        context_tokens: int,
        prefilling: int,
        prefill_tokens: float,
        attended_tokens: float,
        step_left_s: float,
        releases: tuple[float, ...],
    ) -> "Outlook":
        """The same, with what is known of the inside of the engine. Field by field, and here alone:
        `replace` takes as long as all the rest of a prediction."""
        return Outlook(
            lane=self.lane,
            free_slots=self.free_slots,
            free_blocks=self.free_blocks,
            block_size=self.block_size,
            running=self.running,
            reserved_blocks=self.reserved_blocks,
            shared=shared,
            overtaking=self.overtaking,
            longest_wait_s=self.longest_wait_s,
            ahead=self.ahead,
            ahead_prompt_tokens=ahead_prompt_tokens,
            ahead_blocks=self.ahead_blocks,
            first_tokens=self.first_tokens,
            decoding=decoding,
            context_tokens=context_tokens,
            prefilling=prefilling,
            prefill_tokens=prefill_tokens,
            attended_tokens=attended_tokens,
            step_left_s=step_left_s,
            releases=releases,
        )

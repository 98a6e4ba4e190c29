"""What is to be expected of a pool as it stands: how long a queue lasts, and what a request that
came now would find. Estimates, each in the number of lanes."""

import math
from collections.abc import Sequence

from antiphon.actors.scheduling.holdings import Holdings
from antiphon.actors.scheduling.lanes import Lane
from antiphon.actors.scheduling.outlook import Outlook
from antiphon.actors.scheduling.policy import is_urgent
from antiphon.actors.scheduling.turns import Turns
from antiphon.actors.scheduling.yielding import may_pause
from antiphon.workload import Workload, WorkloadClass

_ALL = frozenset(WorkloadClass)
_OTHERS = frozenset(lane for lane in WorkloadClass if not is_urgent(lane))


class Prospects:
    """Reads; decides nothing."""

    def __init__(self, lanes: Sequence[Lane], holdings: Holdings, turns: Turns) -> None:
        self._lanes = lanes
        self._holdings = holdings
        self._turns = turns
        self._slots = holdings.capacity.slots

    def drain_s(self, lane: Lane, mean_lease_s: float) -> float:
        if not self._turns.policy.fair:
            return sum(len(each.waiting) for each in self._lanes) * mean_lease_s / self._slots
        weights = sum(each.weight for each in self._lanes if each.waiting or each is lane)
        slots = self._slots * lane.weight / weights
        reserve = self._slots - self._turns.others
        slots = max(slots, reserve) if lane.urgent else min(slots, self._turns.others)
        drain_s = len(lane.waiting) * lane.mean_lease_s / slots
        if lane.name is WorkloadClass.LONG:
            prefills = self._turns.policy.scheduling.long_prefills
            drain_s = max(drain_s, len(lane.waiting) * lane.mean_prefill_s / prefills)
        return drain_s

    def outlook(self, workload: Workload, lane: Lane, now: float) -> Outlook:
        holdings = self._holdings
        slots, blocks = holdings.free_slots, self._turns.claim.free_blocks
        slots = max(slots - self._turns.spare_of(workload), 0)
        first_tokens = 0
        if self._turns.policy.fair and lane.urgent and self._turns.policy.scheduling.preempt:
            for held in holdings.yielding.values():
                if may_pause(held, now):
                    slots += 1
                    blocks += held.waiting.blocks
        elif self._turns.policy.fair and not lane.urgent:
            slots = max(min(slots, self._turns.others - holdings.others), 0)
            if lane.name is WorkloadClass.LONG and self._turns.long_is_full():
                first_tokens = min(holdings.long_prefill_tokens, holdings.prefill_tokens)
        ahead, prompt_tokens, ahead_blocks = self._ahead(workload, lane)
        return Outlook(
            lane=lane.name,
            free_slots=slots,
            free_blocks=blocks,
            block_size=holdings.capacity.block_size,
            running=len(holdings.by_request),
            reserved_blocks=holdings.capacity.kv_blocks - holdings.free_blocks,
            follows=_OTHERS if self._turns.policy.fair and not lane.urgent else _ALL,
            ahead=ahead,
            ahead_prompt_tokens=prompt_tokens,
            ahead_blocks=ahead_blocks,
            first_tokens=first_tokens,
            decoding=len(holdings.by_request) - holdings.prefills,
            context_tokens=holdings.context_tokens,
            prefill_tokens=holdings.prefill_tokens,
            prefilling=holdings.prefills,
        )

    def _ahead(self, workload: Workload, lane: Lane) -> tuple[int, int, int]:
        """Tickets that would be granted before such a one, their prompts and their blocks. Of
        other lanes it is what their shares give them in that time."""
        if not self._turns.policy.fair:
            lanes = self._lanes
            return (
                sum(len(each.waiting) for each in lanes),
                sum(each.prompt_tokens for each in lanes),
                sum(each.blocks for each in lanes),
            )
        own = lane.ahead(workload)
        total, prompt_tokens, blocks = 0, 0.0, 0.0
        mean = lane.tokens / len(lane.waiting) if lane.waiting else 0.0
        for each in self._lanes:
            waiting = len(each.waiting)
            if not waiting:
                continue
            if each is lane:
                count = own
            elif lane.urgent and not each.urgent:
                continue
            else:
                share = each.weight / lane.weight * mean * waiting / each.tokens
                count = min(waiting, math.floor(own * share))
            total += count
            prompt_tokens += count * each.prompt_tokens / waiting
            blocks += count * each.blocks / waiting
        return total, round(prompt_tokens), round(blocks)

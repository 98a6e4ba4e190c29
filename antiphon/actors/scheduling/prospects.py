"""What is to be expected of a pool as it stands: how long a queue lasts, and what a request that
came now would find. Estimates, each in the number of lanes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.actors.scheduling.holdings import Holdings
from antiphon.actors.scheduling.lanes import Lane
from antiphon.actors.scheduling.outlook import Outlook, Shared
from antiphon.actors.scheduling.policy import is_urgent
from antiphon.actors.scheduling.turns import Turns
from antiphon.actors.scheduling.yielding import may_pause
from antiphon.workload import Workload, WorkloadClass

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
        first_tokens, overtaking, longest_wait_s = 0, 0.0, math.inf
        ahead = self._ahead(workload, lane)
        shared: Shared | None = None
        policy = self._turns.policy
        if policy.fair and lane.urgent and policy.scheduling.preempt:
            for held in holdings.yielding.values():
                if may_pause(held, now):
                    slots += 1
                    blocks += held.waiting.blocks
        elif policy.fair and not lane.urgent:
            shared = Shared(
                lanes=_OTHERS,
                slots=self._turns.others,
                running=holdings.others,
                ahead=ahead.others,
            )
            if self._turns.gives_way(lane):
                overtaking = sum(each.arrivals_s(now) for each in self._lanes if each.urgent)
                longest_wait_s = math.inf if workload.upkeep else policy.scheduling.aging_s
            if lane.name is WorkloadClass.LONG and self._turns.long_is_full():
                first_tokens = min(holdings.long_prefill_tokens, holdings.prefill_tokens)
        return Outlook(
            lane=lane.name,
            free_slots=slots,
            free_blocks=blocks,
            block_size=holdings.capacity.block_size,
            running=len(holdings.by_request),
            reserved_blocks=holdings.capacity.kv_blocks - holdings.free_blocks,
            shared=shared,
            overtaking=overtaking,
            longest_wait_s=longest_wait_s,
            ahead=ahead.requests,
            ahead_prompt_tokens=ahead.prompt_tokens,
            ahead_blocks=ahead.blocks,
            first_tokens=first_tokens,
            decoding=len(holdings.by_request) - holdings.prefills,
            context_tokens=holdings.context_tokens,
            prefill_tokens=holdings.prefill_tokens,
            prefilling=holdings.prefills,
        )

    def _ahead(self, workload: Workload, lane: Lane) -> "_Ahead":
        """Of other lanes it is what their shares give them in that time."""
        if not self._turns.policy.fair:
            lanes = self._lanes
            return _Ahead(
                requests=sum(len(each.waiting) for each in lanes),
                prompt_tokens=sum(each.prompt_tokens for each in lanes),
                blocks=sum(each.blocks for each in lanes),
                others=sum(len(each.waiting) for each in lanes if not each.urgent),
            )
        own = lane.ahead(workload)
        total, others, prompt_tokens, blocks = 0, 0, 0.0, 0.0
        gives_way = self._turns.gives_way(lane)
        mean = lane.tokens / len(lane.waiting) if lane.waiting else 0.0
        for each in self._lanes:
            waiting = len(each.waiting)
            if not waiting:
                continue
            if each is lane:
                count = own
            elif lane.urgent and not each.urgent:
                continue
            elif each.urgent and gives_way:
                count = waiting
            else:
                share = each.weight / lane.weight * mean * waiting / each.tokens
                count = min(waiting, math.floor(own * share))
            total += count
            others += 0 if each.urgent else count
            prompt_tokens += count * each.prompt_tokens / waiting
            blocks += count * each.blocks / waiting
        return _Ahead(
            requests=total,
            prompt_tokens=round(prompt_tokens),
            blocks=round(blocks),
            others=others,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ahead:
    """Tickets that would be granted before one that comes, their prompts and their blocks; `others`
    of them are not urgent."""

    requests: int
    prompt_tokens: int
    blocks: int
    others: int

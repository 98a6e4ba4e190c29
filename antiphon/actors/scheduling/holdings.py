"""Slots and KV blocks, and who holds which: free and held always add up to all there are."""

from dataclasses import dataclass, replace

from antiphon.actors.scheduling.lanes import Lane
from antiphon.actors.scheduling.tenants import Tenant
from antiphon.actors.scheduling.tickets import Capacity, Lease
from antiphon.actors.scheduling.waiting import Waiting
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.workload import WorkloadClass

_LEAST_WEIGHT = 1e-3


@dataclass(slots=True, eq=False)
class Held:
    """A lease, and how far it is. It is `settled` if it must be given a minimum run; `passed` is
    the claim on KV that it was let past, and `pausing` once its slot has been asked back."""

    lease: Lease
    waiting: Waiting
    lane: Lane
    tenant: Tenant
    weight: float
    tokens: int
    settled: bool
    passed: Waiting | None
    prefilling: bool = True
    releasing: bool = False
    pausing: bool = False

    def charge(self, cost: float) -> None:
        """Its lane and its tenant have had so much more service."""
        self.lane.service += cost / self.lane.weight
        self.tenant.service += cost / self.weight


class Holdings:
    """Counts only; who is to have something is decided elsewhere."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self.by_request: dict[EngineRequest, Held] = {}
        self.yielding: dict[EngineRequest, Held] = {}
        """Those that may be asked to give their slots to somebody urgent."""
        self.free_blocks = capacity.kv_blocks
        self.others = 0
        """Leases of lanes that are not urgent."""
        self.long_prefills = 0
        self.long_prefill_tokens = 0
        self.prefills = 0
        self.context_tokens = 0
        """Prompts and answers so far."""
        self.coming_slots = 0
        self.coming_blocks = 0
        """Asked back, and not given back yet."""
        self._free_slots = list(range(capacity.slots - 1, -1, -1))
        self._prefill_tokens = 0
        self._prefilled = 0

    @property
    def free_slots(self) -> int:
        return len(self._free_slots)

    @property
    def prefill_tokens(self) -> int:
        """Of the prompts in prefill, what has not been computed, as far as anybody tells."""
        return max(self._prefill_tokens - self._prefilled, 0)

    def take(
        self,
        waiting: Waiting,
        lane: Lane,
        tenant: Tenant,
        now: float,
        *,
        settled: bool,
        passed: Waiting | None,
    ) -> Held:
        lease = Lease(
            ticket=waiting.ticket,
            slot=SlotIndex(self._free_slots.pop()),
            blocks=waiting.blocks,
            granted_at=now,
            resumed=waiting.paused,
            tokens=waiting.tokens,
            held_s=waiting.held_s,
        )
        ticket = waiting.ticket
        weight = max(ticket.workload.weight, _LEAST_WEIGHT)
        held = Held(lease, waiting, lane, tenant, weight, waiting.tokens, settled, passed)
        self.by_request[ticket.request] = held
        if ticket.resumable and lane.name is WorkloadClass.BACKGROUND:
            self.yielding[ticket.request] = held
        self.free_blocks -= waiting.blocks
        if not lane.urgent:
            self.others += 1
        lane.running += 1
        tenant.running += 1
        context = ticket.prompt_tokens + waiting.tokens
        self.context_tokens += context
        self.prefills += 1
        self._prefill_tokens += context
        if waiting.long:
            self.long_prefills += 1
            self.long_prefill_tokens += context
        return held

    def give_back(self, request: EngineRequest) -> Held | None:
        held = self.by_request.pop(request, None)
        if held is None:
            return None
        self.yielding.pop(request, None)
        waiting = held.waiting
        if held.releasing or held.pausing:
            self.coming_slots -= 1
            self.coming_blocks -= waiting.blocks
        self.begun(held)
        self.context_tokens -= waiting.ticket.prompt_tokens + held.tokens
        held.lane.running -= 1
        held.tenant.running -= 1
        if not held.lane.urgent:
            self.others -= 1
        self.free_blocks += waiting.blocks
        self._free_slots.append(held.lease.slot)
        return held

    def ask_back(self, held: Held, *, pause: bool) -> None:
        """Its slot comes, either for good or until it is its turn again."""
        self.yielding.pop(held.lease.ticket.request, None)
        if not (held.releasing or held.pausing):
            self.coming_slots += 1
            self.coming_blocks += held.waiting.blocks
        if pause:
            held.pausing = True
        else:
            held.releasing = True
            held.lease = replace(held.lease, releasing=True)

    def begun(self, held: Held) -> bool:
        """Its prompt is through. False if that was known."""
        if not held.prefilling:
            return False
        held.prefilling = False
        context = held.waiting.ticket.prompt_tokens + held.waiting.tokens
        self.prefills -= 1
        self._prefill_tokens -= context
        self._prefilled = max(self._prefilled - context, 0) if self.prefills else 0
        if held.waiting.long:
            self.long_prefills -= 1
            self.long_prefill_tokens -= context
        return True

    def gained(self, held: Held, tokens: int) -> bool:
        """It has more than before. True if its prompt was not known to be through."""
        self.context_tokens += tokens - held.tokens
        held.tokens = tokens
        return held.prefilling and self.begun(held)

    def prefilled(self, tokens: int) -> None:
        """The engine has computed that much of some prompts."""
        self._prefilled = min(self._prefilled + tokens, self._prefill_tokens)

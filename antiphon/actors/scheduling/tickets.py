"""What a schedule is given and what it gives out: tickets and leases, and its figures. Values."""

from collections.abc import Mapping
from dataclasses import dataclass

from antiphon.ids import EngineRequest, RequestId, SlotIndex
from antiphon.workload import Workload, WorkloadClass

_MEAN_LEASE_START_S = 2.0
_LONGEST_MEAN_LEASE_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the engine offers: `kv_blocks` of `block_size` tokens, shared by `slots` generations;
    and whether it computes patient prompts only while there are no others (`lets_pass`)."""

    slots: int
    kv_blocks: int
    block_size: int
    lets_pass: bool = False

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One generation that wants a slot; its prompt and its longest answer are in tokens.

    `resumable` says that its engine can take it out of its slot and go on with it later;
    `deadline_s` is how long it may wait for its first slot, where the queue's own is too long.
    """

    request: EngineRequest
    turn: RequestId
    prompt_tokens: int
    max_tokens: int
    queued_at: float
    workload: Workload = Workload()
    resumable: bool = False
    deadline_s: float | None = None

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.max_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A ticket's hold on a slot and on KV blocks, from the grant until the engine's Released. One
    that is `resumed` had a slot before, for `held_s`, and goes on after its `tokens`."""

    ticket: Ticket
    slot: SlotIndex
    blocks: int
    granted_at: float
    releasing: bool = False
    resumed: bool = False
    tokens: int = 0
    held_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLoad:
    """The figures of one lane; those that are paused wait, too."""

    running: int = 0
    waiting: int = 0
    waiting_tokens: int = 0
    paused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The figures of one moment."""

    running: int
    waiting: int
    waiting_tokens: int
    reserved_blocks: int
    free_slots: int
    lanes: Mapping[WorkloadClass, LaneLoad]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What there is to be had of an engine now, and what is left: none of it while it is away.
    `reserved` is the part of its KV that is promised, 0 to 1."""

    slots: int = 0
    free_slots: int = 0
    reserved: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a schedule has found out by itself and the next one would have to learn anew.

    How long a slot is held is what retry advice is made of; `lanes` has it for each lane, in their
    order, where it is known.
    """

    mean_lease_s: float = _MEAN_LEASE_START_S
    lanes: tuple[float, ...] = ()

    def of(self, lane: WorkloadClass) -> float:
        index = LANES.index(lane)
        return self.lanes[index] if index < len(self.lanes) else self.mean_lease_s


def learned_from(handoff: object) -> Learned:
    """What a former scheduler left, if it is that and in its right mind; else what nobody knows."""
    match handoff:
        case Learned(mean_lease_s=float(mean), lanes=tuple(lanes)) if all(
            isinstance(each, float) and 0 < each <= _LONGEST_MEAN_LEASE_S for each in (mean, *lanes)
        ):
            return handoff
        case _:
            return Learned()


LANES = tuple(WorkloadClass)
"""In the order in which they are preferred where nothing else decides."""

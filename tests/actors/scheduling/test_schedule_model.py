"""Whatever happens in whatever order: the schedule against a book kept by counting naively."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from antiphon.actors.scheduling.schedule import (
    Capacity,
    Lease,
    Policy,
    QueueBounds,
    Schedule,
    Ticket,
)
from antiphon.errors import ContextLengthExceeded, QueueFull
from antiphon.ids import EngineRequest
from antiphon.scheduling_settings import SchedulingSettings
from antiphon.testing.scheduling import BLOCK, a_ticket
from antiphon.workload import WorkloadClass

SLOTS, BLOCKS = 4, 16
RESERVE = 1
LONG_PREFILLS = 1
BOUNDS = QueueBounds(max_requests=5, max_tokens=1500, deadline_s=40.0)
URGENT = (WorkloadClass.INTERACTIVE, WorkloadClass.TOOL)


@dataclass(slots=True)
class Entry:
    """One ticket as the model knows it."""

    ticket: Ticket
    order: int
    state: str = "waiting"
    lease: Lease | None = None
    prefilling: bool = False
    tokens: int = 0
    paused: bool = False
    ends: list[str] = field(default_factory=list)

    @property
    def blocks(self) -> int:
        return -(-self.ticket.tokens // BLOCK)

    @property
    def share(self) -> tuple[object, ...]:
        workload = self.ticket.workload
        return workload.lane, workload.priority, workload.tenant

    @property
    def age(self) -> tuple[float, int]:
        return self.ticket.queued_at, self.order


class ScheduleModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        scheduling = SchedulingSettings(
            interactive_reserve=0.25,
            long_prefills=LONG_PREFILLS,
            long_prompt_tokens=200,
            aging_s=4.0,
            background_deadline_s=80.0,
        )
        self.book = Schedule(
            Capacity(slots=SLOTS, kv_blocks=BLOCKS, block_size=BLOCK),
            Policy(bounds=BOUNDS, scheduling=scheduling),
        )
        self.now = 0.0
        self.entries: dict[EngineRequest, Entry] = {}

    def those(self, *states: str) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.state in states]

    def end(self, entry: Entry, how: str) -> None:
        entry.ends.append(how)
        entry.state = "over"
        entry.lease = None

    # what happens

    @rule(
        lane=st.sampled_from(WorkloadClass),
        tenant=st.sampled_from("ab"),
        priority=st.integers(0, 1),
        prompt=st.sampled_from([5, 40, 250]),
        answer=st.sampled_from([1, 60, 200, 400]),
        late=st.sampled_from([0.0, 0.0, 3.0]),
        choices=st.integers(1, 2),
        resumable=st.booleans(),
        deadline_s=st.sampled_from([None, None, 5.0]),
    )
    def submit(
        self,
        lane: WorkloadClass,
        tenant: str,
        priority: int,
        prompt: int,
        answer: int,
        late: float,
        choices: int,
        resumable: bool,
        deadline_s: float | None,
    ) -> None:
        tickets = [
            a_ticket(
                len(self.entries) + choice + 1,
                lane,
                tenant=tenant,
                priority=priority,
                prompt=prompt,
                answer=answer,
                at=self.now - late,
                resumable=resumable,
                deadline_s=deadline_s,
            )
            for choice in range(choices)
        ]
        before = self.book.load()
        try:
            evicted = self.book.submit(*tickets)
        except ContextLengthExceeded:
            assert prompt + answer > BLOCKS * BLOCK
            return
        except QueueFull:
            assert self.book.load() == before
            return
        for ticket in tickets:
            self.entries[ticket.request] = Entry(ticket, len(self.entries))
        for each in evicted:
            entry = self.entries[each.ticket.request]
            assert entry.state == "waiting"
            assert not entry.paused
            assert entry.ticket.workload.lane is lane
            assert entry.ticket.workload.priority <= priority
            self.end(entry, "evicted")

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def grant(self) -> None:
        idle = not self.those("running", "pausing", "releasing")
        waiting = bool(self.those("waiting"))
        count = 0
        for lease in self.book.grant(self.now):
            count += 1
            entry = self.entries[lease.ticket.request]
            assert entry.state == "waiting"
            others = [each for each in self.those("waiting") if each.share == entry.share]
            assert entry is min(others, key=lambda each: each.age)
            assert (lease.resumed, lease.tokens) == (entry.paused, entry.tokens)
            assert lease.blocks == entry.blocks
            entry.state, entry.lease, entry.prefilling = "running", lease, True
            entry.paused = False
        if idle and waiting:
            assert count
        self.preempt()

    def preempt(self) -> None:
        urgent = [each for each in self.those("waiting") if each.ticket.workload.lane in URGENT]
        named = list(self.book.preempt(self.now))
        assert not named or urgent
        assert len(named) <= SLOTS
        for lease in named:
            entry = self.entries[lease.ticket.request]
            assert entry.state == "running"
            assert entry.ticket.resumable
            assert entry.ticket.workload.lane is WorkloadClass.BACKGROUND
            entry.state = "pausing"

    @precondition(lambda self: self.those("running", "pausing"))
    @rule(data=st.data(), tokens=st.integers(1, 20))
    def gain(self, data: st.DataObject, tokens: int) -> None:
        entry = data.draw(st.sampled_from(self.those("running", "pausing")))
        request = entry.ticket.request
        if not entry.tokens:
            self.book.first_token(request, self.now)
        entry.tokens += tokens
        entry.prefilling = False
        self.book.gained(request, entry.tokens)

    @precondition(lambda self: self.those("running", "pausing", "releasing"))
    @rule(data=st.data())
    def end_by_itself(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.those("running", "pausing", "releasing")))
        lease = self.book.release(entry.ticket.request, self.now)
        assert lease is not None
        self.end(entry, "released")

    @precondition(lambda self: self.those("pausing"))
    @rule(data=st.data())
    def pause(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.those("pausing")))
        assert self.book.paused(entry.ticket.request, self.now) is entry.ticket
        entry.state, entry.lease, entry.prefilling = "waiting", None, False
        entry.paused = True

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(list(self.entries.values())))
        match self.book.cancel(entry.ticket.request):
            case Ticket():
                assert entry.state == "waiting"
                self.end(entry, "cancelled")
            case Lease() as lease:
                assert entry.state in ("running", "pausing")
                assert lease.releasing
                entry.state = "releasing"
            case None:
                assert entry.state in ("releasing", "over")

    @rule()
    def expire(self) -> None:
        for ticket, _ in self.book.expire(self.now):
            entry = self.entries[ticket.request]
            assert entry.state == "waiting"
            self.end(entry, "expired")

    @rule()
    def late_news_of_what_is_over_changes_nothing(self) -> None:
        before = self.book.load()
        for entry in self.those("over"):
            request = entry.ticket.request
            assert self.book.release(request, self.now) is None
            assert self.book.paused(request, self.now) is None
            self.book.gained(request, 999)
            self.book.first_token(request, self.now)
        assert self.book.load() == before

    # what is always so

    @invariant()
    def slots_add_up(self) -> None:
        holding = self.those("running", "pausing", "releasing")
        leases = self.book.leases()
        load = self.book.load()
        assert {lease.ticket.request for lease in leases} == {e.ticket.request for e in holding}
        assert len({lease.slot for lease in leases}) == len(leases)
        assert all(0 <= lease.slot < SLOTS for lease in leases)
        assert load.free_slots + load.running == SLOTS
        assert load.running == len(holding)

    @invariant()
    def kv_is_never_promised_twice(self) -> None:
        holding = self.those("running", "pausing", "releasing")
        assert self.book.load().reserved_blocks == sum(entry.blocks for entry in holding)
        assert self.book.load().reserved_blocks <= BLOCKS

    @invariant()
    def the_reserve_and_the_cap_hold(self) -> None:
        holding = self.those("running", "pausing", "releasing")
        others = [each for each in holding if each.ticket.workload.lane not in URGENT]
        assert len(others) <= SLOTS - RESERVE
        assert sum(each.prefilling and is_long(each.ticket) for each in holding) <= LONG_PREFILLS

    @invariant()
    def lanes_count_right(self) -> None:
        load = self.book.load()
        assert load.waiting == len(self.those("waiting"))
        for lane, figures in load.lanes.items():
            mine = [e for e in self.entries.values() if e.ticket.workload.lane is lane]
            waiting = [each for each in mine if each.state == "waiting"]
            assert figures.waiting == len(waiting)
            assert figures.waiting_tokens == sum(each.ticket.tokens for each in waiting)
            assert figures.paused == sum(each.paused for each in waiting)
            assert figures.running == sum(
                each.state in ("running", "pausing", "releasing") for each in mine
            )

    @invariant()
    def an_outlook_is_sane(self) -> None:
        for lane in WorkloadClass:
            outlook = self.book.outlook(a_ticket(0, lane).workload, self.now)
            assert 0 <= outlook.free_slots <= SLOTS
            assert 0 <= outlook.free_blocks <= BLOCKS
            assert outlook.ahead <= self.book.load().waiting
            assert outlook.ahead_prompt_tokens >= 0
            assert outlook.decoding + outlook.prefilling == outlook.running
            assert outlook.prefill_tokens >= 0
            holding = self.those("running", "pausing", "releasing")
            assert self.book.context_tokens == sum(
                each.ticket.prompt_tokens + each.tokens for each in holding
            )

    @invariant()
    def everything_ends_once(self) -> None:
        assert all(len(each.ends) == (each.state == "over") for each in self.entries.values())

    def teardown(self) -> None:
        """Nothing is left behind once the engine has done what there is to do."""
        for _ in range(10 * len(self.entries) + 10):
            for entry in self.those("pausing"):
                if self.book.paused(entry.ticket.request, self.now) is not None:
                    entry.state, entry.lease, entry.prefilling = "waiting", None, False
                    entry.paused = True
            for entry in self.those("running", "releasing"):
                if entry.ticket.request not in {
                    lease.ticket.request for lease in self.book.leases()
                }:
                    continue
                self.book.release(entry.ticket.request, self.now)
                self.end(entry, "released")
            self.now += 0.1
            self.grant()
            if not self.those("waiting", "running", "pausing", "releasing"):
                break
        assert not self.those("waiting", "running", "pausing", "releasing")
        load = self.book.load()
        assert (load.running, load.waiting, load.reserved_blocks) == (0, 0, 0)
        assert load.free_slots == SLOTS


def is_long(ticket: Ticket) -> bool:
    return ticket.workload.lane is WorkloadClass.LONG or ticket.prompt_tokens >= 200


TestSchedule = ScheduleModel.TestCase
TestSchedule.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)

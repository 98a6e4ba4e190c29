"""Background work yields its slots, goes on from its tokens, and still comes to its end."""

import pytest

from antiphon.actors.scheduling.schedule import Capacity, Lease, QueueBounds, Schedule, Ticket
from antiphon.ids import EngineRequest
from antiphon.testing.scheduling import (
    Pump,
    a_policy,
    a_schedule,
    a_ticket,
    granted,
    preempted,
)
from antiphon.workload import WorkloadClass

INTERACTIVE, TOOL, LONG, BACKGROUND = WorkloadClass


def full_of_background(slots: int = 2, **settings: object) -> Schedule:
    book = a_schedule(slots=slots, policy=a_policy(**settings))
    for number in range(1, slots + 1):
        book.submit(a_ticket(number, BACKGROUND))
        assert granted(book) == [number]
    return book


@pytest.mark.parametrize("lane", [INTERACTIVE, TOOL])
def test_somebody_who_waits_is_given_the_slot_of_background_work(lane: WorkloadClass):
    book = full_of_background()
    book.submit(a_ticket(9, lane))
    assert granted(book) == []

    [asked] = preempted(book)
    waits_again = book.paused(EngineRequest(asked), 1.0)

    assert waits_again is not None
    assert granted(book, 1.0) == [9]


@pytest.mark.parametrize("lane", [LONG, BACKGROUND])
def test_work_that_nobody_waits_for_takes_no_slot_away(lane: WorkloadClass):
    book = full_of_background()
    book.submit(a_ticket(9, lane))
    granted(book)

    assert preempted(book) == []


@pytest.mark.parametrize("lane", [INTERACTIVE, TOOL, LONG])
def test_only_background_work_yields(lane: WorkloadClass):
    book = a_schedule(slots=1)
    book.submit(a_ticket(1, lane, resumable=True))
    granted(book)
    book.submit(a_ticket(9))

    assert preempted(book) == []


def test_what_its_engine_can_not_resume_is_left_alone():
    book = a_schedule(slots=1)
    book.submit(a_ticket(1, BACKGROUND, resumable=False))
    granted(book)
    book.submit(a_ticket(9))

    assert preempted(book) == []


def test_nothing_is_paused_where_that_is_switched_off():
    book = full_of_background(preempt=False)
    book.submit(a_ticket(9))

    assert granted(book) == []
    assert preempted(book) == []


def test_no_more_is_paused_than_is_needed_and_none_twice():
    book = full_of_background(slots=3)
    book.submit(a_ticket(8), a_ticket(9))

    assert len(preempted(book)) == 2
    assert preempted(book) == []


def test_a_slot_that_comes_anyway_is_waited_for():
    book = full_of_background(slots=2)
    book.cancel(EngineRequest(1))
    book.submit(a_ticket(9))

    assert preempted(book) == []


def test_kv_blocks_that_come_anyway_are_waited_for():
    book = a_schedule(slots=9, blocks=4)
    for number in (1, 2):
        book.submit(a_ticket(number, BACKGROUND, answer=54))
    assert granted(book) == [1, 2]
    book.cancel(EngineRequest(1))
    book.submit(a_ticket(9, answer=54))

    assert preempted(book) == []


def test_who_has_least_to_lose_yields_first():
    book = full_of_background(slots=3)
    for number, tokens in ((1, 5), (2, 2), (3, 9)):
        book.gained(EngineRequest(number), tokens)
    book.submit(a_ticket(9))

    assert preempted(book) == [2]


def test_kv_blocks_are_a_reason_as_slots_are():
    book = a_schedule(slots=9, blocks=6)
    for number in (1, 2, 3):
        book.submit(a_ticket(number, BACKGROUND, answer=54))
    assert len(granted(book)) == 3
    book.submit(a_ticket(9, answer=110))  # four blocks

    assert granted(book) == []
    assert len(preempted(book)) == 2


def test_nothing_is_paused_that_would_not_be_enough():
    book = a_schedule(slots=9, blocks=6)
    book.submit(a_ticket(1, INTERACTIVE, answer=54))
    book.submit(a_ticket(2, BACKGROUND, answer=54))
    assert len(granted(book)) == 2
    book.submit(a_ticket(9, answer=150))  # five blocks

    assert granted(book) == []
    assert preempted(book) == []


def test_what_was_paused_goes_on_from_its_tokens_and_keeps_its_age():
    book = a_schedule(slots=1)
    book.submit(a_ticket(1, BACKGROUND))
    [first] = book.grant(0.0)
    book.submit(a_ticket(2, BACKGROUND, at=1.0))
    book.submit(a_ticket(9, at=2.0))
    assert preempted(book, 2.0) == [1]
    book.gained(EngineRequest(1), 7)
    book.paused(EngineRequest(1), 3.0)
    assert granted(book, 3.0) == [9]
    book.release(EngineRequest(9), 4.0)

    [lease] = book.grant(5.0)

    assert not first.resumed
    assert lease.resumed
    assert (lease.ticket.request, lease.tokens, lease.held_s) == (1, 7, 3.0)


def test_paused_work_has_no_kv_blocks_and_counts_as_waiting():
    book = full_of_background(slots=1)
    book.submit(a_ticket(9))
    preempted(book)

    book.paused(EngineRequest(1), 1.0)

    load = book.load()
    assert (load.running, load.reserved_blocks, load.free_slots) == (0, 0, 1)
    assert (load.lanes[BACKGROUND].waiting, load.lanes[BACKGROUND].paused) == (1, 1)


def test_its_prompt_is_charged_once_however_often_it_is_paused():
    book = a_schedule(slots=1)
    book.submit(a_ticket(1, BACKGROUND, tenant="paused", prompt=100))
    granted(book)
    [held] = book._holdings.by_request.values()
    before = held.tenant.service
    book.submit(a_ticket(9))
    preempted(book)
    book.paused(EngineRequest(1), 1.0)
    granted(book, 1.0)
    book.release(EngineRequest(9), 2.0)

    assert granted(book, 2.0) == [1]
    assert held.tenant.service == before


def test_an_answer_that_ends_before_its_pause_is_released():
    book = full_of_background(slots=1)
    book.submit(a_ticket(9))
    preempted(book)

    assert book.release(EngineRequest(1), 1.0) is not None
    assert book.paused(EngineRequest(1), 1.0) is None
    assert granted(book, 1.0) == [9]


def test_what_is_cancelled_while_it_is_being_paused_is_over():
    book = full_of_background(slots=1)
    book.submit(a_ticket(9))
    preempted(book)

    assert isinstance(book.cancel(EngineRequest(1)), Lease)
    assert book.paused(EngineRequest(1), 1.0) is None
    assert book.release(EngineRequest(1), 1.0) is not None
    assert book.load().lanes[BACKGROUND].waiting == 0


def test_what_is_paused_can_be_cancelled_as_anything_that_waits():
    book = full_of_background(slots=1)
    book.submit(a_ticket(9))
    preempted(book)
    book.paused(EngineRequest(1), 1.0)

    assert isinstance(book.cancel(EngineRequest(1)), Ticket)
    assert book.cancel(EngineRequest(1)) is None


def test_paused_work_expires_by_how_long_it_has_been_paused():
    book = a_schedule(slots=1, policy=a_policy(background_deadline_s=100.0))
    book.submit(a_ticket(1, BACKGROUND))
    granted(book)
    book.submit(a_ticket(9, at=90.0))
    preempted(book, 90.0)
    book.paused(EngineRequest(1), 90.0)

    assert list(book.expire(189.0)) == []
    [(ticket, error)] = book.expire(190.0)
    assert (ticket.request, error.waited_s) == (1, 100.0)


def test_paused_work_takes_no_place_in_the_queue_from_what_comes():
    bounds = QueueBounds(max_requests=1, max_tokens=10**6, deadline_s=100)
    book = Schedule(Capacity(slots=1, kv_blocks=99, block_size=32), a_policy(bounds))
    book.submit(a_ticket(1, BACKGROUND))
    granted(book)
    book.submit(a_ticket(9))
    preempted(book)
    book.paused(EngineRequest(1), 1.0)
    granted(book, 1.0)

    book.submit(a_ticket(2, BACKGROUND))

    assert book.load().lanes[BACKGROUND].waiting == 2


def test_what_has_just_gone_on_is_not_paused_again_before_it_has_got_somewhere():
    book = full_of_background(slots=1)
    book.submit(a_ticket(8))
    preempted(book)
    book.paused(EngineRequest(1), 1.0)
    granted(book, 1.0)
    book.release(EngineRequest(8), 2.0)
    assert granted(book, 2.0) == [1]
    book.submit(a_ticket(9, at=2.0))

    assert preempted(book, 2.5) == []
    assert preempted(book, 9.0) == []
    book.gained(EngineRequest(1), 8)
    assert preempted(book, 2.5) == []
    assert preempted(book, 3.0) == [1]


def test_background_work_comes_to_its_end_under_urgent_work_that_never_ceases():
    policy = a_policy(aging_s=2.0)
    pump = Pump(schedule=a_schedule(slots=2, policy=policy))
    jobs = [a_ticket(number, BACKGROUND, answer=60) for number in range(1, 5)]
    for job in jobs:
        pump.submit(job)
    pump.admit()
    number = 100

    for _ in range(4000):
        if all(job.request in pump.ended_at for job in jobs):
            break
        urgent = []
        while pump.schedule.load().lanes[INTERACTIVE].waiting + len(urgent) < 3:
            number += 1
            urgent.append(a_ticket(number, answer=20, at=pump.now))
        pump.step(urgent)

    assert all(job.request in pump.ended_at for job in jobs)
    assert any(len(pump.granted_at[job.request]) > 1 for job in jobs)


def test_an_urgent_request_waits_a_step_or_two_for_a_pool_full_of_background_work():
    pump = Pump(schedule=a_schedule(slots=4))
    for number in range(1, 50):
        pump.submit(a_ticket(number, BACKGROUND, answer=200))
    pump.run(20)
    urgent = [a_ticket(number, answer=10, at=pump.now) for number in range(100, 104)]

    pump.step(urgent)
    pump.run(3)

    assert max(pump.waits(urgent)) <= 2 * pump.step_s + 1e-9

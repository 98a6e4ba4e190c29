"""How much may wait, who is refused when that is reached, and how long anything waits."""

import pytest

from antiphon.actors.scheduling.schedule import QueueBounds, Schedule
from antiphon.errors import QueueFull
from antiphon.ids import EngineRequest
from antiphon.testing.scheduling import a_policy, a_schedule, a_ticket, granted
from antiphon.workload import WorkloadClass

INTERACTIVE, TOOL, LONG, BACKGROUND = WorkloadClass
BOUNDS = QueueBounds(max_requests=3, max_tokens=1000, deadline_s=10.0)


def full(*priorities: int, tenants: str = "abc", bounds: QueueBounds = BOUNDS) -> Schedule:
    """One slot taken, and one interactive ticket of each priority waiting, numbered from 1."""
    book = a_schedule(slots=1, policy=a_policy(bounds, background_deadline_s=50.0))
    book.submit(a_ticket(99))
    granted(book)
    for number, priority in enumerate(priorities, start=1):
        book.submit(a_ticket(number, priority=priority, tenant=tenants[number - 1]))
    return book


def refused(book: Schedule, *tickets) -> list[int]:
    return [each.ticket.request for each in book.submit(*tickets)]


def test_a_higher_priority_takes_the_place_of_the_newest_of_the_lowest():
    book = full(1, 0, 0)

    evicted = book.submit(a_ticket(4, priority=1))

    assert [each.ticket.request for each in evicted] == [3]
    assert isinstance(evicted[0].error, QueueFull)
    assert evicted[0].error.retry_after_s >= 1.0
    assert book.load().waiting == 3


def test_a_lower_priority_takes_nobodys_place():
    book = full(1, 1, 1)

    with pytest.raises(QueueFull):
        book.submit(a_ticket(4, priority=0))


def test_the_same_priority_takes_nobodys_place_where_all_have_the_same():
    book = full(0, 0, 0)

    with pytest.raises(QueueFull):
        book.submit(a_ticket(4, tenant="d"))


def test_a_tenant_that_fills_the_queue_makes_way_for_one_that_has_less_waiting():
    book = full(0, 0, 0, tenants="aaa")

    assert refused(book, a_ticket(4, tenant="b")) == [3]
    with pytest.raises(QueueFull):
        book.submit(a_ticket(5, tenant="a"))
    with pytest.raises(QueueFull):  # it would have two, and the other one
        book.submit(a_ticket(6, tenant="b"))


def test_choices_of_a_turn_take_as_many_places_as_they_need_or_none():
    book = full(1, 0, 0)

    with pytest.raises(QueueFull):
        book.submit(*(a_ticket(number, priority=1) for number in range(4, 7)))
    assert book.load().waiting == 3
    assert refused(book, a_ticket(7, priority=1), a_ticket(8, priority=1)) == [3, 2]
    with pytest.raises(QueueFull):
        book.submit(a_ticket(9, priority=1))


def test_tokens_make_room_as_requests_do():
    bounds = QueueBounds(max_requests=99, max_tokens=96, deadline_s=10.0)
    book = full(0, 0, 0, bounds=bounds)

    assert refused(book, a_ticket(4, priority=1, answer=54)) == [3, 2]
    assert book.load().waiting_tokens == 96


def test_what_had_a_slot_is_never_given_up():
    book = a_schedule(slots=1, policy=a_policy(BOUNDS))
    for number in range(1, 5):
        book.submit(a_ticket(number, BACKGROUND))
        granted(book)
    book.submit(a_ticket(9))
    list(book.preempt(0.0))
    book.paused(EngineRequest(1), 1.0)

    evicted = refused(book, *(a_ticket(n, BACKGROUND, priority=1) for n in range(11, 14)))

    assert sorted(evicted) == [2, 3, 4]


def test_a_backlog_of_one_lane_closes_no_other():
    book = a_schedule(slots=1, policy=a_policy(BOUNDS))
    book.submit(a_ticket(99))
    granted(book)
    for number in range(1, 4):
        book.submit(a_ticket(number, BACKGROUND))

    book.submit(a_ticket(4, INTERACTIVE))

    with pytest.raises(QueueFull):
        book.submit(a_ticket(5, BACKGROUND))


def test_background_work_may_wait_longer_than_others():
    book = full()
    book.submit(a_ticket(1, BACKGROUND), a_ticket(2, BACKGROUND))
    book.submit(a_ticket(3, LONG))

    assert [ticket.request for ticket, _ in book.expire(10.0)] == [3]
    assert [ticket.request for ticket, _ in book.expire(50.0)] == [1, 2]


def test_a_ticket_may_have_a_deadline_of_its_own():
    book = full()
    book.submit(a_ticket(1, deadline_s=2.0), a_ticket(2, at=1.0))

    [(ticket, error)] = book.expire(2.0)

    assert (ticket.request, error.waited_s) == (1, 2.0)
    assert list(book.expire(10.9)) == []


def test_a_deadline_of_its_own_counts_no_more_once_it_has_had_a_slot():
    book = a_schedule(slots=1, policy=a_policy(BOUNDS))
    book.submit(a_ticket(1, BACKGROUND, deadline_s=2.0))
    granted(book)
    book.submit(a_ticket(9))
    list(book.preempt(0.0))
    book.paused(EngineRequest(1), 1.0)

    assert [ticket.request for ticket, _ in book.expire(9.0)] == []


def test_nothing_is_queued_of_nothing():
    assert a_schedule().submit() == ()

"""What one more request would find: who is before it, and whose slots it may have."""

import math

import pytest

from antiphon.actors.scheduling.outlook import Outlook
from antiphon.actors.scheduling.schedule import Schedule
from antiphon.ids import EngineRequest
from antiphon.testing.scheduling import a_policy, a_schedule, a_ticket, granted
from antiphon.workload import Workload, WorkloadClass

INTERACTIVE, _, LONG, BACKGROUND = WorkloadClass


def seen_by(lane: WorkloadClass, book: Schedule, now: float = 0.0) -> Outlook:
    return book.outlook(Workload(lane=lane), now)


def crowded(lane: WorkloadClass, *, waiting: int) -> Schedule:
    """Four slots, half of them only for urgent work, all taken by chats; and so many more wait."""
    book = a_schedule(slots=4, policy=a_policy(interactive_reserve=0.5, aging_s=30.0))
    for number in range(4):
        book.submit(a_ticket(number))
    assert granted(book) == [0, 1, 2, 3]
    for number in range(waiting):
        book.submit(a_ticket(4 + number, lane))
    return book


def test_everybody_urgent_who_waits_is_before_background_work():
    book = crowded(INTERACTIVE, waiting=3)

    assert seen_by(BACKGROUND, book).ahead == 3


def test_where_nothing_is_paused_background_work_has_its_share_beside_the_urgent():
    book = a_schedule(slots=1, policy=a_policy(preempt=False))
    for number in range(4):
        book.submit(a_ticket(number))
    granted(book)

    outlook = seen_by(BACKGROUND, book)

    assert (outlook.ahead, outlook.overtaking) == (0, 0.0)


def test_any_slot_that_comes_free_will_do_while_its_lanes_have_not_all_they_may_have():
    shared = seen_by(LONG, crowded(LONG, waiting=1)).shared

    assert shared is not None
    assert (shared.slots, shared.running, shared.ahead) == (2, 0, 1)
    assert shared.short == 0


def test_what_its_lanes_may_have_is_waited_for_although_there_are_free_slots():
    book = a_schedule(slots=4, policy=a_policy(interactive_reserve=0.5, long_prefills=4))
    for number in range(3):
        book.submit(a_ticket(number, LONG))
    assert granted(book) == [0, 1]

    outlook = seen_by(LONG, book)

    assert outlook.free_slots == 2
    assert outlook.shared is not None
    assert outlook.shared.short == 2


def test_only_the_server_s_own_work_may_wait_for_ever():
    book = crowded(INTERACTIVE, waiting=3)

    assert seen_by(BACKGROUND, book).longest_wait_s == 30.0
    own = book.outlook(Workload(lane=BACKGROUND, upkeep=True), 0.0)
    assert own.longest_wait_s == math.inf


def test_chats_share_with_nobody_and_are_not_overtaken():
    outlook = seen_by(INTERACTIVE, crowded(LONG, waiting=2))

    assert outlook.shared is None
    assert (outlook.overtaking, outlook.longest_wait_s) == (0.0, math.inf)


def test_background_work_is_overtaken_by_as_many_as_have_come_of_late():
    book = a_schedule(slots=100)
    for second in range(120):
        for more in range(2):
            book.submit(a_ticket(2 * second + more, at=float(second)))
        granted(book, now=float(second))
        for more in range(2):
            book.release(EngineRequest(2 * second + more), float(second))

    now, later = (seen_by(BACKGROUND, book, at).overtaking for at in (119.0, 240.0))

    assert now == pytest.approx(2.0, rel=0.1)
    assert later < now / 10

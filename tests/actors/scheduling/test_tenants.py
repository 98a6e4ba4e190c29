"""Fair shares among the tenants of a lane."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.actors.scheduling.schedule import Schedule
from antiphon.testing.scheduling import Pump, a_policy, a_schedule, a_ticket, granted


def test_a_flood_does_not_delay_another_tenants_single_message():
    book = a_schedule(slots=1)
    book.submit(a_ticket(0, tenant="flood"))
    granted(book)
    for number in range(1, 51):
        book.submit(a_ticket(number, tenant="flood"))
    book.submit(a_ticket(99, tenant="single"))

    order = []
    for _ in range(2):
        for lease in book.leases():
            book.release(lease.ticket.request, 1.0)
        order += granted(book)

    assert 99 in order


def test_a_tenant_may_hold_half_of_all_slots_while_there_are_others():
    book = a_schedule(slots=16)
    book.submit(a_ticket(0, tenant="single"))
    for number in range(1, 40):
        book.submit(a_ticket(number, tenant="flood"))
    assert len(granted(book)) == 9
    assert book.outlook(a_ticket(0, tenant="flood").workload, 0.0).free_slots == 0

    book.submit(a_ticket(99, tenant="single"))

    assert granted(book) == [99]


def test_a_tenant_that_is_alone_has_all_slots():
    book = a_schedule(slots=16)
    for number in range(1, 40):
        book.submit(a_ticket(number, tenant="alone"))

    assert len(granted(book)) == 16


def test_age_gives_no_tenant_the_slots_that_are_kept_for_others():
    book = a_schedule(slots=16, policy=a_policy(aging_s=30.0))
    book.submit(a_ticket(0, tenant="single"))
    for number in range(1, 40):
        book.submit(a_ticket(number, tenant="flood"))

    assert len(granted(book, 40.0)) == 9


def test_within_a_tenant_it_is_first_come_first_served():
    book = a_schedule(slots=9)
    for number, at in ((1, 3.0), (2, 1.0), (3, 2.0)):
        book.submit(a_ticket(number, at=at))

    assert granted(book) == [2, 3, 1]


def test_who_has_had_least_goes_next_by_tokens_and_not_by_requests():
    book = a_schedule(slots=1)
    for number in range(1, 3):
        book.submit(a_ticket(number, tenant="long", prompt=900))
    for number in range(3, 9):
        book.submit(a_ticket(number, tenant="short", prompt=90))

    order = serve_all(book)

    assert order.index(2) > 5


def test_tokens_of_answers_count_as_they_are_gained_and_twice():
    book = a_schedule(slots=2)
    book.submit(a_ticket(1, tenant="talks", prompt=10))
    book.submit(a_ticket(2, tenant="reads", prompt=10))
    granted(book)
    book.gained(a_ticket(1).request, 30)
    book.submit(a_ticket(3, tenant="reads", prompt=55))
    book.submit(a_ticket(4, tenant="talks", prompt=10))
    for number in range(5, 8):
        book.submit(a_ticket(number, tenant="reads", prompt=10))

    # 10 + 2 * 30 of the one are level with 10 + 55 of the other, and 10 more put it behind.
    assert serve_all(book)[:3] == [3, 5, 4]


def test_a_tenant_that_was_idle_has_saved_nothing():
    book = a_schedule(slots=1)
    for number in range(1, 40):
        book.submit(a_ticket(number, tenant="busy"))
    for number in range(1, 20):
        granted(book)
        book.release(a_ticket(number).request, 1.0)
    for number in range(50, 90):
        book.submit(a_ticket(number, tenant="idle"))

    order = serve_all(book)[:10]

    assert sorted(number >= 50 for number in order) == [False] * 5 + [True] * 5


def test_a_tenant_of_twice_the_weight_gets_twice_the_service():
    book = a_schedule(slots=1)
    for number in range(1, 100):
        book.submit(a_ticket(number, tenant="heavy", weight=2.0))
        book.submit(a_ticket(number + 100, tenant="light"))

    order = serve_all(book)[:60]

    assert sum(number < 100 for number in order) == pytest.approx(40, abs=1)


def test_higher_priorities_go_first_within_a_lane():
    book = a_schedule(slots=1)
    book.submit(a_ticket(1, priority=0), a_ticket(2, priority=0))
    book.submit(a_ticket(3, priority=2))
    book.submit(a_ticket(4, priority=1))

    assert serve_all(book) == [3, 4, 1, 2]


def test_tenants_that_left_are_forgotten_and_those_that_run_are_not():
    book = a_schedule(slots=1)
    book.submit(a_ticket(0, tenant="runs"))
    granted(book)
    for number in range(1, 1000):
        book.submit(a_ticket(number, tenant=f"user-{number}"))
        book.cancel(a_ticket(number).request)

    for minute in range(4):
        assert list(book.expire(minute * 60.0)) == []
    book.gained(a_ticket(0).request, 5)

    assert book.release(a_ticket(0).request, 300.0) is not None
    [tenants] = book._lanes[a_ticket(0).workload.lane]._tenants.values()
    assert len(tenants._tenants) <= 1
    assert len(tenants._turns) <= 1


def test_a_tenant_whose_answer_runs_for_minutes_is_charged_for_it():
    book = a_schedule(slots=1)
    book.submit(a_ticket(1, tenant="talks"))
    granted(book)
    for minute in range(4):
        assert list(book.expire(minute * 60.0)) == []
    for number in range(2, 5):
        book.submit(a_ticket(number, tenant="reads"))
    book.gained(a_ticket(1).request, 500)
    for number in range(5, 8):
        book.submit(a_ticket(number, tenant="talks"))

    assert serve_all(book) == [2, 3, 4, 5, 6, 7]


@settings(max_examples=60, deadline=None)
@given(
    slots=st.integers(1, 4),
    sizes=st.lists(
        st.tuples(st.booleans(), st.integers(1, 300), st.integers(1, 30)), min_size=20, max_size=80
    ),
    weight=st.sampled_from([1.0, 3.0]),
)
def test_the_service_of_two_tenants_that_always_wait_stays_within_the_papers_bound(
    slots: int, sizes: list[tuple[bool, int, int]], weight: float
):
    # Sheng et al., theorem 4.4: |W1 - W2| <= 2 max(wp * longest prompt, wq * tokens in the batch).
    pump = Pump(schedule=a_schedule(slots=slots))
    waiting = {"a": 0, "b": 0}
    weights = {"a": weight, "b": 1.0}
    for number, (is_a, prompt, answer) in enumerate(sizes):
        tenant = "a" if is_a else "b"
        waiting[tenant] += 1
        pump.submit(
            a_ticket(number, tenant=tenant, weight=weights[tenant], prompt=prompt, answer=answer)
        )
    bound = 2 * max(300.0, 2.0 * slots * 30)
    pump.admit()

    while both_wait(pump):
        shares = [pump.service.get(name, 0.0) / weights[name] for name in ("a", "b")]
        assert abs(shares[0] - shares[1]) <= bound
        pump.step()


def both_wait(pump: Pump) -> bool:
    [lane, *_] = pump.schedule._all
    tenants = {each.ticket.workload.tenant for each in lane.waiting.values()}
    return tenants == {"a", "b"}


def serve_all(book: Schedule) -> list[int]:
    """One after another; what each was charged for is its prompt."""
    order: list[int] = []
    for now in itertools.count():
        for lease in book.leases():
            book.release(lease.ticket.request, float(now))
        got = granted(book, float(now))
        if not got:
            return order
        order += got
    raise AssertionError("there is an end to counting")

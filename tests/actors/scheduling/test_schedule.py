"""The pure schedule: slots, KV reservation, queue bounds, deadlines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.actors.scheduling.schedule import (
    Capacity,
    Lease,
    Policy,
    QueueBounds,
    Schedule,
    Ticket,
)
from antiphon.errors import ContextLengthExceeded, QueueFull
from antiphon.ids import EngineRequest, RequestId

BOUNDS = QueueBounds(max_requests=2, max_tokens=1000, deadline_s=10.0)


def ticket(number: int, *, prompt: int = 10, answer: int = 22, at: float = 0.0) -> Ticket:
    return Ticket(
        request=EngineRequest(number),
        turn=RequestId(f"req_{number}"),
        prompt_tokens=prompt,
        max_tokens=answer,
        queued_at=at,
    )


def schedule(*, slots: int = 2, blocks: int = 8, bounds: QueueBounds = BOUNDS) -> Schedule:
    return Schedule(Capacity(slots=slots, kv_blocks=blocks, block_size=32), Policy(bounds=bounds))


def granted(book: Schedule, now: float = 0.0) -> list[int]:
    return [lease.ticket.request for lease in book.grant(now)]


def test_slots_are_granted_in_order_of_arrival():
    book = schedule()

    book.submit(ticket(1))
    book.submit(ticket(2))
    first = granted(book)
    book.submit(ticket(3))

    assert first + granted(book) == [1, 2]
    assert book.load().waiting == 1


def test_room_is_what_nobody_holds_and_what_is_promised():
    book = schedule(slots=2, blocks=8)
    book.submit(ticket(1))
    before = book.room()

    granted(book)

    assert (before.slots, before.free_slots, before.reserved) == (2, 2, 0.0)
    after = book.room()
    assert (after.slots, after.free_slots, after.reserved) == (2, 1, 0.125)


def test_a_released_slot_goes_to_the_head_of_the_queue():
    book = schedule(slots=1)
    book.submit(ticket(1))
    granted(book)
    book.submit(ticket(2))

    book.release(EngineRequest(1), 1.0)

    assert granted(book) == [2]


def test_no_slot_is_granted_without_its_kv_blocks():
    book = schedule(slots=2, blocks=3)
    book.submit(ticket(1, answer=54))
    book.submit(ticket(2, answer=54))

    assert granted(book) == [1]
    assert book.load().reserved_blocks == 2


def test_a_small_request_does_not_overtake_a_large_head():
    book = schedule(slots=3, blocks=4)
    book.submit(ticket(1, answer=54))
    granted(book)
    book.submit(ticket(2, answer=86))
    book.submit(ticket(3))

    assert granted(book) == []


def test_a_request_larger_than_the_pool_is_refused_with_the_numbers():
    book = schedule(blocks=2)

    with pytest.raises(ContextLengthExceeded) as caught:
        book.submit(ticket(1, prompt=60, answer=30))

    assert (caught.value.window, caught.value.prompt_tokens, caught.value.max_tokens) == (
        64,
        60,
        30,
    )


def test_more_waiting_requests_than_the_bound_are_refused():
    book = schedule(slots=1)
    book.submit(ticket(1))
    granted(book)
    book.submit(ticket(2))
    book.submit(ticket(3))

    with pytest.raises(QueueFull):
        book.submit(ticket(4))

    assert book.load().waiting == 2


def test_more_waiting_tokens_than_the_bound_are_refused():
    book = schedule(
        slots=1, blocks=99, bounds=QueueBounds(max_requests=9, max_tokens=60, deadline_s=9)
    )
    book.submit(ticket(1))
    granted(book)
    book.submit(ticket(2))

    with pytest.raises(QueueFull, match="too many tokens"):
        book.submit(ticket(3))


def test_one_request_over_the_token_bound_may_wait_alone():
    book = schedule(
        slots=1, blocks=99, bounds=QueueBounds(max_requests=9, max_tokens=60, deadline_s=9)
    )
    book.submit(ticket(1))
    granted(book)

    book.submit(ticket(2, answer=500))

    assert book.load().waiting == 1


def test_choices_of_a_turn_are_queued_all_or_none():
    book = schedule(slots=1)
    book.submit(ticket(1))
    granted(book)

    with pytest.raises(QueueFull):
        book.submit(ticket(2), ticket(3), ticket(4))

    assert book.load().waiting == 0
    assert book.load().waiting_tokens == 0


def test_what_a_free_slot_takes_at_once_does_not_count_as_waiting():
    book = schedule(slots=4, bounds=QueueBounds(max_requests=1, max_tokens=1, deadline_s=1))

    book.submit(ticket(1), ticket(2), ticket(3))

    assert granted(book) == [1, 2, 3]


def test_cancelling_a_waiting_ticket_needs_no_abort():
    book = schedule(slots=1)
    book.submit(ticket(1))
    book.submit(ticket(2))
    granted(book)

    assert isinstance(book.cancel(EngineRequest(2)), Ticket)
    assert book.cancel(EngineRequest(2)) is None
    assert book.load().waiting == 0


def test_a_lease_is_aborted_once_and_holds_its_slot_until_released():
    book = schedule(slots=1)
    book.submit(ticket(1))
    granted(book)
    book.submit(ticket(2))

    first = book.cancel(EngineRequest(1))
    second = book.cancel(EngineRequest(1))

    assert isinstance(first, Lease)
    assert first.releasing
    assert second is None
    assert granted(book) == []


def test_a_second_release_of_the_same_lease_changes_nothing():
    book = schedule(slots=1)
    book.submit(ticket(1))
    granted(book)

    assert book.release(EngineRequest(1), 1.0) is not None
    assert book.release(EngineRequest(1), 1.0) is None
    assert book.load().running == 0


def test_a_ticket_expires_at_its_queue_deadline():
    book = schedule(slots=1)
    book.submit(ticket(1))
    granted(book)
    book.submit(ticket(2, at=5.0))

    assert list(book.expire(14.9)) == []
    [(expired, error)] = book.expire(15.0)

    assert expired.request == 2
    assert error.waited_s == 10.0


def test_a_ticket_that_has_waited_before_takes_its_place_in_the_queue():
    book = schedule(slots=1, bounds=QueueBounds(max_requests=9, max_tokens=999, deadline_s=10))
    for number, at in ((1, 3.0), (2, 4.0), (3, 1.0), (4, 2.0)):
        book.submit(ticket(number, at=at))

    order = granted(book)
    [(expired, _)] = book.expire(12.0)

    assert order == [3]
    assert expired.request == 4


def test_retry_advice_grows_with_the_queue_and_stays_within_what_clients_heed():
    bounds = QueueBounds(max_requests=10_000, max_tokens=10**9, deadline_s=9)
    book = schedule(slots=1, blocks=99, bounds=bounds)
    book.submit(ticket(0))
    granted(book)
    empty = book.retry_after_s()

    for number in range(1, 1000):
        book.submit(ticket(number))

    assert empty == 1.0
    assert book.retry_after_s() == 60.0


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["submit", "grant", "cancel", "release", "expire"]),
            st.integers(0, 12),
            st.integers(1, 200),
        )
    )
)
def test_free_and_leased_slots_and_blocks_always_add_up(moves: list[tuple[str, int, int]]):
    book = schedule(
        slots=3, blocks=10, bounds=QueueBounds(max_requests=4, max_tokens=500, deadline_s=5)
    )
    now = 0.0
    submitted: set[int] = set()

    for move, number, size in moves:
        now += 0.5
        request = EngineRequest(number)
        match move:
            case "submit" if number not in submitted:
                submitted.add(number)
                try:
                    book.submit(ticket(number, answer=size, at=now))
                except (QueueFull, ContextLengthExceeded):
                    pass
            case "grant":
                list(book.grant(now))
            case "cancel":
                book.cancel(request)
            case "release":
                book.release(request, now)
            case "expire":
                list(book.expire(now))

        leases = book.leases()
        load = book.load()
        assert load.running == len(leases) <= 3
        assert len({lease.slot for lease in leases}) == len(leases)
        assert load.reserved_blocks == sum(lease.blocks for lease in leases) <= 10
        assert 0 <= load.waiting <= 4
        assert load.waiting_tokens >= load.waiting

"""How lanes share a pool: weights, the reserve, long prompts, age, KV blocks."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.actors.scheduling.schedule import Capacity, Policy, QueueBounds, Schedule, Ticket
from antiphon.ids import EngineRequest
from antiphon.scheduling_settings import SchedulingSettings
from antiphon.testing.scheduling import (
    ROOMY,
    Pump,
    a_policy,
    a_schedule,
    a_ticket,
    granted,
)
from antiphon.workload import Workload, WorkloadClass

INTERACTIVE, TOOL, LONG, BACKGROUND = WorkloadClass


def release(book: Schedule, *numbers: int, now: float = 0.0) -> None:
    for number in numbers:
        assert book.release(EngineRequest(number), now) is not None


# shares


def test_lanes_that_wait_share_by_their_weights():
    book = a_schedule(slots=1, policy=a_policy(preempt=False, long_prefills=9))
    number = 0
    for lane in WorkloadClass:
        for _ in range(200):
            number += 1
            book.submit(a_ticket(number, lane))

    counts = dict.fromkeys(WorkloadClass, 0)
    for _ in range(150):
        [lease] = book.grant(0.0)
        counts[lease.ticket.workload.lane] += 1
        book.release(lease.ticket.request, 0.0)

    assert list(counts.values()) == pytest.approx([80, 40, 20, 10], abs=1)


def test_a_lane_that_was_idle_has_saved_nothing():
    book = a_schedule(slots=1, policy=a_policy(preempt=False))
    for number in range(1, 400):
        book.submit(a_ticket(number, BACKGROUND))
    for number in range(1, 200):
        assert granted(book) == [number]
        release(book, number)
    for number in range(500, 700):
        book.submit(a_ticket(number, INTERACTIVE))

    order = []
    for _ in range(90):
        order += granted(book)
        release(book, order[-1])

    assert sum(number >= 500 for number in order) == pytest.approx(80, abs=1)


def test_background_is_not_begun_while_it_would_only_be_paused_again():
    book = a_schedule(slots=3, blocks=6)
    book.submit(a_ticket(1, answer=100))
    assert granted(book) == [1]
    book.submit(a_ticket(2, answer=100))
    book.submit(a_ticket(3, BACKGROUND))

    assert granted(book) == []


# the reserve


def test_a_part_of_all_slots_is_only_for_those_who_wait_for_a_first_token():
    book = a_schedule(slots=4, policy=a_policy(interactive_reserve=0.25, long_prefills=9))
    for number in range(1, 5):
        book.submit(a_ticket(number, LONG))
    for number in range(5, 9):
        book.submit(a_ticket(number, BACKGROUND))
    first = granted(book)

    book.submit(a_ticket(9, INTERACTIVE))

    assert len(first) == 3
    assert granted(book) == [9]


def test_the_reserve_is_not_more_than_all_others_leave():
    book = a_schedule(slots=4, policy=a_policy(interactive_reserve=0.25))
    for number in range(1, 4):
        book.submit(a_ticket(number, INTERACTIVE))
    granted(book)

    book.submit(a_ticket(4, BACKGROUND))

    assert granted(book) == [4]


@pytest.mark.parametrize(("part", "slots", "others"), [(0.25, 1, 1), (0.99, 4, 1), (0.0, 4, 4)])
def test_the_reserve_is_never_all_slots(part: float, slots: int, others: int):
    book = a_schedule(slots=slots, policy=a_policy(interactive_reserve=part))
    for number in range(1, 9):
        book.submit(a_ticket(number, BACKGROUND))

    assert len(granted(book)) == others


# long prompts


def test_no_more_long_prompts_are_read_at_once_than_may_be():
    book = a_schedule(slots=4)
    for number in (1, 2):
        book.submit(a_ticket(number, LONG, prompt=2000))
    book.submit(a_ticket(3))

    assert granted(book) == [3, 1]
    book.first_token(EngineRequest(1), 1.0)
    assert granted(book) == [2]


def test_a_long_prompt_that_gains_tokens_is_read():
    book = a_schedule(slots=4)
    for number in (1, 2):
        book.submit(a_ticket(number, LONG, prompt=2000))
    assert granted(book) == [1]

    book.gained(EngineRequest(1), 1)

    assert granted(book) == [2]


def test_a_long_background_prompt_is_long_too():
    book = a_schedule(slots=4)
    book.submit(a_ticket(1, LONG, prompt=2000))
    book.submit(a_ticket(2, BACKGROUND, prompt=2000))

    assert len(granted(book)) == 1


def test_a_long_prompt_that_is_given_up_makes_room_for_the_next():
    book = a_schedule(slots=4)
    for number in (1, 2):
        book.submit(a_ticket(number, LONG, prompt=2000))
    assert granted(book) == [1]

    release(book, 1)

    assert granted(book) == [2]


# age


def test_every_fourth_grant_goes_to_what_has_aged():
    book = a_schedule(slots=1, policy=a_policy(aging_s=30.0))
    book.submit(a_ticket(1, BACKGROUND, at=0.0))
    book.submit(a_ticket(2, priority=-1, at=1.0))
    order = []
    for number in range(10, 30):
        book.submit(a_ticket(number, priority=1, tenant=str(number), at=40.0))

    for _ in range(9):
        order += granted(book, 40.0)
        release(book, order[-1], now=40.0)

    assert order[3] == 1
    assert order[7] == 2
    assert all(number >= 10 for number in (*order[:3], *order[4:7], order[8]))


def test_the_server_s_own_work_never_ages_and_hides_nobody_who_does():
    book = a_schedule(slots=1, policy=a_policy(aging_s=30.0))
    book.submit(a_ticket(1, BACKGROUND, upkeep=True, at=0.0))
    book.submit(a_ticket(2, BACKGROUND, at=1.0))
    order = []
    for number in range(10, 20):
        book.submit(a_ticket(number, at=40.0))

    for _ in range(12):
        order += granted(book, 40.0)
        release(book, order[-1], now=40.0)

    assert order[3] == 2
    assert order[-1] == 1


def test_a_deep_backlog_that_has_aged_leaves_three_of_four_grants_to_what_is_new():
    book = a_schedule(slots=1, policy=a_policy(aging_s=30.0))
    for number in range(1, 100):
        book.submit(a_ticket(number, BACKGROUND, at=0.0))
    for number in range(100, 200):
        book.submit(a_ticket(number, at=100.0))

    order = []
    for _ in range(40):
        order += granted(book, 100.0)
        release(book, order[-1], now=100.0)

    assert sum(number >= 100 for number in order) == 30


def test_what_has_aged_and_goes_anyway_counts_as_passed_over_by_nobody():
    book = a_schedule(slots=1, policy=a_policy(aging_s=30.0))
    for number in range(1, 6):
        book.submit(a_ticket(number))
    order = []
    for _ in range(3):
        order += granted(book, 40.0)
        release(book, order[-1], now=40.0)
    for number in range(10, 20):
        book.submit(a_ticket(number, priority=1, at=40.0))

    for _ in range(4):
        order += granted(book, 40.0)
        release(book, order[-1], now=40.0)

    assert order == [1, 2, 3, 10, 11, 12, 4]


def test_age_gives_nobody_a_slot_that_is_kept_for_others():
    book = a_schedule(slots=2, policy=a_policy(aging_s=30.0, interactive_reserve=0.5))
    book.submit(a_ticket(1, BACKGROUND), a_ticket(2, BACKGROUND))
    assert granted(book) == [1]
    for number in range(10, 15):
        book.submit(a_ticket(number, at=40.0))

    for number in range(10, 15):
        assert granted(book, 40.0) == [number]
        release(book, number, now=40.0)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    slots=st.integers(1, 3),
    flood=st.sampled_from(["priority", "tenants", "lane", "small"]),
)
def test_whatever_comes_everything_is_granted_within_its_bound(seed: int, slots: int, flood: str):
    """Each answer takes at most `held_s`; a grant that is due to age comes at the latest with the
    fourth, and one that needs more KV than is free waits for those that run then."""
    dice = random.Random(seed)
    aging_s, held_s = 5.0, 10.0
    settings_ = {"aging_s": aging_s, "interactive_reserve": 0.25, "preempt": False}
    pump = Pump(schedule=a_schedule(slots=slots, blocks=24, policy=a_policy(**settings_)))
    number = 0

    def some() -> Ticket:
        nonlocal number
        number += 1
        lane = dice.choice(list(WorkloadClass))
        return a_ticket(
            number,
            lane,
            tenant=dice.choice("ab"),
            priority=dice.choice((0, 1)),
            prompt=dice.choice((10, 100, 500)),
            answer=dice.choice((1, 5, 100)),
            at=pump.now,
        )

    def flooding() -> Ticket:
        nonlocal number
        number += 1
        return a_ticket(
            number,
            WorkloadClass.TOOL if flood == "lane" else WorkloadClass.INTERACTIVE,
            tenant=str(number) if flood == "tenants" else "flood",
            priority=9 if flood == "priority" else 0,
            prompt=10,
            answer=dice.choice((1, 20)),
            at=pump.now,
        )

    victims = [some() for _ in range(6)]
    for victim in victims:
        pump.submit(victim)
    steps = int((aging_s + (5 * len(victims) + 2) * held_s) / pump.step_s)
    for _ in range(steps):
        if all(victim.request in pump.ended_at for victim in victims):
            return
        pump.step([flooding() for _ in range(dice.randrange(3))])

    assert all(victim.request in pump.granted_at for victim in victims)


# KV blocks


def test_a_ticket_that_does_not_fit_blocks_no_slot_for_those_that_do():
    book = a_schedule(slots=3, blocks=4)
    book.submit(a_ticket(1, answer=54))
    granted(book)
    book.submit(a_ticket(2, answer=86, tenant="large"))
    book.submit(a_ticket(3, tenant="small"))

    assert granted(book) == [3]


def test_a_ticket_that_has_aged_and_does_not_fit_is_passed_no_more_by_what_would_delay_it():
    book = a_schedule(slots=4, blocks=6, policy=a_policy(aging_s=30.0))
    book.submit(a_ticket(1, answer=54), a_ticket(2, answer=54))
    assert granted(book) == [1, 2]
    book.submit(a_ticket(3, answer=118, tenant="large"))  # needs four of the six blocks
    for number in range(4, 9):
        book.submit(a_ticket(number, tenant=f"small-{number}", at=40.0))

    # Two blocks are left to others: after that, nothing more until it has its four.
    assert granted(book, 40.0) == [4, 5]
    release(book, 1, now=41.0)
    assert granted(book, 41.0) == []
    release(book, 4, now=42.0)
    assert granted(book, 42.0) == [6]
    release(book, 2, now=43.0)
    assert granted(book, 43.0)[0] == 3


def test_a_claim_on_kv_waits_for_a_slot_that_its_lane_may_have():
    policy = a_policy(aging_s=30.0, interactive_reserve=0.3)
    book = a_schedule(slots=3, blocks=6, policy=policy)
    book.submit(a_ticket(1, BACKGROUND, answer=54))
    book.submit(a_ticket(2, answer=54))
    assert sorted(granted(book)) == [1, 2]
    book.submit(a_ticket(3, BACKGROUND, answer=118))  # four blocks
    for number in (4, 5):
        book.submit(a_ticket(number, BACKGROUND, tenant=str(number), at=40.0))
    assert granted(book, 40.0) == [4]
    release(book, 1, now=40.0)
    assert granted(book, 40.0) == [5]

    release(book, 2, now=40.0)
    assert granted(book, 40.0) == []
    release(book, 4, now=40.0)
    assert granted(book, 40.0) == [3]


def test_a_claim_on_kv_ends_with_its_ticket():
    book = a_schedule(slots=4, blocks=4, policy=a_policy(aging_s=30.0))
    book.submit(a_ticket(1, answer=54))
    granted(book)
    book.submit(a_ticket(2, answer=118, tenant="large"))
    book.submit(a_ticket(3, tenant="small", at=40.0))
    assert granted(book, 40.0) == []

    book.cancel(EngineRequest(2))

    assert granted(book, 40.0) == [3]


# first come, first served


def test_fcfs_knows_no_lanes_no_priorities_and_no_tenants():
    policy = a_policy(policy="fcfs", interactive_reserve=0.5, long_prefills=1)
    book = a_schedule(slots=9, policy=policy)
    lanes = (BACKGROUND, LONG, BACKGROUND, LONG, INTERACTIVE, TOOL)
    for number, lane in enumerate(lanes, start=1):
        book.submit(a_ticket(number, lane, tenant="ab"[number % 2], priority=number))

    assert granted(book) == [1, 2, 3, 4, 5, 6]


def test_fcfs_makes_no_difference_to_the_server_s_own_work():
    book = a_schedule(slots=1, policy=a_policy(policy="fcfs"))
    for number, upkeep in enumerate((False, True, False)):
        book.submit(a_ticket(number, BACKGROUND if upkeep else INTERACTIVE, upkeep=upkeep))

    order = []
    for _ in range(3):
        order += granted(book)
        release(book, order[-1])

    assert order == [0, 1, 2]


def test_fcfs_is_never_overtaken_and_pauses_nobody():
    book = a_schedule(slots=3, blocks=4, policy=a_policy(policy="fcfs"))
    book.submit(a_ticket(1, BACKGROUND, answer=54))
    granted(book)
    book.submit(a_ticket(2, answer=86, tenant="large"))
    book.submit(a_ticket(3, tenant="small"))

    assert granted(book) == []
    assert list(book.preempt(0.0)) == []


def test_fcfs_has_one_queue_with_one_bound_and_one_deadline():
    bounds = QueueBounds(max_requests=2, max_tokens=1000, deadline_s=10.0)
    policy = Policy(bounds=bounds, scheduling=SchedulingSettings(policy="fcfs"))
    book = Schedule(Capacity(slots=1, kv_blocks=99, block_size=32), policy)
    book.submit(a_ticket(1))
    granted(book)
    book.submit(a_ticket(2, BACKGROUND))
    book.submit(a_ticket(3, LONG))

    with pytest.raises(Exception, match="too many requests"):
        book.submit(a_ticket(4, priority=5))

    assert {ticket.request for ticket, _ in book.expire(10.0)} == {2, 3}


def test_the_policy_may_change_while_tickets_wait():
    book = a_schedule(slots=1)
    book.submit(a_ticket(1, BACKGROUND))
    book.submit(a_ticket(2, INTERACTIVE, at=1.0))
    book.policy = a_policy(policy="fcfs")
    assert granted(book) == [1]

    book.submit(a_ticket(3, BACKGROUND, at=2.0))
    book.submit(a_ticket(4, INTERACTIVE, at=3.0))
    book.policy = a_policy()
    release(book, 1)

    assert granted(book) == [2]


# what predictions are made from


def test_an_outlook_counts_what_would_go_before():
    book = a_schedule(slots=1, blocks=100)
    book.submit(a_ticket(0, prompt=40))
    granted(book)
    for number in range(1, 11):
        book.submit(a_ticket(number, tenant="flood", prompt=20))
    book.submit(a_ticket(11, tenant="other", prompt=20))
    book.submit(a_ticket(12, BACKGROUND))

    new = book.outlook(Workload(tenant="new"), 0.0)
    flood = book.outlook(Workload(tenant="flood"), 0.0)
    paying = book.outlook(Workload(tenant="new", priority=1), 0.0)

    assert (new.ahead, flood.ahead, paying.ahead) == (2, 11, 0)
    assert new.ahead_prompt_tokens == 40
    assert (new.free_slots, new.running, new.prefilling, new.prefill_tokens) == (0, 1, 1, 40)
    assert (new.free_blocks, new.reserved_blocks) == (98, 2)


def test_an_outlook_counts_slots_that_would_be_given_up_and_not_those_kept_for_others():
    policy = a_policy(interactive_reserve=0.5)
    book = a_schedule(slots=4, policy=policy)
    book.submit(a_ticket(1, BACKGROUND), a_ticket(2, BACKGROUND))
    granted(book)

    assert book.outlook(Workload(), 0.0).free_slots == 4
    background = book.outlook(Workload(lane=BACKGROUND), 0.0)
    assert background.free_slots == 2
    assert background.shared is not None
    assert background.shared.short == 1


def test_an_outlook_of_a_long_prompt_names_what_must_be_read_before_it():
    book = a_schedule(slots=4)
    book.submit(a_ticket(1, LONG, prompt=2000))
    granted(book)
    book.prefilled(500)

    before = book.outlook(Workload(lane=LONG), 0.0)
    book.first_token(EngineRequest(1), 1.0)
    after = book.outlook(Workload(lane=LONG), 1.0)

    assert (before.first_tokens, after.first_tokens) == (1500, 0)
    assert (before.decoding, after.decoding) == (0, 1)


def test_retry_advice_is_for_the_lane_that_is_full():
    book = a_schedule(slots=4, policy=a_policy(ROOMY, interactive_reserve=0.25))
    for number in range(1, 200):
        book.submit(a_ticket(number, BACKGROUND))
    granted(book)

    assert book.retry_after_s(INTERACTIVE) == 1.0
    assert book.retry_after_s(BACKGROUND) == 60.0

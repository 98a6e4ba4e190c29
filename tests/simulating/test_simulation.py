import random
from statistics import fmean

import msgspec
import pytest

from antiphon.scheduling_settings import SchedulingSettings
from antiphon.settings import QueueSettings
from antiphon.simulating.load_models import HUNDRED_MILLION, Surge, arrivals
from antiphon.simulating.records import LANES, Ending, merged
from antiphon.simulating.report import encode_report, report_of
from antiphon.simulating.simulation import Setup, simulate
from antiphon.simulating.trace import Arrival
from antiphon.testing.engine_models import clockwork

PATIENT = QueueSettings(max_requests=10**6, max_tokens=10**9, deadline_s=1e6)
FCFS = SchedulingSettings(policy="fcfs")


def setup(**fields):
    whole = {"engine": clockwork(), "queue": PATIENT, "scheduling": FCFS, "admission": False}
    return Setup(**(whole | fields))


def asked(at, answer=5, prompt=1, **fields):
    return Arrival(at=at, prompt_tokens=prompt, output_tokens=answer, max_tokens=answer, **fields)


def all_of(outcome):
    return merged(outcome.records.select())


def test_one_slot_serves_one_after_another():
    outcome = simulate(setup(), [asked(0.0), asked(1.0), asked(2.0)])

    record = all_of(outcome)
    assert list(record.first_s) == pytest.approx([1.0, 5.0, 9.0])
    assert list(record.waited_s) == pytest.approx([0.0, 4.0, 8.0])
    assert list(record.between_s) == pytest.approx([1.0, 1.0, 1.0])
    assert outcome.ends_at == pytest.approx(15.0)


def test_random_arrivals_at_one_slot_wait_as_the_formula_says():
    """M/D/1: the mean wait is ρ·D / 2(1-ρ)."""
    dice = random.Random(7)
    at, coming = 0.0, []
    for _ in range(8000):
        at += dice.expovariate(0.14)  # of 5 s each: ρ = 0.7
        coming.append(asked(at))

    record = all_of(simulate(setup(), coming))

    assert fmean(record.waited_s) == pytest.approx(0.7 * 5 / (2 * 0.3), rel=0.1)


def test_slots_are_served_at_the_same_time():
    outcome = simulate(setup(engine=clockwork(slots=3)), [asked(0.0) for _ in range(3)])

    assert outcome.ends_at == pytest.approx(5.0)


def test_what_is_reserved_in_kv_blocks_keeps_others_out():
    engine = clockwork(slots=4, kv_blocks=2, block_size=8)

    record = all_of(simulate(setup(engine=engine), [asked(0.0), asked(0.0), asked(0.0)]))

    assert sorted(record.first_s) == pytest.approx([1.0, 1.0, 6.0])


def test_overhead_and_turnaround_are_added_once():
    engine = clockwork(overhead_s=0.25, turnaround_s=0.5)

    record = all_of(simulate(setup(engine=engine), [asked(0.0), asked(0.0)]))

    assert list(record.first_s) == pytest.approx([1.75, 1.75 + 4 + 1.5])


def test_the_next_turn_of_a_conversation_is_prefilled_from_where_it_was():
    engine = clockwork(step_tokens=16, slots=1)
    first = asked(0.0, prompt=64, answer=16, conversation="c")
    again = asked(100.0, prompt=96, answer=1, conversation="c", shared_tokens=80)
    other = asked(200.0, prompt=96, answer=1, conversation="d", shared_tokens=80)

    outcome = simulate(setup(engine=engine), [first, again, other])

    record = all_of(outcome)
    assert list(record.first_s) == pytest.approx([4.0, 1.0, 6.0])
    assert record.cached_tokens == 80


def test_without_a_prefix_cache_nothing_is_cached():
    engine = clockwork(prefix_cache=False)
    turns = [asked(float(t), conversation="c", prompt=64, shared_tokens=32) for t in (0, 50)]

    assert all_of(simulate(setup(engine=engine), turns)).cached_tokens == 0


def test_who_hangs_up_frees_the_slot():
    leaves = asked(0.0, answer=100, leaves_after_s=3.5)
    waits = asked(0.0, answer=100, leaves_after_s=2.0)
    stays = asked(1.0)

    record = all_of(simulate(setup(), [leaves, waits, stays]))

    assert record.endings[Ending.LEFT] == 2
    assert max(record.first_s) == pytest.approx(5.0 - 1.0)


def test_a_full_queue_sheds_and_a_long_wait_expires():
    queue = QueueSettings(max_requests=1, max_tokens=10**6, deadline_s=6.0)

    record = all_of(simulate(setup(queue=queue), [asked(0.0, answer=20) for _ in range(3)]))

    assert record.endings[Ending.FINISHED] == 1
    assert record.endings[Ending.SHED] == 1
    assert record.endings[Ending.EXPIRED] == 1


def test_what_could_never_fit_is_refused():
    engine = clockwork(kv_blocks=2)

    record = all_of(simulate(setup(engine=engine), [asked(0.0, prompt=1000)]))

    assert record.endings[Ending.TOO_LONG] == 1


def test_background_work_gives_way_and_goes_on_from_its_tokens():
    fair = SchedulingSettings(interactive_reserve=0.0)
    work = asked(0.0, answer=50, background=True, tenant="server")
    urgent = asked(10.5, answer=5, tenant="person")

    outcome = simulate(setup(scheduling=fair), [work, urgent])

    background = merged(outcome.records.select((LANES[-1],)))
    interactive = merged(outcome.records.select((LANES[0],)))
    assert background.paused == 1
    assert interactive.first_s[0] < 5
    # 50 tokens and 5, and one step in which the paused one's prompt is taken in again.
    assert outcome.ends_at == pytest.approx(55.0, abs=2.0)
    assert background.endings[Ending.FINISHED] == 1
    assert outcome.replicas[0].engine.used.decoded + 3 == 55


def test_fair_scheduling_serves_the_small_tenant_before_the_flood():
    flood = [asked(0.0, tenant="flood") for _ in range(100)]
    single = asked(1.0, tenant="single")

    def wait(policy):
        settings = SchedulingSettings(policy=policy, aging_s=1e6)
        outcome = simulate(setup(scheduling=settings), [*flood, single])
        return sorted(all_of(outcome).waited_s), outcome.ends_at

    fair, fair_end = wait("fair")
    fcfs, fcfs_end = wait("fcfs")

    assert fair_end == fcfs_end  # the same work, in another order
    assert fcfs[-1] == pytest.approx(499.0)  # the single one came last
    assert fair[-1] == pytest.approx(500.0)  # one of the flood's


def crowd(**fields):
    return arrivals(HUNDRED_MILLION, rate=6.0, seconds=60.0, seed=3, **fields)


def busy(**fields):
    engine = clockwork(step_s=0.02, slots=16, step_tokens=512, kv_blocks=4000)
    return Setup(
        **(
            {
                "engine": engine,
                "queue": QueueSettings(max_requests=20, deadline_s=10.0),
                "scheduling": SchedulingSettings(long_prompt_tokens=6000),
                "highest_priority": 1,
            }
            | fields
        )
    )


@pytest.mark.parametrize("admission", [True, False])
@pytest.mark.parametrize("policy", ["fair", "fcfs"])
def test_every_arrival_ends_exactly_once(policy, admission):
    coming = list(crowd(surge=Surge(factor=4.0, flood=0.5)))
    scheduling = SchedulingSettings(policy=policy, long_prompt_tokens=6000)

    outcome = simulate(busy(scheduling=scheduling, admission=admission, replicas=2), coming)

    record = all_of(outcome)
    assert record.arrived == len(coming) == sum(record.endings.values())
    assert record.endings[Ending.FINISHED] > 0
    assert all(replica.in_flight == replica.waiting == 0 for replica in outcome.replicas)
    for replica in outcome.replicas:
        load = replica.schedule.load()
        assert (load.running, load.waiting, load.reserved_blocks) == (0, 0, 0)
        assert (replica.engine.decoding, replica.engine.context) == (0, 0)


def test_the_same_seed_gives_the_same_report():
    reports = [
        encode_report(report_of(simulate(busy(replicas=2), crowd()), "crowd")) for _ in range(2)
    ]

    assert reports[0] == reports[1]


def test_overload_goes_to_the_smaller_model():
    smaller = clockwork(step_s=0.002, slots=64, step_tokens=2048, kv_blocks=20_000)
    slow = msgspec.structs.replace(busy(), smaller=smaller)

    outcome = simulate(slow, crowd(surge=Surge(factor=6.0)))

    record = all_of(outcome)
    alone = all_of(simulate(busy(), crowd(surge=Surge(factor=6.0))))
    assert record.moved > 0
    assert record.good > alone.good


def test_who_does_not_pay_may_be_given_the_smaller_model_from_the_start():
    smaller = clockwork(step_s=0.002, slots=64, step_tokens=2048, kv_blocks=20_000)

    outcome = simulate(busy(smaller=smaller, free_on_smaller=True), crowd())

    main, small = (fleet.replicas[0].engine.used.decoded for fleet in outcome.fleets.values())
    assert 0 < main < small


def test_what_comes_while_it_warms_up_is_in_no_figure():
    outcome = simulate(setup(warmup_s=10.0), [asked(float(t * 6)) for t in range(4)])

    assert all_of(outcome).arrived == 2

import math

import pytest
import trio

from antiphon.actors.breaker import Breaker, BreakerSpec, Permit, Refused, Verdict, verdict_on
from antiphon.errors import InvalidRequest, SpecError

THREE = BreakerSpec(failures=3, reset_s=1.0, factor=2.0, max_reset_s=5.0)


def permit(breaker: Breaker) -> Permit:
    admitted = breaker.admit()
    assert isinstance(admitted, Permit)
    return admitted


def fail(breaker: Breaker) -> None:
    with pytest.raises(OSError, match="down"), permit(breaker):
        raise OSError("down")


def opened() -> Breaker:
    breaker = Breaker("store", THREE)
    for _ in range(3):
        fail(breaker)
    return breaker


@pytest.mark.parametrize(
    "options",
    [
        {"failures": 0},
        {"reset_s": 0.0},
        {"reset_s": 9.0, "max_reset_s": 5.0},
        {"max_reset_s": math.inf},
        {"factor": 0.5},
    ],
)
def test_a_contradictory_breaker_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        BreakerSpec(**options)  # type: ignore[arg-type]


async def test_it_opens_after_failures_in_a_row_and_refuses_at_once(autojump_clock) -> None:
    breaker = Breaker("store", THREE)
    fail(breaker)
    fail(breaker)
    assert breaker.statistics().circuit == "closed"

    fail(breaker)
    await trio.sleep(0.25)

    assert breaker.admit() == Refused(0.75)
    statistics = breaker.statistics()
    assert (statistics.name, statistics.circuit, statistics.retry_after_s) == (
        "store",
        "open",
        0.75,
    )
    assert (statistics.admitted, statistics.failed, statistics.refused) == (3, 3, 1)


async def test_a_success_ends_the_row_of_failures(autojump_clock) -> None:
    breaker = Breaker("store", THREE)
    for _ in range(5):
        fail(breaker)
        fail(breaker)
        with permit(breaker):
            pass

    assert breaker.statistics().circuit == "closed"
    assert breaker.statistics().failures_in_row == 0


async def test_a_deadline_that_passes_inside_is_a_failure(autojump_clock) -> None:
    breaker = Breaker("store", BreakerSpec(failures=1))

    with pytest.raises(trio.TooSlowError), permit(breaker), trio.fail_after(1):
        await trio.sleep_forever()

    assert breaker.statistics().circuit == "open"


async def test_a_refusal_shows_that_the_callee_works(autojump_clock) -> None:
    breaker = Breaker("store", THREE)
    fail(breaker)
    fail(breaker)

    with pytest.raises(InvalidRequest), permit(breaker):
        raise InvalidRequest("no such field")

    assert breaker.statistics().failures_in_row == 0


async def test_a_caller_that_leaves_counts_neither_way(autojump_clock) -> None:
    breaker = Breaker("store", THREE)
    fail(breaker)
    fail(breaker)

    with trio.move_on_after(1), permit(breaker):
        await trio.sleep_forever()

    assert breaker.statistics().failures_in_row == 2
    assert breaker.statistics().circuit == "closed"


async def test_half_open_lets_one_of_ten_calls_through(nursery, autojump_clock) -> None:
    breaker = opened()
    await trio.sleep(1.0)
    gate = trio.Event()
    passed, refused = [], []

    async def call() -> None:
        match breaker.admit():
            case Permit() as admitted:
                with admitted:
                    await gate.wait()
                passed.append(1)
            case Refused():
                refused.append(1)

    for _ in range(10):
        nursery.start_soon(call)
    await trio.testing.wait_all_tasks_blocked()
    assert breaker.statistics().circuit == "half_open"
    gate.set()
    await trio.testing.wait_all_tasks_blocked()

    assert (len(passed), len(refused)) == (1, 9)
    assert breaker.statistics().circuit == "closed"


async def test_a_success_that_comes_after_the_opening_leaves_it_open(autojump_clock) -> None:
    breaker = Breaker("store", THREE)
    slow = permit(breaker)
    with slow:
        for _ in range(3):
            fail(breaker)

    assert breaker.statistics().circuit == "open"
    assert breaker.statistics().stale == 1


async def test_a_late_result_leaves_the_probe_alone(autojump_clock) -> None:
    breaker = Breaker("store", THREE)

    async def fail_late() -> None:
        with permit(breaker):
            for _ in range(3):
                fail(breaker)
            await trio.sleep(1)
            with permit(breaker):
                pass
            raise OSError("late")

    with pytest.raises(OSError, match="late"):
        await fail_late()

    assert breaker.statistics().circuit == "closed"
    assert breaker.statistics().failures_in_row == 0


async def test_each_failed_probe_makes_the_reset_time_longer_up_to_its_cap(autojump_clock) -> None:
    breaker = opened()
    waits = []
    for _ in range(5):
        refused = breaker.admit()
        assert isinstance(refused, Refused)
        waits.append(refused.retry_after_s)
        await trio.sleep(refused.retry_after_s)
        fail(breaker)

    assert waits == pytest.approx([1.0, 2.0, 4.0, 5.0, 5.0])
    await trio.sleep(5.0)
    with permit(breaker):
        pass
    assert breaker.statistics().reset_s == 1.0
    assert breaker.statistics().opened == 6


async def test_a_probe_whose_caller_leaves_gives_its_place_to_the_next(autojump_clock) -> None:
    breaker = opened()
    await trio.sleep(1)

    with trio.move_on_after(1), permit(breaker):
        await trio.sleep_forever()

    with permit(breaker):
        pass
    assert breaker.statistics().circuit == "closed"


async def test_who_knows_the_callee_may_judge_and_what_says_nothing_leaves_everything_as_it_was(
    autojump_clock,
) -> None:
    def judge(error: Exception) -> Verdict:
        return Verdict.NOTHING if isinstance(error, TimeoutError) else verdict_on(error)

    breaker = Breaker("store", THREE, judge=judge)
    fail(breaker)
    fail(breaker)
    with pytest.raises(TimeoutError), permit(breaker):
        raise TimeoutError
    before = breaker.statistics().failures_in_row
    fail(breaker)
    await trio.sleep(1)
    with pytest.raises(TimeoutError), permit(breaker):
        raise TimeoutError

    assert before == 2
    assert breaker.statistics().circuit == "open"
    with permit(breaker):
        pass
    assert breaker.statistics().circuit == "closed"

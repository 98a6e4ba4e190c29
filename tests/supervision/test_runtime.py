import threading

import pytest
import trio
import trio.testing

from antiphon.supervision.runtime import LoopLag, measured_loop_lag, runtime_statistics


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def rounds(clock: Clock, lag: LoopLag, *took: float, idle: float = 0.0) -> None:
    for seconds in took:
        clock.now += seconds
        lag.before_io_wait(0.0)
        clock.now += idle
        lag.after_io_wait(0.0)


def test_the_lag_is_the_longest_round_and_idling_is_none() -> None:
    clock = Clock()
    lag = LoopLag(clock)

    rounds(clock, lag, 0.1, 0.5, 0.2, idle=1.0)

    assert lag.lag_s() == pytest.approx((0.5, 0.5))


def test_an_old_lag_is_forgotten_but_for_the_record() -> None:
    clock = Clock()
    lag = LoopLag(clock)
    rounds(clock, lag, 0.5, idle=11.0)

    rounds(clock, lag, 0.1, idle=1.0)
    assert lag.lag_s()[0] == pytest.approx(0.5)
    rounds(clock, lag, 0.1, idle=11.0)
    rounds(clock, lag, 0.1)

    assert lag.lag_s() == pytest.approx((0.1, 0.5))


def test_a_long_silence_forgets_everything_recent() -> None:
    clock = Clock()
    lag = LoopLag(clock)
    rounds(clock, lag, 0.5, idle=100.0)

    assert lag.lag_s() == pytest.approx((0.0, 0.5))


def test_the_round_under_way_counts() -> None:
    clock = Clock()
    lag = LoopLag(clock)
    rounds(clock, lag, 0.1)

    clock.now += 3.0

    assert lag.lag_s() == pytest.approx((3.0, 3.0))


async def test_a_task_that_holds_up_the_loop_is_seen() -> None:
    with measured_loop_lag() as lag:
        clock = Clock()
        lag._clock = clock
        lag.after_io_wait(0.0)
        clock.now += 0.75
        await trio.lowlevel.checkpoint()

        statistics = runtime_statistics(lag)

    assert statistics.loop_lag_s == pytest.approx(0.75)


async def test_tasks_and_threads_are_counted(nursery) -> None:
    gate = threading.Event()
    with measured_loop_lag() as lag:
        before = runtime_statistics(lag)
        nursery.start_soon(trio.to_thread.run_sync, gate.wait)
        nursery.start_soon(trio.sleep_forever)
        try:
            await trio.testing.wait_all_tasks_blocked()
            now = runtime_statistics(lag)
            threads = threading.active_count()
        finally:
            gate.set()

    assert now.tasks - before.tasks >= 2
    assert (before.worker_threads, now.worker_threads) == (0, 1)
    # Not more than before: Trio keeps a thread for a while, which another test may have left.
    assert now.threads == threads > 1
    assert now.waiting_for_thread == 0
    nursery.cancel_scope.cancel("the test is over")


async def test_measuring_ends_with_its_block() -> None:
    with measured_loop_lag() as lag:
        pass

    with pytest.raises(KeyError):
        trio.lowlevel.remove_instrument(lag)

"""A long removal goes in transactions that others hardly notice."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from antiphon.persistence import pace
from antiphon.persistence.pace import AIM_S, LEAST, MOST, Pace
from antiphon.persistence.port import Database, Transaction


def settled(row_s: float, steps: int = 40) -> Pace:
    """Where each row takes so long."""
    kept = Pace()
    for _ in range(steps):
        kept.took(kept.rows * row_s)
    return kept


@pytest.mark.parametrize("row_s", [AIM_S / 2000, AIM_S / 300, AIM_S / 25])
def test_a_transaction_takes_about_as_long_as_it_may(row_s: float):
    assert settled(row_s).rows * row_s == pytest.approx(AIM_S, rel=0.05)


def test_it_has_bounds_on_both_sides():
    assert settled(0.0).rows == MOST
    assert settled(AIM_S).rows == LEAST


def test_a_machine_that_gets_busy_is_noticed_in_a_few_steps():
    kept = settled(AIM_S / 4000)
    for _ in range(4):
        kept.took(kept.rows * AIM_S / 100)

    assert kept.rows <= 130


def test_one_step_that_took_long_says_little():
    kept = settled(AIM_S / 1000)
    before = kept.rows
    kept.took(60.0)

    assert kept.rows == before // 4


async def test_waiting_for_others_is_no_reason_to_take_less(monkeypatch: pytest.MonkeyPatch):
    clock = 0.0
    monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: clock))

    class Busy:
        async def write(self, work: Callable[[Transaction], Awaitable[int]]) -> int:
            nonlocal clock
            clock += 5.0
            rows = await work(cast("Transaction", None))
            clock += rows * AIM_S / 1000
            return rows

    async def remove(_: Any, most: int) -> int:
        return most

    kept = Pace()
    taken = [await kept.step(cast("Database", Busy()), remove) for _ in range(10)]

    assert taken[0] < taken[-1] == 1000

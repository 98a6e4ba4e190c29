"""The whole core under attack, in virtual time; `make chaos` runs more seeds and longer."""

import pytest

from antiphon.testing.simulation import simulate

MINUTES = 10.0


@pytest.mark.parametrize("seed", range(3))
def test_every_rule_holds_whatever_the_nemesis_does(seed: int):
    outcome = simulate(seed, minutes=MINUTES)

    assert outcome.violations == []
    assert outcome.outcomes["completed"] > 100
    assert sum(outcome.faults.values()) > 10
    assert len(outcome.sites) > 3
    assert any("web-" in line and "completed" in line for line in outcome.story)


def test_the_same_seed_gives_the_same_history():
    first, second = (simulate(11, minutes=4.0) for _ in range(2))

    assert first.story == second.story


def test_another_seed_gives_another_history():
    assert simulate(11, minutes=1.0).story != simulate(12, minutes=1.0).story

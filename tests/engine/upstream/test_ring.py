"""Conversations and where they belong."""

from collections import Counter

import pytest

from antiphon.engine.upstream.ring import Ring

KEYS = [f"conversation {number}" for number in range(4_000)]


def owners(names: list[str]) -> dict[str, str]:
    ring = Ring(names)
    return {key: next(ring.walk(key)) for key in KEYS}


@pytest.mark.parametrize("replicas", [2, 3, 5, 10])
def test_only_the_conversations_of_a_replica_that_leaves_move(replicas):
    names = [f"replica-{number}" for number in range(replicas)]
    before, after = owners(names), owners(names[1:])

    moved = {key for key in KEYS if before[key] != after[key]}

    assert moved == {key for key in KEYS if before[key] == names[0]}
    assert 0.6 / replicas < len(moved) / len(KEYS) < 1.5 / replicas


def test_a_replica_that_comes_back_gets_back_what_was_its_own():
    assert owners(["a", "b", "c"]) == owners(["c", "a", "b"])


def test_every_replica_has_about_its_share():
    shares = Counter(owners([f"10.0.0.{number}:8000" for number in range(8)]).values())

    assert len(shares) == 8
    assert min(shares.values()) > len(KEYS) / 8 * 0.6
    assert max(shares.values()) < len(KEYS) / 8 * 1.4


def test_a_walk_names_every_replica_once():
    ring = Ring(["a", "b", "c", "d"])

    assert all(sorted(ring.walk(key)) == ["a", "b", "c", "d"] for key in KEYS[:100])


def test_a_ring_of_nobody_leads_nowhere():
    assert list(Ring([]).walk("key")) == []

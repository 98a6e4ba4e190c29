from antiphon.engine_trt.releases import Releases
from antiphon.ids import EngineRequest

ONE, TWO = EngineRequest(1), EngineRequest(2)
WAIT_S, LIMIT_S = 1.0, 10.0


def leaving(*requests: EngineRequest, after: int = 5, now: float = 0.0) -> Releases:
    releases = Releases(WAIT_S, LIMIT_S)
    for request in requests:
        releases.leave(request, after, now)
    return releases


def test_a_request_that_says_its_last_word_is_not_due():
    releases = leaving(ONE)
    releases.gone(ONE)

    assert releases.due(9.0) == []
    assert not releases.wants_probe(9.0)
    assert not releases.is_stuck(9.0, 0.0)
    assert len(releases) == 0


def test_without_proof_nobody_is_due_and_a_probe_is_wanted_after_the_wait():
    releases = leaving(ONE)

    assert not releases.wants_probe(0.9)
    assert releases.wants_probe(1.0)
    assert releases.due(1.9) == []


def test_a_later_request_that_spoke_is_the_proof_but_not_before_the_wait():
    releases = leaving(ONE)
    releases.spoke(6)

    assert releases.due(0.9) == []
    assert releases.due(1.0) == [ONE]
    assert not releases.wants_probe(1.0)


def test_an_earlier_request_that_speaks_proves_nothing():
    releases = leaving(ONE)
    releases.spoke(5)

    assert releases.due(1.5) == []
    assert releases.wants_probe(1.5)


def test_a_request_that_still_speaks_is_still_there():
    releases = leaving(ONE)
    releases.spoke(6)
    releases.heard(ONE, 0.8)

    assert releases.due(1.5) == []
    assert releases.due(1.8) == [ONE]


def test_one_probe_is_enough_for_all_that_left_before_it():
    releases = leaving(ONE, TWO)
    releases.probing(6)

    assert not releases.wants_probe(1.5)
    releases.spoke(6)
    assert releases.due(1.5) == [ONE, TWO]


def test_one_that_left_after_the_probe_needs_another():
    releases = leaving(ONE)
    releases.probing(6)
    releases.leave(TWO, 6, 0.5)

    assert releases.wants_probe(1.5)


def test_a_silent_engine_is_stuck_after_twice_the_wait():
    releases = leaving(ONE)

    assert not releases.is_stuck(1.9, engine_heard_at=0.0)
    assert releases.is_stuck(2.0, engine_heard_at=0.0)


def test_a_busy_engine_has_until_the_limit():
    releases = leaving(ONE)

    assert not releases.is_stuck(9.9, engine_heard_at=9.8)
    assert releases.is_stuck(10.0, engine_heard_at=9.9)


def test_what_is_proved_is_never_stuck():
    releases = leaving(ONE)
    releases.spoke(6)

    assert not releases.is_stuck(99.0, engine_heard_at=0.0)


def test_leaving_twice_does_not_start_the_wait_anew():
    releases = leaving(ONE)
    releases.leave(ONE, 9, 0.9)
    releases.spoke(6)

    assert releases.due(1.0) == [ONE]

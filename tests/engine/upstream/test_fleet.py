"""Which replica gets a conversation, and which gets none."""

import random
from contextlib import AbstractContextManager

import structlog.testing
import trio

from antiphon.actors.breaker import Breaker, BreakerSpec
from antiphon.engine.upstream.dialect import Flavour
from antiphon.engine.upstream.fleet import Facts, Fleet, Replica
from antiphon.engine.upstream.trouble import Kind, Trouble

FACTS = Facts(flavour=Flavour.VLLM, engine="vllm", window=4096, health="http://x/health")
LOST = Trouble(Kind.LOST, "connection reset")
BROKEN = Trouble(Kind.BROKEN, "status 500")


def a_fleet(replicas: int, *, slots: int = 64, balance: float = 1.25) -> Fleet:
    fleet = Fleet(
        [
            Replica(f"http://r{number}/v1", f"r{number}", Breaker(f"r{number}", BreakerSpec()))
            for number in range(replicas)
        ],
        slots=slots,
        balance=balance,
        clock=lambda: 0.0,
    )
    for replica in fleet.replicas.values():
        fleet.came_up(replica, FACTS)
    return fleet


def ask(fleet: Fleet, key: str, tried: set[str] = frozenset(), error: Exception | None = None):
    choice = fleet.choose(key, tried)
    if choice is None:
        return None
    try:
        with choice.permit:
            if error is not None:
                raise error
    except Trouble as trouble:
        fleet.failed(choice.replica, trouble)
    return choice.replica.name


def keys(number: int) -> list[str]:
    return [f"conversation {index}" for index in range(number)]


async def test_a_conversation_stays_with_its_replica(autojump_clock):
    fleet = a_fleet(4)

    assert all(len({ask(fleet, key) for _ in range(5)}) == 1 for key in keys(100))


async def test_a_steady_set_of_conversations_stays_where_it_is_under_load(autojump_clock):
    fleet = a_fleet(2, slots=32)
    rng = random.Random(4)
    conversations = keys(64)
    home: dict[str, str] = {}
    running: list[Replica] = []
    stayed = turns = 0
    for _ in range(6_000):
        if len(running) >= 24:
            fleet.ended(running.pop(rng.randrange(len(running))))
        key = rng.choice(conversations)
        choice = fleet.choose(key)
        assert choice is not None
        with choice.permit:
            pass
        fleet.began(choice.replica)
        running.append(choice.replica)
        if key in home:
            turns += 1
            stayed += home[key] == choice.replica.name
        home[key] = choice.replica.name

    assert stayed / turns >= 0.95


async def test_only_its_own_conversations_move_when_a_replica_goes(autojump_clock):
    fleet = a_fleet(5)
    before = {key: ask(fleet, key) for key in keys(2_000)}

    fleet.went_down(fleet.replicas["r2"], "gone")
    after = {key: ask(fleet, key) for key in keys(2_000)}

    moved = {key for key in before if before[key] != after[key]}
    assert moved == {key for key in before if before[key] == "r2"}
    assert 0.14 < len(moved) / 2_000 < 0.28
    assert fleet.replicas["r0"].moved > 0
    fleet.came_up(fleet.replicas["r2"], FACTS)
    assert {key: ask(fleet, key) for key in before} == before


async def test_no_replica_gets_much_more_than_its_share_of_one_popular_conversation(autojump_clock):
    fleet = a_fleet(4, slots=16, balance=1.25)
    for _ in range(64):
        choice = fleet.choose("everybody says hi")
        assert choice is not None
        with choice.permit:
            pass
        fleet.began(choice.replica)

    assert max(replica.in_flight for replica in fleet.replicas.values()) <= 28


async def test_a_crowded_fleet_still_takes_work(autojump_clock):
    fleet = a_fleet(2, slots=2)
    for replica in fleet.replicas.values():
        replica.in_flight = 50
    fleet.replicas["r1"].in_flight = 49

    assert ask(fleet, "key", {"r1"}) == "r0"


async def test_a_replica_that_keeps_failing_is_ejected_and_tried_again_later(autojump_clock):
    fleet = a_fleet(2)
    key = next(key for key in keys(50) if ask(fleet, key) == "r0")
    for _ in range(5):
        ask(fleet, key, error=BROKEN)

    assert fleet.replicas["r0"].state == "ejected"
    assert ask(fleet, key) == "r1"
    assert fleet.problem() is None

    await trio.sleep(1.5)
    assert ask(fleet, key) == "r0"  # the probe
    assert fleet.replicas["r0"].state == "up"


async def test_a_refusal_for_load_or_for_the_request_ejects_nobody(autojump_clock):
    fleet = a_fleet(1)
    for kind in (Kind.BUSY, Kind.INVALID, Kind.CONTEXT):
        for _ in range(10):
            choice = fleet.choose("key")
            assert isinstance(choice.permit, AbstractContextManager)
            with choice.permit:
                pass
            fleet.failed(choice.replica, Trouble(kind, "no"))

    assert fleet.replicas["r0"].state == "up"
    assert fleet.replicas["r0"].failed == 30
    assert fleet.replicas["r0"].last_error is None


async def test_a_lost_connection_takes_the_replica_out_until_a_probe_is_answered(autojump_clock):
    fleet = a_fleet(1)
    replica = fleet.replicas["r0"]
    with structlog.testing.capture_logs() as logs:
        ask(fleet, "key", error=LOST)
        fleet.failed(replica, LOST)  # the next one that it held

    assert fleet.choose("key") is None
    assert replica.look_now.is_set()
    assert fleet.problem() == "no replica is up (r0: connection reset)"
    assert [line["event"] for line in logs] == ["replica_down"]

    with structlog.testing.capture_logs() as logs:
        fleet.came_up(replica, FACTS)
        fleet.came_up(replica, FACTS)
    assert [line["event"] for line in logs] == ["replica_up"]
    assert ask(fleet, "key") == "r0"


async def test_who_has_never_answered_is_starting(autojump_clock):
    fleet = Fleet(
        [Replica("http://r0/v1", "r0", Breaker("r0"))], slots=4, balance=1.25, clock=lambda: 0.0
    )

    assert fleet.statistics()[0].state == "starting"
    assert fleet.problem() == "no replica is up (r0: starting)"
    assert fleet.choose("key") is None

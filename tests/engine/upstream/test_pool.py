"""An upstream under the real driver, scheduler and sessions: what turns see of its replicas."""

import random
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.errors import (
    ContextLengthExceeded,
    EngineUnavailable,
    GenerationFailed,
    HostLost,
    TurnInterrupted,
)
from antiphon.events import CancelCause, Message
from antiphon.testing.replicas import ScriptedCluster, ScriptedReplica
from antiphon.testing.rig import Rig, read_all, read_next, running_rig
from antiphon.turn_events import Delta, TurnEnded, TurnEvent, TurnFailed, Usage


def say(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


def text_of(events: list[TurnEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


_ROOM = QueueBounds(max_requests=64, max_tokens=10_000, deadline_s=30.0)
"""For as many as any test here has at once: refusals for load are the scheduler's own business, and
a slot comes back a moment after its turn's end."""


@asynccontextmanager
async def pooled(running, cluster: ScriptedCluster, **settings: Any):
    """The rig on an upstream, with every replica found."""
    async with (
        running(cluster, **settings) as upstream,
        running_rig(upstream, bounds=_ROOM, sends_messages=True) as rig,
    ):
        while len(upstream.fleet.up) < len(cluster.replicas):
            await upstream.fleet.news()
        yield rig, upstream


async def gather(rig: Rig, turns: dict[str, dict[str, Any]]) -> dict[str, list[TurnEvent]]:
    """Every turn's events, all of them running at once."""
    events: dict[str, list[TurnEvent]] = {}

    async def read(name: str, fields: dict[str, Any]) -> None:
        events[name] = await read_all(await rig.open(name, **fields))

    async with trio.open_nursery() as nursery:
        for name, fields in turns.items():
            nursery.start_soon(read, name, fields)
    return events


async def test_a_turn_has_its_choices_and_the_replicas_usage(running, autojump_clock):
    async with pooled(running, ScriptedCluster({"a": ScriptedReplica()})) as (rig, _):
        events = await read_all(await rig.open("t", choices=3))

    assert text_of([event for event in events if getattr(event, "choice", 0) == 0]) == (
        "one two three four"
    )
    assert events[-1] == TurnEnded(usage=Usage(prompt_tokens=11, completion_tokens=12))


async def test_when_one_of_two_replicas_dies_only_what_had_begun_is_interrupted(
    running, autojump_clock
):
    """Kill one under load: what had no token yet is finished by the other."""

    def words(body):
        return (f" {body['messages'][0]['content']}-{index}" for index in range(40))

    cluster = ScriptedCluster(
        {name: ScriptedReplica(words=words, first_s=2.0, step_s=0.1) for name in "ab"}
    )
    async with pooled(running, cluster, slots=32) as (rig, upstream):
        events: dict[str, list[TurnEvent]] = {}
        begun_on_a: set[str] = set()
        waiting_on_a: set[str] = set()

        async def read(name: str) -> None:
            stream = await rig.open(name, messages=say(name), max_tokens=40)
            events[name] = []
            while not events[name] or not isinstance(events[name][-1], TurnEnded | TurnFailed):
                events[name].append(await read_next(stream))

        async with trio.open_nursery() as nursery:
            for number in range(16):
                nursery.start_soon(read, f"early-{number}")
            await trio.sleep(3)
            for number in range(16):
                nursery.start_soon(read, f"late-{number}")
            await trio.sleep(1)
            for body in cluster.replicas["a"].bodies:
                name = body["messages"][0]["content"]
                (begun_on_a if events[name] else waiting_on_a).add(name)
            cluster.replicas["a"].kill()

        ends = {name: seen[-1] for name, seen in events.items()}
        assert min(len(begun_on_a), len(waiting_on_a)) >= 3
        assert len(begun_on_a | waiting_on_a) < 30  # the other one had its share, too
        for name, end in ends.items():
            if name in begun_on_a:
                assert isinstance(end, TurnFailed)
                assert isinstance(end.error, HostLost)
                assert text_of(events[name]).startswith(f" {name}-0")
            else:
                assert isinstance(end, TurnEnded), (name, end)
                assert text_of(events[name]) == "".join(words({"messages": [{"content": name}]}))
        await trio.sleep(1)
        assert [replica.state for replica in upstream.statistics()] == ["down", "up"]
        assert (rig.running, cluster.open) == (0, 0)


async def test_conversations_stay_with_their_replica_and_few_move_when_one_leaves(
    running, autojump_clock
):
    cluster = ScriptedCluster({f"r{number}": ScriptedReplica() for number in range(4)})
    rng = random.Random(7)

    async def turns(rig: Rig, numbers: range, limit: trio.CapacityLimiter) -> dict[int, str]:
        for replica in cluster.replicas.values():
            replica.bodies.clear()

        async def turn(number: int) -> None:
            async with limit:
                name = f"conversation {number}"
                history = say(f"I am {name}") + say("and more") * rng.randrange(3)
                await read_all(await rig.open(name, messages=history))

        async with trio.open_nursery() as nursery:
            for number in numbers:
                nursery.start_soon(turn, number)
        return {
            int(body["messages"][0]["content"].split()[-1]): name
            for name, replica in cluster.replicas.items()
            for body in replica.bodies
        }

    async with pooled(running, cluster, slots=16) as (rig, _):
        limit = trio.CapacityLimiter(12)
        conversations = range(200)
        home = await turns(rig, conversations, limit)
        rounds = [await turns(rig, conversations, limit) for _ in range(4)]
        stayed = sum(seen[n] == home[n] for seen in rounds for n in conversations)

        cluster.replicas["r1"].kill()
        await trio.sleep(3)
        after = await turns(rig, conversations, limit)

    assert stayed / (4 * len(conversations)) >= 0.95
    moved = [number for number in conversations if after[number] != home[number]]
    strangers = [number for number in moved if home[number] != "r1"]
    assert 0.15 < len(moved) / len(conversations) < 0.35
    assert len(strangers) <= 0.05 * len(conversations)


async def test_a_thousand_turns_that_are_left_at_any_moment_leave_nothing_behind(
    running, autojump_clock
):
    """An abort storm, over replicas that misbehave and die meanwhile."""
    rng = random.Random(11)

    def words(body):
        return ["x"] * 30

    cluster = ScriptedCluster(
        {
            "good": ScriptedReplica(words=words, first_s=0.3, step_s=0.05),
            "slow": ScriptedReplica(words=words, first_s=3.0, step_s=0.3),
            "busy": ScriptedReplica(refuse=(503, b"")),
            "mortal": ScriptedReplica(words=words, first_s=0.3, step_s=0.05),
        }
    )
    ends: list[TurnEvent] = []
    async with pooled(running, cluster, slots=24) as (rig, upstream):
        limit = trio.CapacityLimiter(30)

        async def turn(number: int, patience_s: float) -> None:
            async with limit:
                stream = await rig.open(f"t{number}", messages=say(f"{number}"))
                with trio.move_on_after(patience_s) as scope:
                    ends.append((await read_all(stream))[-1])
                if scope.cancelled_caught:
                    stream.cancel(CancelCause.DISCONNECT)
                    ends.append((await read_all(stream))[-1])

        async def mortality() -> None:
            mortal = cluster.replicas["mortal"]
            while True:
                await trio.sleep(rng.uniform(1, 5))
                mortal.kill()
                await trio.sleep(rng.uniform(1, 5))
                mortal.revive()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(mortality)
            async with trio.open_nursery() as turns:
                for number in range(1_000):
                    turns.start_soon(turn, number, rng.expovariate(1.0))
            nursery.cancel_scope.cancel()

        cluster.replicas["mortal"].revive()
        await trio.sleep(3)
        assert (rig.running, rig.waiting, cluster.open) == (0, 0, 0)
        assert [replica.in_flight for replica in upstream.statistics()] == [0] * 4
        assert rig.status.hosts == 1  # nothing of all this cost the engine
        cluster.replicas["busy"].refuse = None
        after = await gather(rig, {f"a{n}": {"messages": say(f"after {n}")} for n in range(6)})
        assert all(isinstance(events[-1], TurnEnded) for events in after.values())
    assert len(ends) == 1_000
    failures = [end.error for end in ends if isinstance(end, TurnFailed)]
    expected = TurnInterrupted | HostLost | EngineUnavailable
    assert [error for error in failures if not isinstance(error, expected)] == []
    assert sum(isinstance(error, TurnInterrupted) for error in failures) > 300
    assert sum(isinstance(end, TurnEnded) for end in ends) > 50


async def test_no_answer_ever_holds_anothers_word(running, autojump_clock):
    def words(body):
        secret = body["messages"][-1]["content"]
        return (f"{secret} " for _ in range(12))

    cluster = ScriptedCluster({name: ScriptedReplica(words=words) for name in "abc"})
    rng = random.Random(3)
    async with pooled(running, cluster, slots=16) as (rig, _):
        limit = trio.CapacityLimiter(20)

        async def turn(number: int) -> None:
            async with limit:
                stream = await rig.open(f"t{number}", messages=say(f"secret-{number}"))
                with trio.move_on_after(rng.expovariate(5)):
                    events = await read_all(stream)
                    assert set(text_of(events).split()) <= {f"secret-{number}"}
                    return
                stream.cancel(CancelCause.DISCONNECT)

        async with trio.open_nursery() as nursery:
            for number in range(256):
                nursery.start_soon(turn, number)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, b'{"error": {"message": "no such field", "code": 400}}', GenerationFailed),
        (500, b"boom", GenerationFailed),
        (503, b"", EngineUnavailable),
    ],
)
async def test_a_refusal_reaches_the_client_as_what_it_is(
    running, autojump_clock, status, body, error
):
    cluster = ScriptedCluster({"a": ScriptedReplica(refuse=(status, body))})
    async with pooled(running, cluster) as (rig, _):
        events = await read_all(await rig.open("t"))

    assert isinstance(events[-1], TurnFailed)
    assert isinstance(events[-1].error, error)


async def test_what_cannot_fit_the_window_is_refused_here(running, autojump_clock):
    replica = ScriptedReplica(window=64)
    async with pooled(running, ScriptedCluster({"a": replica})) as (rig, _):
        events = await read_all(await rig.open("t", messages=say("word " * 100)))

    assert isinstance(events[-1].error, ContextLengthExceeded)
    assert replica.bodies == []


async def test_a_driver_that_is_restarted_finds_its_replicas_again(running, autojump_clock):
    cluster = ScriptedCluster({"a": ScriptedReplica(words=lambda _: ["x"] * 1000, step_s=1.0)})
    async with pooled(running, cluster) as (rig, upstream):
        stream = await rig.open("t", max_tokens=300)
        await read_next(stream)
        upstream.link.kill()

        assert isinstance((await read_all(stream))[-1].error, HostLost)
        assert cluster.open == 0
        cluster.replicas["a"].words = lambda _: ["again"]
        assert text_of(await read_all(await rig.open("u"))) == "again"
        assert rig.status.hosts == 2

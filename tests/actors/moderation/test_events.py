"""Policy events on their way into a store that may be away."""

import trio
import trio.testing
from structlog.testing import capture_logs

from antiphon.actors.moderation.events import MOST_WAITING
from antiphon.errors import StoreFailed, StoreUnavailable
from antiphon.testing.judges import ScriptedJudges
from antiphon.testing.moderation import EventStore, Running, a_turn, moderating
from antiphon.testing.telemetry import RecordingTelemetry
from antiphon.verdicts import Action, Finding, Stage

FINDING = Finding(rule="no-apples", stage=Stage.OUTPUT, action=Action.BLOCK)


def note(running: Running, *requests: str) -> None:
    for request in requests:
        handle = running.service.judge_for(a_turn(request=request))
        handle.note_output((FINDING,), "words")
        handle.close()


async def test_what_a_store_that_is_away_can_not_take_waits_and_is_written_once(
    autojump_clock: trio.testing.MockClock,
):
    store = EventStore(problem=StoreUnavailable("down"))
    async with moderating(ScriptedJudges(), store=store) as running:
        with capture_logs() as logs:
            note(running, "a", "b")
            await trio.sleep(60)
            assert running.service.view().events_waiting == 2
            store.problem = None
            await trio.sleep(20)
        assert running.service.view().events_waiting == 0

    assert [event.request for event in store.events] == ["a", "b"]
    assert [entry["event"] for entry in logs].count("policy_events_wait") == 1


async def test_there_is_a_bound_and_what_is_dropped_is_counted_and_said(
    autojump_clock: trio.testing.MockClock,
):
    store, telemetry = EventStore(problem=StoreUnavailable("down")), RecordingTelemetry()
    async with moderating(ScriptedJudges(), store=store, telemetry=telemetry) as running:
        with capture_logs() as logs:
            note(running, *map(str, range(MOST_WAITING + 5)))
            assert running.service.view().events_dropped == 5
            store.problem = None
            await trio.sleep(60)

    assert len(store.events) == MOST_WAITING
    assert store.events[0].request == "5", "the oldest made room"
    assert sum(int(str(events)) for (events,) in telemetry.named("policy_events_dropped")) == 5
    [line] = [entry for entry in logs if entry["event"] == "policy_events_dropped"]
    assert line["events"] == 5


async def test_what_a_store_refuses_does_not_hold_up_the_rest(
    autojump_clock: trio.testing.MockClock,
):
    store = EventStore(problem=StoreFailed("a defect"))
    async with moderating(ScriptedJudges(), store=store) as running:
        note(running, "refused")
        await trio.sleep(2)
        store.problem = None
        note(running, "taken")
        await trio.sleep(2)
        assert running.service.view().events_dropped == 1

    assert [event.request for event in store.events] == ["taken"]


async def test_what_waits_at_the_stop_is_written(autojump_clock: trio.testing.MockClock):
    store = EventStore()
    async with moderating(ScriptedJudges(), store=store) as running:
        note(running, *map(str, range(300)))

    assert len(store.events) == 300


async def test_a_stop_does_not_wait_for_a_store_that_is_away(
    autojump_clock: trio.testing.MockClock,
):
    store = EventStore(problem=StoreUnavailable("down"))
    began = trio.current_time()
    async with moderating(ScriptedJudges(), store=store) as running:
        note(running, "lost")

    assert trio.current_time() - began < 5
    assert running.service.view().events_dropped == 1

"""The reading end of a turn."""

import trio
import trio.testing

from antiphon.actors.sessions.outlet import Outlet
from antiphon.errors import HostLost
from antiphon.events import CancelCause, TokenLogprob
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.turn_events import ChoiceEnded, Delta, FinishReason, TurnEnded, TurnFailed, Usage

STOPPED = ChoiceEnded(choice=0, finish_reason=FinishReason.STOP)
ENDED = TurnEnded(usage=Usage(prompt_tokens=1, completion_tokens=2))


def outlet() -> tuple[Outlet, list[CancelCause]]:
    causes: list[CancelCause] = []
    return Outlet(causes.append), causes


async def test_a_reader_that_is_behind_gets_one_merged_delta():
    out, _ = outlet()
    one = TokenLogprob(text="a", data=b"a", logprob=-1.0)
    two = TokenLogprob(text="b", data=b"b", logprob=-2.0)

    out.put(Delta(choice=0, text="a", logprobs=(one,)))
    out.put(Delta(choice=0, text="b", logprobs=(two,)))

    assert await out.next_event() == Delta(choice=0, text="ab", logprobs=(one, two))


async def test_interleaved_choices_merge_each_into_its_own():
    out, _ = outlet()

    for text in "xyz":
        out.put(Delta(choice=0, text=text))
        out.put(Delta(choice=1, text=text.upper()))

    assert [await out.next_event(), await out.next_event()] == [
        Delta(choice=0, text="xyz"),
        Delta(choice=1, text="XYZ"),
    ]


async def test_a_choice_ends_after_its_text_and_the_turn_ends_last():
    out, _ = outlet()

    out.put(Delta(choice=0, text="a"))
    out.put(STOPPED)
    out.put(ENDED)

    assert [await out.next_event() for _ in range(3)] == [Delta(choice=0, text="a"), STOPPED, ENDED]


async def test_a_waiting_reader_wakes_for_each_event(autojump_clock: trio.testing.MockClock):
    out, _ = outlet()
    seen = []

    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def _read() -> None:
            while not isinstance(event := await out.next_event(), TurnEnded):
                seen.append(event)

        for text in ("a", "b"):
            await trio.testing.wait_all_tasks_blocked()
            out.put(Delta(choice=0, text=text))
        await trio.testing.wait_all_tasks_blocked()
        out.put(ENDED)

    assert seen == [Delta(choice=0, text="a"), Delta(choice=0, text="b")]


async def test_nothing_follows_the_terminal_event():
    out, _ = outlet()
    failed = TurnFailed(error=HostLost("gone"))

    out.put(failed)
    out.put(Delta(choice=0, text="late"))

    assert await out.next_event() is failed
    with trio.move_on_after(0) as scope:
        await out.next_event()
    assert scope.cancelled_caught


def test_cancel_is_told_once():
    out, causes = outlet()

    out.cancel(CancelCause.DISCONNECT)
    out.cancel(CancelCause.SLOW_READER)

    assert causes == [CancelCause.DISCONNECT]


def test_cancel_after_the_end_is_told_to_nobody():
    out, causes = outlet()

    out.put(ENDED)
    out.cancel(CancelCause.DISCONNECT)

    assert causes == []


async def test_calls_come_after_the_text_and_each_has_its_arguments_merged():
    out, _ = outlet()
    started = [CallStarted(choice=0, call=n, id=f"call_{n}", name="f") for n in range(2)]
    other = CallStarted(choice=1, call=0, id="call_2", name="f")

    out.put(started[0])
    out.put(other)
    for text in "xyz":
        out.put(CallDelta(choice=0, call=0, text=text))
        out.put(CallDelta(choice=1, call=0, text=text.upper()))
    out.put(CallEnded(choice=0, call=0))
    out.put(started[1])
    out.put(CallDelta(choice=0, call=1, text="a"))
    out.put(Delta(choice=1, text="late"))
    out.put(STOPPED)

    assert [await out.next_event() for _ in range(9)] == [
        Delta(choice=1, text="late"),
        started[0],
        other,
        CallDelta(choice=0, call=0, text="xyz"),
        CallDelta(choice=1, call=0, text="XYZ"),
        CallEnded(choice=0, call=0),
        started[1],
        CallDelta(choice=0, call=1, text="a"),
        STOPPED,
    ]

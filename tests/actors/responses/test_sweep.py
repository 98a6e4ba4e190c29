"""The life of a stored response, with something striking at every step of every task in it.

Whatever is struck, and when: each accepted response ends once, with a true status; its log is a
gapless story with one last event; what it shows is what is stored; nothing is held any more.
"""

from collections.abc import Callable

import pytest
import trio

from antiphon.errors import ActorCrashed, AntiphonError, StoreUnavailable
from antiphon.events import CancelCause
from antiphon.ids import LOCAL_USER, ResponseId
from antiphon.narration import Ended, ResponseEvent, TextAdded, Watcher, decode_events
from antiphon.records import ResponseStatus
from antiphon.testing.answers import AnswerRig, read_response, running_answers, status_of
from antiphon.testing.sweep import Fuse, Strike, crash, sweep

ID = ResponseId("resp_victim")
RUN = r"root/shard-1/run-1(/.*)?"
SESSION = r"root/shard-0/session-1(/.*)?|root/shard-1/session-1(/.*)?"
READER = "reader"


class Reader:
    """A client's task, as an HTTP handler is."""

    def __init__(self, answers: AnswerRig) -> None:
        self.scope = trio.CancelScope()
        self.events: list[ResponseEvent] = []
        self.error: AntiphonError | None = None
        self._answers = answers

    async def run(self) -> None:
        watcher: Watcher | None = None
        with self.scope:
            try:
                watcher = await self._answers.create(ID)
                while more := await watcher.next_events():
                    self.events += more
            except AntiphonError as error:
                self.error = error
            finally:
                if watcher is not None:
                    watcher.cancel(CancelCause.DISCONNECT)


async def a_stored_response(fuse: Fuse, make_strike: Callable[[AnswerRig, Reader], Strike]) -> None:
    async with running_answers(reaper=True) as answers:
        reader = Reader(answers)
        fuse.arm(make_strike(answers, reader))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader.run, name=READER)
        fuse.disarm()
        await trio.sleep(60)  # the reaper's turn

        assert (answers.rig.running, answers.rig.waiting, answers.runs.open_turns) == (0, 0, 0)
        assert not answers.runs.debts
        row = answers.store.rows.get(ID)
        if row is None:
            assert not any(isinstance(event, TextAdded) for event in reader.events)
            assert not isinstance(reader.error, ActorCrashed) or reader.events == []
        else:
            assert row.response.status.is_final
            assert row.ends == 1
            stored: list[ResponseEvent] = []
            for first in sorted(row.batches):
                assert first == len(stored), "a gap or an overlap"
                stored += decode_events(row.batches[first].body)
            assert [i for i, event in enumerate(stored) if isinstance(event, Ended)] == [
                len(stored) - 1
            ]
            assert stored[: len(reader.events)] == reader.events
            assert status_of(stored) is row.response.status
            text = "".join(event.text for event in stored if isinstance(event, TextAdded))
            assert "".join(answers.store.texts(ID)) == text
            replay = await answers.runs.watch(LOCAL_USER, ID)
            assert await read_response(replay) == stored
        after = await read_response(await answers.create("resp_next"))
        assert status_of(after) is ResponseStatus.COMPLETED


def hang_up(answers: AnswerRig, reader: Reader) -> Strike:
    def strike(task: trio.lowlevel.Task) -> bool:
        reader.scope.cancel()
        return True

    return strike


def crash_it(answers: AnswerRig, reader: Reader) -> Strike:
    return crash


def cancel_by_id(answers: AnswerRig, reader: Reader) -> Strike:
    def strike(task: trio.lowlevel.Task) -> bool:
        answers.runs.interrupt(ID, CancelCause.REQUESTED)
        return True

    return strike


def kill_the_host(answers: AnswerRig, reader: Reader) -> Strike:
    def strike(task: trio.lowlevel.Task) -> bool:
        answers.rig.launcher.link.die("killed by signal 9")
        return True

    return strike


def lose_the_store(answers: AnswerRig, reader: Reader) -> Strike:
    def strike(task: trio.lowlevel.Task) -> bool:
        answers.store.failures.extend([StoreUnavailable("down")] * 3)
        return True

    return strike


def lose_its_answers(answers: AnswerRig, reader: Reader) -> Strike:
    def strike(task: trio.lowlevel.Task) -> bool:
        answers.store.lost_answers.extend([StoreUnavailable("no answer")] * 3)
        return True

    return strike


@pytest.mark.parametrize("victim", [RUN, READER])
@pytest.mark.parametrize(
    "strike", [hang_up, cancel_by_id, kill_the_host, lose_the_store, lose_its_answers]
)
def test_a_response_ends_once_whatever_happens_at_any_step(
    victim: str, strike: Callable[[AnswerRig, Reader], Strike]
) -> None:
    async def scenario(fuse: Fuse) -> None:
        await a_stored_response(fuse, strike)

    assert sweep(scenario, victim=victim) > 5


@pytest.mark.parametrize("victim", [RUN, SESSION])
def test_a_response_ends_once_whichever_step_of_it_crashes(victim: str) -> None:
    async def scenario(fuse: Fuse) -> None:
        await a_stored_response(fuse, crash_it)

    assert sweep(scenario, victim=victim) > 5

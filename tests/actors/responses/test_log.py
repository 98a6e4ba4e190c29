"""The log of a running response: what its watchers see and what its batches hold."""

from antiphon.actors.responses.log import EventLog
from antiphon.narration import Ended, Started, TextAdded, decode_events
from antiphon.records import ResponseStatus
from antiphon.testing.answers import a_response

TEXTS = tuple(TextAdded(index=0, text=str(number)) for number in range(6))


def test_a_batch_stays_the_same_until_the_store_has_it() -> None:
    log = EventLog(a_response("resp_1"))
    log.append(TEXTS[:2])
    batch = log.batch()
    log.append(TEXTS[2:])

    assert log.batch() is batch
    assert batch is not None
    log.stored(batch)
    rest = log.batch()

    assert rest is not None
    assert (rest.first, rest.last) == (2, 5)
    assert decode_events(rest.body) == list(TEXTS[2:])


def test_the_last_batch_holds_what_is_not_stored_and_the_end() -> None:
    log = EventLog(a_response("resp_1"))
    log.append(TEXTS[:3])
    batch = log.batch()
    assert batch is not None
    log.stored(batch)
    log.append(TEXTS[3:4])
    end = Ended(status=ResponseStatus.COMPLETED)

    tail = log.tail([end])

    assert tail is not None
    assert (tail.first, tail.last) == (3, 4)
    assert decode_events(tail.body) == [TEXTS[3], end]


def test_a_closed_log_gives_no_further_batch() -> None:
    log = EventLog(a_response("resp_1"))
    log.append(TEXTS)

    log.close()

    assert log.batch() is None
    assert log.unconfirmed is None


def test_a_response_that_is_not_kept_has_nothing_to_store() -> None:
    log = EventLog(a_response("resp_1"), kept=False)
    log.append([Started()])

    assert log.batch() is None


async def test_waiting_for_more_ends_with_the_log() -> None:
    log = EventLog(a_response("resp_1"))
    log.append(TEXTS[:1])
    await log.grown(0)
    log.end(a_response("resp_1", status=ResponseStatus.COMPLETED))

    await log.grown(1)

    assert log.since(1) == []
    assert log.settled

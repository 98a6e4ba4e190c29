import pytest
import trio
import trio.testing

from antiphon.actors.mailbox import Mailbox, Overflow
from antiphon.actors.reply import Reply
from antiphon.errors import ActorStopped, MailboxFull, SpecError
from antiphon.ids import ActorPath

PATH = ActorPath("root/a")


def box(capacity: int = 2, overflow: Overflow = Overflow.REJECT) -> Mailbox[int]:
    return Mailbox(PATH, capacity=capacity, overflow=overflow)


def drain(mailbox: Mailbox[int]) -> list[int]:
    messages = []
    while (entry := mailbox.pop()) is not None:
        messages.append(entry.message)
        mailbox.done()
    return messages


def test_a_mailbox_without_room_is_refused() -> None:
    with pytest.raises(SpecError):
        box(capacity=0)


async def test_the_system_lane_overtakes_a_full_user_lane_and_never_refuses() -> None:
    mailbox = box(capacity=2)
    mailbox.put_nowait(1)
    mailbox.put_nowait(2)
    for number in range(100, 110):
        mailbox.put_system(number)

    assert drain(mailbox) == [*range(100, 110), 1, 2]


async def test_reject_refuses_at_once_and_counts() -> None:
    mailbox = box(capacity=1)
    mailbox.put_nowait(1)

    with pytest.raises(MailboxFull) as refused:
        mailbox.put_nowait(2)

    assert (refused.value.path, refused.value.capacity) == (PATH, 1)
    assert mailbox.statistics().dropped == 1
    assert drain(mailbox) == [1]


async def test_drop_oldest_keeps_the_newest_and_tells_the_asker_that_was_pushed_out() -> None:
    mailbox = box(capacity=2, overflow=Overflow.DROP_OLDEST)
    reply: Reply[int] = Reply(deadline=float("inf"))
    mailbox.put_nowait(1, reply)
    for number in (2, 3, 4):
        mailbox.put_nowait(number)

    assert mailbox.statistics().dropped == 2
    assert drain(mailbox) == [3, 4]
    with pytest.raises(MailboxFull):
        await reply.wait()


async def test_block_waits_for_room_in_order(nursery, autojump_clock) -> None:
    mailbox = box(capacity=1, overflow=Overflow.BLOCK)
    mailbox.put_nowait(1)
    nursery.start_soon(mailbox.put, 2)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(mailbox.put, 3)
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(MailboxFull):
        mailbox.put_nowait(4)
    assert mailbox.statistics().waiting == 2

    received = []
    for _ in range(3):
        received.append(await mailbox.get())
        await trio.testing.wait_all_tasks_blocked()

    assert received == [1, 2, 3]


async def test_a_blocked_sender_that_is_cancelled_leaves_nothing_behind(
    nursery, autojump_clock
) -> None:
    mailbox = box(capacity=1, overflow=Overflow.BLOCK)
    mailbox.put_nowait(1)

    with trio.move_on_after(1) as scope:
        await mailbox.put(2)

    assert scope.cancelled_caught
    assert drain(mailbox) == [1]


async def test_a_reader_waits_and_is_woken_by_either_lane(nursery, autojump_clock) -> None:
    mailbox = box()
    received = []

    async def read() -> None:
        received.extend([await mailbox.get(), await mailbox.get()])

    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    mailbox.put_nowait(1)
    await trio.testing.wait_all_tasks_blocked()
    mailbox.put_system(2)
    await trio.testing.wait_all_tasks_blocked()

    assert received == [1, 2]


async def test_a_cancelled_reader_loses_nothing(nursery, autojump_clock) -> None:
    mailbox = box()
    with trio.move_on_after(1):
        await mailbox.get()

    mailbox.put_nowait(1)

    assert await mailbox.get() == 1


async def test_a_second_reader_is_a_bug(nursery, autojump_clock) -> None:
    mailbox = box()
    nursery.start_soon(mailbox.get)
    await trio.testing.wait_all_tasks_blocked()

    with pytest.raises(RuntimeError, match="reader"):
        await mailbox.get()

    mailbox.put_nowait(1)


async def test_closing_nacks_what_is_queued_and_what_comes_later() -> None:
    mailbox = box(capacity=9)
    replies: list[Reply[int]] = [Reply(deadline=float("inf")) for _ in range(3)]
    mailbox.put_nowait(1, replies[0])
    mailbox.put_system(2, replies[1])
    mailbox.put_nowait(3)

    mailbox.close()
    mailbox.put_nowait(4, replies[2])
    mailbox.put_system(5)

    for reply in replies:
        with pytest.raises(ActorStopped):
            await reply.wait()
    assert mailbox.statistics().dead == 5
    assert drain(mailbox) == []


async def test_closing_lets_blocked_senders_go(nursery, autojump_clock) -> None:
    mailbox = box(capacity=1, overflow=Overflow.BLOCK)
    mailbox.put_nowait(1)
    nursery.start_soon(mailbox.put, 2)
    await trio.testing.wait_all_tasks_blocked()

    mailbox.close()
    await trio.testing.wait_all_tasks_blocked()

    assert mailbox.statistics().dead == 2


async def test_statistics_tell_depth_peak_and_the_age_of_the_oldest(autojump_clock) -> None:
    mailbox = box(capacity=9)
    for number in range(4):
        mailbox.put_nowait(number)
    mailbox.put_system(9)
    await trio.sleep(3)
    entry = mailbox.pop()
    assert entry is not None
    await trio.sleep(2)

    statistics = mailbox.statistics()

    assert (statistics.depth, statistics.system_depth, statistics.peak) == (4, 0, 4)
    assert statistics.oldest_age_s == pytest.approx(5.0)
    assert (statistics.current, statistics.current_age_s) == ("int", pytest.approx(2.0))
    mailbox.done()
    assert (mailbox.statistics().current, mailbox.statistics().handled) == (None, 1)


async def test_what_nobody_waits_for_any_more_is_skipped_and_counted(autojump_clock) -> None:
    mailbox = box(capacity=9)
    left: Reply[int] = Reply(deadline=float("inf"))
    expired: Reply[int] = Reply(deadline=trio.current_time() + 1)
    mailbox.put_nowait(1, left)
    mailbox.put_system(2, expired)
    mailbox.put_nowait(3)
    left.close()
    await trio.sleep(1)

    assert drain(mailbox) == [3]
    assert mailbox.statistics().expired == 2

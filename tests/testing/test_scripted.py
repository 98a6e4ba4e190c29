import itertools

import pytest
import trio
import trio.testing

from antiphon.errors import HostLost, HostProtocolError, HostStartFailed
from antiphon.events import (
    Abort,
    Admit,
    EndReason,
    Fault,
    HostFrame,
    Pause,
    Ready,
    Released,
    Resume,
    Sampling,
    Stats,
    Step,
)
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink

ONE = EngineRequest(1)


def admit(request: int = 1, slot: int = 0, max_tokens: int = 10) -> Admit:
    return Admit(
        request=EngineRequest(request),
        slot=SlotIndex(slot),
        prompt=[1],
        max_tokens=max_tokens,
        sampling=Sampling(),
        stop=[],
    )


async def until_released(link: ScriptedLink) -> list[HostFrame]:
    frames: list[HostFrame] = []
    while not (frames and isinstance(frames[-1], Released)):
        frames.append(await link.receive())
    return frames


def words(frames: list[HostFrame]) -> list[str]:
    return [text.text for frame in frames if isinstance(frame, Step) for text in frame.texts]


async def test_it_is_ready_answers_word_by_word_and_releases(autojump_clock):
    link = ScriptedLink()
    assert isinstance(await link.receive(), Ready)

    await link.send(admit())
    frames = await until_released(link)

    assert words(frames) == ["one", " two", " three", " four"]
    assert frames[-1] == Released(slot=SlotIndex(0), request=ONE, reason=EndReason.STOP, tokens=4)


async def test_an_endless_answer_ends_at_its_length(autojump_clock):
    link = ScriptedLink(answer=lambda _: itertools.repeat("la"))
    await link.receive()

    await link.send(admit(max_tokens=3))
    frames = await until_released(link)

    assert words(frames) == ["la"] * 3
    assert isinstance(frames[-1], Released)
    assert frames[-1].reason is EndReason.LENGTH


async def test_an_abort_is_released_at_the_next_step_and_harmless_after(autojump_clock):
    link = ScriptedLink(step_s=None)
    await link.receive()
    await link.send(admit())
    link.step()

    await link.send(Abort(request=ONE, slot=SlotIndex(0)))
    link.step()
    frames = await until_released(link)

    assert words(frames) == ["one"]
    assert isinstance(frames[-1], Released)
    assert frames[-1].reason is EndReason.CANCELLED
    await link.send(Abort(request=ONE, slot=SlotIndex(0)))
    assert link.live == ()


async def test_idle_it_reports_that_it_lives_and_hung_it_does_not(autojump_clock):
    link = ScriptedLink()
    await link.receive()

    assert isinstance(await link.receive(), Stats)
    link.hang()
    await link.send(admit())
    with trio.move_on_after(100) as silence:
        await link.receive()

    assert silence.cancelled_caught


async def test_a_dead_one_delivers_what_it_said_before(autojump_clock):
    link = ScriptedLink()
    link.die("exited with status 1")

    assert isinstance(await link.receive(), Ready)
    with pytest.raises(HostLost, match="status 1"):
        await link.receive()
    with pytest.raises(HostLost):
        await link.send(admit())


async def test_a_death_wakes_who_waits(autojump_clock):
    link = ScriptedLink(heartbeat_s=None)
    await link.receive()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_expect_loss, link)
        await trio.testing.wait_all_tasks_blocked()
        link.kill()

    assert link.killed


async def test_a_broken_protocol_is_raised_to_the_reader(autojump_clock):
    link = ScriptedLink()
    await link.receive()
    link.break_protocol("garbage")

    with pytest.raises(HostProtocolError, match="garbage"):
        await link.receive()


async def test_a_failed_request_is_a_fault_and_a_release(autojump_clock):
    link = ScriptedLink(step_s=None)
    await link.receive()
    await link.send(admit())

    link.fail(ONE, code="capacity", detail="full")
    frames = await until_released(link)

    assert frames[0] == Fault(code="capacity", detail="full", request=ONE)
    assert isinstance(frames[-1], Released)
    assert frames[-1].reason is EndReason.CAPACITY


async def test_it_refuses_what_the_contract_forbids(autojump_clock):
    link = ScriptedLink(step_s=None)
    await link.send(admit(1, 0))

    with pytest.raises(AssertionError, match="not free"):
        await link.send(admit(2, 0))
    with pytest.raises(AssertionError, match="twice"):
        await link.send(admit(1, 1))


async def test_a_launcher_refuses_as_told_then_makes_fresh_links(autojump_clock):
    launcher = ScriptedLauncher(refusals=["no memory"])

    with pytest.raises(HostStartFailed, match="no memory"):
        await launcher.launch()
    first = await launcher.launch()
    second = await launcher.launch()

    assert launcher.links == [first, second]
    assert launcher.link is second


async def _expect_loss(link: ScriptedLink) -> None:
    with pytest.raises(HostLost):
        await link.receive()


async def test_a_pause_keeps_the_words_and_a_resume_goes_on_in_any_free_slot():
    link = ScriptedLink(step_s=None)
    await link.receive()
    await link.send(admit())
    link.step()

    await link.send(Pause(request=ONE, slot=SlotIndex(0)))
    link.step()
    assert (link.live, link.paused) == ((), (ONE,))
    first = await until_released(link)
    await link.send(Resume(request=ONE, slot=SlotIndex(2)))
    for _ in range(3):
        link.step()
    second = await until_released(link)

    assert words(first) + words(second) == ["one", " two", " three", " four"]
    assert first[-1] == Released(slot=SlotIndex(0), request=ONE, reason=EndReason.PAUSED, tokens=1)
    assert second[-1] == Released(slot=SlotIndex(2), request=ONE, reason=EndReason.STOP, tokens=4)
    steps = [frame for frame in first + second if isinstance(frame, Step)]
    assert [step.prefilled for step in steps] == [1, 0, 2, 0, 0]


async def test_an_abort_makes_it_forget_what_is_paused_and_a_resume_of_that_fails():
    link = ScriptedLink(step_s=None)
    await link.receive()
    await link.send(admit())
    await link.send(Pause(request=ONE, slot=SlotIndex(0)))
    link.step()
    await until_released(link)

    await link.send(Abort(request=ONE, slot=SlotIndex(0)))
    await link.send(Resume(request=ONE, slot=SlotIndex(0)))

    assert await until_released(link) == [
        Fault(code="lost", detail="nothing is kept of it", request=ONE),
        Released(slot=SlotIndex(0), request=ONE, reason=EndReason.FAILED, tokens=0),
    ]


async def test_an_abort_beats_a_pause_and_an_end_beats_both():
    link = ScriptedLink(step_s=None)
    await link.receive()
    await link.send(admit())
    await link.send(admit(2, 1, max_tokens=1))
    await link.send(Pause(request=ONE, slot=SlotIndex(0)))
    await link.send(Abort(request=ONE, slot=SlotIndex(0)))

    link.step()
    await link.send(Pause(request=EngineRequest(2), slot=SlotIndex(1)))

    one, two = await until_released(link), await until_released(link)
    assert [frame.reason for frame in (one[-1], two[-1])] == [
        EndReason.CANCELLED,
        EndReason.LENGTH,
    ]
    assert link.paused == ()

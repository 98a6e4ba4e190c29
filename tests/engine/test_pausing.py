"""A generation that is taken out of its slot and put into another: nothing of it is lost, said
twice or told wrongly, however the commands cross its end."""

from collections.abc import Sequence

import pytest

from antiphon.engine.contract import AdmitRefused, EngineBroken, Failed, StepResult
from antiphon.errors import HostProtocolError
from antiphon.events import (
    Abort,
    Admit,
    EndReason,
    Fault,
    Halt,
    HostCommand,
    Pause,
    Released,
    Resume,
    Sampling,
    Step,
)
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.reciting import TOKENIZER, RecitingEngine, RecitingHost

ONE = EngineRequest(1)
TEXT = "hello 🎉 world"


def admit(
    text: str = TEXT,
    *stop: str,
    request: int = 1,
    slot: int = 0,
    max_tokens: int = 100,
    **sampling: object,
) -> Admit:
    return Admit(
        request=EngineRequest(request),
        slot=SlotIndex(slot),
        prompt=TOKENIZER.encode(text).ids,
        max_tokens=max_tokens,
        sampling=Sampling(**sampling),
        stop=list(stop),
    )


def pause(request: int = 1, slot: int = 0) -> Pause:
    return Pause(request=EngineRequest(request), slot=SlotIndex(slot))


def resume(request: int = 1, slot: int = 0) -> Resume:
    return Resume(request=EngineRequest(request), slot=SlotIndex(slot))


def abort(request: int = 1, slot: int = 0) -> Abort:
    return Abort(request=EngineRequest(request), slot=SlotIndex(slot))


def reasons(host: RecitingHost) -> list[EndReason]:
    return [frame.reason for frame in host.released]


WHOLE = len(TOKENIZER.encode(TEXT).ids) + 1


@pytest.mark.parametrize("before", range(WHOLE))
@pytest.mark.parametrize("lateness", [0, 2])
def test_a_paused_answer_goes_on_where_it_was(before: int, lateness: int):
    host = RecitingHost(RecitingEngine(lateness=lateness))
    host.turn(admit("hello 🎉 world", "🎊"))
    host.turns(max(0, before - 1))

    host.turn(pause())
    host.turns(3)
    if reasons(host) == [EndReason.PAUSED]:
        host.turn(resume(slot=1))
    host.turns(WHOLE)

    assert host.text == TEXT
    assert [text.tokens for text in host.texts] == list(range(1, WHOLE + 1))
    assert reasons(host) in ([EndReason.PAUSED, EndReason.STOP], [EndReason.STOP])
    assert host.released[-1].slot == host.texts[-1].slot


def test_the_slot_is_free_for_another_while_one_is_paused():
    host = RecitingHost(RecitingEngine(slots=1))
    host.turn(admit())

    host.turn(pause())
    host.turn(admit("other", request=2))
    host.turns(10)
    host.turn(resume())
    host.turns(WHOLE)

    assert [(frame.request, frame.reason) for frame in host.released] == [
        (1, EndReason.PAUSED),
        (2, EndReason.STOP),
        (1, EndReason.STOP),
    ]
    assert "".join(text.text for text in host.texts if text.request == ONE) == TEXT


def test_a_pause_is_told_before_the_step_that_frees_its_slot():
    host = RecitingHost()
    host.turn(admit())

    frames = host.turn(pause())

    assert frames[0] == Released(slot=SlotIndex(0), request=ONE, reason=EndReason.PAUSED, tokens=1)
    assert isinstance(frames[1], Step)
    assert frames[1].texts == []


def test_an_engine_that_lets_go_late_is_waited_for():
    host = RecitingHost(RecitingEngine(lateness=3))
    host.turn(admit())
    host.turn(pause())
    host.turn()

    assert host.released == []
    host.turn()
    # What the engine had still said is told and not generated again.
    assert host.released == [
        Released(slot=SlotIndex(0), request=ONE, reason=EndReason.PAUSED, tokens=2)
    ]
    host.turn(resume())
    assert host.engine.entered == [(ONE, 0), (ONE, 2)]


def test_a_stop_string_is_found_across_the_pause():
    host = RecitingHost()
    host.turn(admit("hello world", "o wo"))
    host.turns(3)
    assert host.text == "hell"

    host.turn(pause())
    host.turn(resume())
    host.turns(WHOLE)

    assert host.text == "hell"
    assert host.texts[-1].end is EndReason.STOP
    assert reasons(host) == [EndReason.PAUSED, EndReason.STOP]


def test_the_bounds_of_an_answer_hold_across_the_pause():
    host = RecitingHost()
    host.turn(admit("hhhhhhhh", max_tokens=5))
    host.turn()

    host.turn(pause())
    host.turn(resume())
    host.turns(8)

    assert host.text == "hhhhh"
    assert host.texts[-1].end is EndReason.LENGTH
    assert host.released[-1].tokens == 5


def test_a_pause_before_the_first_token_begins_anew_later():
    host = RecitingHost()

    host.turn(admit(), pause())
    host.turn(resume())
    host.turns(WHOLE)

    assert host.text == TEXT
    assert host.released[0].tokens == 0
    assert host.engine.entered == [(ONE, 0), (ONE, 0)]


def test_a_second_pause_changes_nothing():
    host = RecitingHost(RecitingEngine(lateness=2))
    host.turn(admit())

    host.turn(pause(), pause())
    host.turn(pause())
    host.turn(pause())

    assert reasons(host) == [EndReason.PAUSED]


def test_a_pause_that_the_end_has_overtaken_pauses_nothing():
    host = RecitingHost()
    host.turn(admit("h"))
    host.turn()

    host.turn(pause())
    host.turn(pause())

    assert reasons(host) == [EndReason.STOP]


@pytest.mark.parametrize("end_apart", [True, False])
def test_an_answer_that_ends_while_it_is_being_paused_has_ended(end_apart: bool):
    host = RecitingHost(RecitingEngine(lateness=3, end_apart=end_apart))
    host.turn(admit("hh", max_tokens=2))

    host.turn(pause())
    host.turns(3)

    assert host.text == "hh"
    assert host.texts[-1].end is EndReason.LENGTH
    assert reasons(host) == [EndReason.LENGTH]


def test_a_full_answer_whose_end_is_still_to_come_is_not_paused():
    host = RecitingHost(RecitingEngine(end_apart=True))
    host.turn(admit("hh", max_tokens=2))
    host.turn()

    host.turn(pause())

    assert reasons(host) == [EndReason.LENGTH]


def test_a_stop_string_that_is_complete_while_it_is_being_paused_ends_it():
    host = RecitingHost(RecitingEngine(lateness=3))
    host.turn(admit("h.h", "."))

    host.turn(pause())
    host.turns(3)

    assert host.text == "h"
    assert host.texts[-1].end is EndReason.STOP
    assert reasons(host) == [EndReason.STOP]


@pytest.mark.parametrize("lateness", [0, 3])
def test_an_abort_before_the_slot_is_free_drops_what_was_to_be_kept(lateness: int):
    host = RecitingHost(RecitingEngine(lateness=lateness))
    host.turn(admit())

    host.turn(pause(), abort())
    host.turns(3)

    assert reasons(host) == [EndReason.CANCELLED]
    assert host.runtime.paused == 0


def test_an_abort_of_a_paused_one_forgets_it_and_releases_nothing():
    host = RecitingHost()
    host.turn(admit())
    host.turn(pause())

    host.turn(abort(), abort())

    assert reasons(host) == [EndReason.PAUSED]
    assert host.runtime.paused == 0


def test_an_abort_after_a_resume_is_an_abort_like_any_other():
    host = RecitingHost()
    host.turn(admit())
    host.turn(pause())

    host.turn(resume())
    host.turn(abort())

    assert reasons(host) == [EndReason.PAUSED, EndReason.CANCELLED]
    assert host.released[-1].tokens == 2


def test_a_pause_after_an_abort_keeps_nothing():
    host = RecitingHost()
    host.turn(admit())

    host.turn(abort(), pause())

    assert reasons(host) == [EndReason.CANCELLED]
    assert host.runtime.paused == 0


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_resume_of_something_unknown_fails_that_one_alone(forgotten: bool):
    host = RecitingHost()
    host.turn(admit(request=2, slot=1))
    if forgotten:
        host.turn(admit())
        host.turn(pause())
        host.turn(abort())

    frames = host.turn(resume())
    host.turns(WHOLE)

    assert [frame for frame in frames if not isinstance(frame, Step)] == [
        Fault(code="lost", detail="nothing is kept of a paused answer", request=ONE),
        Released(slot=SlotIndex(0), request=ONE, reason=EndReason.FAILED, tokens=0),
    ]
    assert "".join(text.text for text in host.texts if text.request == 2) == TEXT


@pytest.mark.parametrize("wrong", [resume(slot=1), resume(slot=2), resume(slot=-1), admit(slot=0)])
def test_a_resume_that_contradicts_the_table_is_a_breach(wrong: HostCommand):
    host = RecitingHost()
    host.turn(admit())
    host.turn(pause())
    host.turn(admit(request=2, slot=1))

    with pytest.raises(HostProtocolError):
        host.turn(wrong)


@pytest.mark.parametrize("commands", [[], [abort()]])
def test_the_number_of_a_paused_request_is_never_used_again(commands: list[HostCommand]):
    host = RecitingHost()
    host.turn(admit())
    host.turn(pause())

    host.turn(*commands)

    with pytest.raises(HostProtocolError, match="admitted before"):
        host.turn(admit())


def test_a_resume_of_one_that_has_a_slot_is_a_breach():
    host = RecitingHost()
    host.turn(admit())

    with pytest.raises(HostProtocolError, match="not paused"):
        host.turn(resume(slot=1))


def test_a_refusal_at_the_resume_is_a_fault_and_a_release():
    class Full(RecitingEngine):
        def admit(self, admit: Admit, generated: Sequence[int] = ()) -> None:
            if generated:
                raise AdmitRefused("capacity", "why")
            super().admit(admit)

    host = RecitingHost(Full())
    host.turn(admit())
    host.turn(pause())

    frames = host.turn(resume())

    assert frames == [
        Fault(code="capacity", detail="why", request=ONE),
        Released(slot=SlotIndex(0), request=ONE, reason=EndReason.CAPACITY, tokens=1),
    ]
    assert host.runtime.paused == 0


def test_a_request_that_fails_while_it_is_being_paused_has_failed():
    class Failing(RecitingEngine):
        def step(self) -> StepResult:
            result = super().step()
            freed = [Failed(request, "engine_error", "why") for request in result.freed]
            return StepResult(gained=result.gained, failed=freed)

    host = RecitingHost(Failing(lateness=1))
    host.turn(admit())

    host.turn(pause())

    assert reasons(host) == [EndReason.FAILED]
    assert host.runtime.paused == 0


def test_a_halt_does_not_wait_for_what_is_paused():
    host = RecitingHost()
    host.turn(admit())
    host.turn(pause())

    host.channel.commands.append(Halt())

    assert host.runtime.turn() is False


def test_an_engine_that_breaks_ends_the_host_with_what_is_paused():
    class Breaking(RecitingEngine):
        def step(self) -> StepResult:
            if any(request == 2 for request, _ in self.entered):
                raise EngineBroken("why")
            return super().step()

    host = RecitingHost(Breaking())
    host.turn(admit())
    host.turn(pause())

    with pytest.raises(EngineBroken):
        host.turn(admit(request=2))

    assert host.frames[-1] == Fault(code="engine_broken", detail="why")

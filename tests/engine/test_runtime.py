from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from antiphon.engine.channel import ServerGone
from antiphon.engine.contract import AdmitRefused, EngineBroken, Failed, Gained, StepResult
from antiphon.engine.runtime import HostRuntime
from antiphon.engine.vocabulary import Vocabulary
from antiphon.errors import HostProtocolError
from antiphon.events import (
    Abort,
    Admit,
    EndReason,
    Fault,
    Halt,
    HostCommand,
    HostFrame,
    Released,
    Sampling,
    SlotText,
    Stats,
    Step,
)
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.spelling import SpellingEngine
from antiphon.testing.vocabularies import END, byte_level_vocabulary

TOKENIZER = byte_level_vocabulary()
VOCABULARY = Vocabulary(TOKENIZER)
ONE = EngineRequest(1)


@dataclass
class ScriptedChannel:
    """Hands out one list of commands a turn, then the end of the server."""

    turns: list[list[HostCommand]]
    frames: list[HostFrame] = field(default_factory=list)

    def receive(self, timeout_s: float, also: Sequence[int] = ()) -> list[HostCommand]:
        if not self.turns:
            raise ServerGone
        return self.turns.pop(0)

    def send(self, frames: list[HostFrame]) -> None:
        self.frames += [frame for frame in frames if not isinstance(frame, Stats)]

    def flush(self, timeout_s: float) -> None: ...


def admit(request: int = 1, slot: int = 0, *stop: str) -> Admit:
    return Admit(
        request=EngineRequest(request),
        slot=SlotIndex(slot),
        prompt=[1],
        max_tokens=50,
        sampling=Sampling(),
        stop=list(stop),
    )


def abort(request: int = 1, slot: int = 0) -> Abort:
    return Abort(request=EngineRequest(request), slot=SlotIndex(slot))


def run(turns: list[list[HostCommand]], engine: SpellingEngine | None = None) -> list[HostFrame]:
    """The frames of a host that is halted after these turns."""
    channel = ScriptedChannel([*turns, [Halt()]])
    HostRuntime(engine or SpellingEngine(), VOCABULARY, channel, frozenset({END})).run()
    return channel.frames


def texts(frames: list[HostFrame]) -> list[SlotText]:
    return [text for frame in frames if isinstance(frame, Step) for text in frame.texts]


def released(frames: list[HostFrame]) -> list[Released]:
    return [frame for frame in frames if isinstance(frame, Released)]


def test_an_answer_is_spelled_ended_and_released_once():
    frames = run([[admit()], *[[]] * 8])

    assert "".join(text.text for text in texts(frames)) == "hello"
    assert [text.end for text in texts(frames)][-2:] == [None, EndReason.STOP]
    tokens = texts(frames)[-1].tokens
    assert frames[-1] == Released(
        slot=SlotIndex(0), request=ONE, reason=EndReason.STOP, tokens=tokens
    )
    assert len(released(frames)) == 1


def test_each_step_is_one_frame_and_an_idle_engine_makes_none():
    frames = run([[admit(1, 0), admit(2, 1)], [], [], [], [], [], [], [], []])

    steps = [frame for frame in frames if isinstance(frame, Step)]
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert [len(step.texts) for step in steps] == [2] * len(steps)
    assert len(steps) == texts(frames)[-1].tokens


def test_a_stop_string_ends_the_answer_and_aborts_the_engine():
    engine = SpellingEngine()

    frames = run([[admit(1, 0, "l")], [], [], [], []], engine)

    assert "".join(text.text for text in texts(frames)) == "he"
    assert texts(frames)[-1].end is EndReason.STOP
    assert [frame.reason for frame in released(frames)] == [EndReason.STOP]
    steps = [frame for frame in frames if isinstance(frame, Step)]
    assert len(steps) == texts(frames)[-1].tokens + 1


def test_tokens_that_come_after_an_abort_are_not_told():
    class LateEngine(SpellingEngine):
        def step(self) -> StepResult:
            late = [Gained(request, [5], None) for request in self.aborted]
            result = super().step()
            return StepResult(gained=[*result.gained, *late], freed=result.freed)

    frames = run([[admit()], [], [abort()], [], []], LateEngine())

    assert len(texts(frames)) == 2
    assert released(frames)[0].tokens == 2


def test_an_abort_releases_the_slot_before_the_step_that_frees_it():
    frames = run([[admit()], [], [abort()], [], []])

    [gone] = released(frames)
    assert gone.reason is EndReason.CANCELLED
    after = [frame for frame in frames[frames.index(gone) :] if isinstance(frame, Step)]
    assert [step.texts for step in after] == [[]]


def test_an_engine_that_promises_nothing_keeps_the_slot_until_a_step_freed_it():
    frames = run([[admit()], [], [abort()], [], []], SpellingEngine(frees_in_next_step=False))

    [gone] = released(frames)
    before = [frame for frame in frames[: frames.index(gone)] if isinstance(frame, Step)]
    assert gone.reason is EndReason.CANCELLED
    assert before[-1].texts == []


def test_a_slot_given_back_early_can_be_admitted_to_in_the_next_batch():
    frames = run([[admit(1, 0)], [abort(1, 0)], [admit(2, 0)], *[[]] * 8])

    assert [frame.request for frame in released(frames)] == [1, 2]
    assert {text.request for text in texts(frames)[1:]} == {2}


def test_an_abort_in_the_same_batch_as_its_admit_is_still_released_once():
    frames = run([[admit(), abort(), abort()], [abort()], []])

    assert texts(frames) == []
    assert [frame.reason for frame in released(frames)] == [EndReason.CANCELLED]


def test_a_refused_admit_is_a_fault_and_a_release():
    frames = run([[admit()], []], SpellingEngine(refuse=AdmitRefused("invalid_schema", "why")))

    assert frames == [
        Fault(code="invalid_schema", detail="why", request=ONE),
        Released(slot=SlotIndex(0), request=ONE, reason=EndReason.FAILED, tokens=0),
    ]


def test_a_refusal_for_want_of_room_says_so():
    frames = run([[admit()], []], SpellingEngine(refuse=AdmitRefused("capacity", "full")))

    assert released(frames)[0].reason is EndReason.CAPACITY


def test_a_failed_request_does_not_touch_the_others():
    engine = SpellingEngine(fail=Failed(ONE, "engine_error", "why"))

    frames = run([[admit(1, 0), admit(2, 1)], *[[]] * 8], engine)

    reasons = {frame.request: frame.reason for frame in released(frames)}
    assert reasons == {1: EndReason.FAILED, 2: EndReason.STOP}
    assert {text.request for text in texts(frames)} == {2}


def test_a_breach_of_the_protocol_ends_the_host_and_is_reported():
    channel = ScriptedChannel([[admit(1, 0)], [admit(2, 0)]])
    runtime = HostRuntime(SpellingEngine(), VOCABULARY, channel, frozenset({END}))

    with pytest.raises(HostProtocolError):
        runtime.run()

    assert isinstance(channel.frames[-1], Fault)
    assert channel.frames[-1].code == "protocol"


def test_a_broken_engine_ends_the_host_and_is_reported():
    channel = ScriptedChannel([[admit()]])
    engine = SpellingEngine(throw=EngineBroken("why"))

    with pytest.raises(EngineBroken):
        HostRuntime(engine, VOCABULARY, channel, frozenset({END})).run()

    assert channel.frames == [Fault(code="engine_broken", detail="why")]

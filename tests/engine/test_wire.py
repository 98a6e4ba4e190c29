import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.wire import MAX_FRAME_BYTES, command_decoder, encode_frame, frame_decoder
from antiphon.errors import HostProtocolError
from antiphon.events import (
    Abort,
    Admit,
    Capabilities,
    EndReason,
    Fault,
    Halt,
    HostFrame,
    Pause,
    Ready,
    Released,
    Resume,
    Sampling,
    SlotText,
    Stats,
    Step,
    TokenLogprob,
)
from antiphon.ids import EngineRequest, SlotIndex

ADMIT = Admit(
    request=EngineRequest(7),
    slot=SlotIndex(3),
    prompt=[1, 2, 49_151],
    max_tokens=9,
    sampling=Sampling(temperature=0.5, seed=2**63, json_schema="{}"),
    stop=["\n\n", "🎉"],
)
FRAMES: list[HostFrame] = [
    Ready(
        pid=4,
        capabilities=Capabilities(
            engine="e",
            engine_version="1",
            slots=2,
            kv_blocks=3,
            block_size=32,
            window=64,
            special_tokens=[2],
            logprobs=True,
            json_schema=False,
        ),
    ),
    Step(
        number=1,
        duration_s=0.5,
        texts=[
            SlotText(
                slot=SlotIndex(0),
                request=EngineRequest(1),
                text="héllo 🎉",
                tokens=2,
                end=EndReason.STOP,
                logprobs=[TokenLogprob(text="", data=b"\xf0\x9f", logprob=-1.5)],
            )
        ],
        prefilled=7,
    ),
    Released(slot=SlotIndex(0), request=EngineRequest(1), reason=EndReason.STOP, tokens=2),
    Released(slot=SlotIndex(0), request=EngineRequest(3), reason=EndReason.PAUSED, tokens=2),
    Stats(steps=1, live=0, kv_usage=0.25),
    Fault(code="x", detail="y"),
]


@given(cuts=st.lists(st.integers(0, 400), max_size=12))
def test_frames_survive_any_split_of_the_stream(cuts: list[int]):
    stream = b"".join(map(encode_frame, FRAMES))
    edges = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    decoder = frame_decoder()

    received: list[HostFrame] = []
    for start, stop in itertools.pairwise(edges):
        received += decoder.feed(stream[start:stop])

    assert received == FRAMES
    assert decoder.pending_bytes == 0


def test_commands_survive_the_round_trip():
    where = {"request": EngineRequest(7), "slot": SlotIndex(3)}
    commands = [ADMIT, Pause(**where), Resume(**where), Abort(**where), Halt()]

    assert command_decoder().feed(b"".join(map(encode_frame, commands))) == commands


@pytest.mark.parametrize(
    "stream",
    [
        b"\x00\x00\x00\x01\xc1",
        b"\x00\x00\x00\x04\x93\xa4nope",
        b"\x00\x00\x00\x00",
        (MAX_FRAME_BYTES + 1).to_bytes(4, "big"),
        encode_frame(ADMIT),
    ],
    ids=["not msgpack", "unknown tag", "empty", "too long", "a command where a frame belongs"],
)
def test_what_the_contract_does_not_know_breaks_the_protocol(stream: bytes):
    with pytest.raises(HostProtocolError):
        frame_decoder().feed(stream)


def test_a_frame_too_long_to_be_read_is_not_sent():
    with pytest.raises(HostProtocolError):
        encode_frame(Fault(code="x", detail="y" * MAX_FRAME_BYTES))


def test_a_torn_frame_is_seen_as_pending():
    decoder = frame_decoder()

    assert decoder.feed(encode_frame(FRAMES[-1])[:-1]) == []

    assert decoder.pending_bytes > 0

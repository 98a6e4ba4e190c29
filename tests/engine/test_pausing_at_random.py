"""Whatever a server pauses, resumes and aborts, in any order: each answer is what it would have
been, each slot is given back once."""

from dataclasses import dataclass, field

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.events import (
    Abort,
    Admit,
    EndReason,
    HostCommand,
    Pause,
    Released,
    Resume,
    Sampling,
    SlotText,
    Step,
)
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.reciting import TOKENIZER, RecitingEngine, RecitingHost


def script(text: str, *stop: str, max_tokens: int = 100, **sampling: object) -> Admit:
    return Admit(
        request=EngineRequest(0),
        slot=SlotIndex(0),
        prompt=TOKENIZER.encode(text).ids,
        max_tokens=max_tokens,
        sampling=Sampling(logprobs=True, **sampling),
        stop=list(stop),
    )


SCRIPTS = [
    script("hello 🎉 world"),
    script("hello 🎉🎉 world", "🎉🎉", "wox"),
    script("hell ll lll", "lll", min_tokens=7),
    script("héllo wé hello wé", max_tokens=9),
]


@dataclass
class Asked:
    """What the server did with one request, and heard of it."""

    slot: int | None
    aborted: bool = False
    paused: bool = False
    over: bool = False
    entries: int = 1
    pieces: list[SlotText] = field(default_factory=list)
    released: list[Released] = field(default_factory=list)

    @property
    def told(self) -> tuple[str, EndReason | None, int, list[float]]:
        last = self.pieces[-1] if self.pieces else None
        entries = [entry for piece in self.pieces for entry in piece.logprobs or []]
        return (
            "".join(piece.text for piece in self.pieces),
            last.end if last else None,
            last.tokens if last else 0,
            [entry.logprob for entry in entries],
        )


class Server:
    """Sends only what a server may, and pauses and aborts whenever it likes."""

    def __init__(self, engine: RecitingEngine) -> None:
        self.host = RecitingHost(engine)
        self.free = list(range(engine.slots))
        self.asked: dict[int, Asked] = {}

    def turn(self, *commands: HostCommand) -> None:
        for frame in self.host.turn(*commands):
            match frame:
                case Step():
                    for text in frame.texts:
                        asked = self.asked[text.request]
                        assert asked.slot == text.slot
                        assert not asked.aborted or not asked.over
                        asked.pieces.append(text)
                case Released():
                    asked = self.asked[frame.request]
                    assert asked.slot == frame.slot
                    asked.slot = None
                    asked.paused = frame.reason is EndReason.PAUSED
                    asked.over = not asked.paused
                    asked.released.append(frame)
                    self.free.append(frame.slot)
                case _:
                    raise AssertionError(frame)

    def enter(self, request: int) -> list[HostCommand]:
        """Admit or resume it, if it can be."""
        asked = self.asked.get(request)
        if not self.free or (asked is not None and (not asked.paused or asked.aborted)):
            return []
        slot = self.free.pop()
        if asked is None:
            self.asked[request] = Asked(slot)
            command = msgspec.structs.replace(SCRIPTS[request], request=request, slot=slot)
            return [command]
        asked.slot, asked.paused = slot, False
        asked.entries += 1
        return [Resume(request=EngineRequest(request), slot=SlotIndex(slot))]

    def abort(self, request: int) -> list[HostCommand]:
        if (asked := self.asked.get(request)) is not None:
            asked.aborted = True
        return [Abort(request=EngineRequest(request), slot=SlotIndex(0))]

    def finish(self) -> None:
        """Go on until nothing is left that was not aborted."""
        for _ in range(400):
            if all(asked.over or (asked.aborted and asked.paused) for asked in self.asked.values()):
                break
            self.turn(*[command for request in self.asked for command in self.enter(request)])
        assert self.host.runtime.paused == 0
        assert sorted(self.free) == list(range(self.host.engine.slots))


def unpaused(request: int) -> Asked:
    server = Server(RecitingEngine())
    server.turn(*server.enter(request))
    server.finish()
    return server.asked[request]


UNPAUSED = {request: unpaused(request) for request in range(len(SCRIPTS))}
ENGINES = st.builds(
    RecitingEngine,
    slots=st.integers(1, 3),
    pace=st.integers(1, 3),
    lateness=st.integers(0, 3),
    end_apart=st.booleans(),
)
DEEDS = st.tuples(
    st.sampled_from(["enter", "pause", "pause", "abort", "enter", "enter"]),
    st.sampled_from(list(UNPAUSED)),
)


@settings(max_examples=200, deadline=None)
@given(engine=ENGINES, script=st.lists(st.lists(DEEDS, max_size=3), max_size=40))
def test_whatever_is_paused_and_aborted_answers_are_what_they_would_have_been(
    engine: RecitingEngine, script: list[list[tuple[str, int]]]
):
    server = Server(engine)
    for deeds in script:
        commands: list[HostCommand] = []
        for deed, request in deeds:
            match deed:
                case "enter":
                    commands += server.enter(request)
                case "pause":
                    commands.append(Pause(request=EngineRequest(request), slot=SlotIndex(0)))
                case _:
                    commands += server.abort(request)
        server.turn(*commands)
    server.finish()

    for request, asked in server.asked.items():
        text, end, tokens, logprobs = asked.told
        whole = UNPAUSED[request].told
        kept = asked.released[-1].reason is EndReason.PAUSED
        assert len(asked.released) == asked.entries
        assert [one.reason is EndReason.PAUSED for one in asked.released[:-1]] == [True] * (
            asked.entries - 1
        )
        assert asked.aborted or not kept
        counts = [piece.tokens for piece in asked.pieces]
        assert counts == sorted(counts)
        if asked.aborted:
            assert whole[0].startswith(text)
            assert whole[3][: len(logprobs)] == logprobs
        else:
            assert (text, end, tokens, logprobs) == whole
            assert asked.released[-1].reason is end
            assert asked.released[-1].tokens == tokens

"""An engine without a model whose answer is its prompt, and a host that runs it in memory, turn by
turn.

For tests of what a host does with an answer that is taken out and put back: the engine refuses a
continuation that isn't the one it would have given itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from antiphon.engine.contract import Gained, StepResult
from antiphon.engine.runtime import HostRuntime
from antiphon.engine.vocabulary import Vocabulary
from antiphon.events import (
    Admit,
    Capabilities,
    EndReason,
    HostCommand,
    HostFrame,
    Released,
    SlotText,
    Stats,
    Step,
)
from antiphon.ids import EngineRequest
from antiphon.testing.scripted import scripted_capabilities
from antiphon.testing.vocabularies import END, byte_level_vocabulary

TOKENIZER = byte_level_vocabulary()
_VOCABULARY = Vocabulary(TOKENIZER)


@dataclass(slots=True)
class _Recital:
    admit: Admit
    rest: list[int]
    end: EndReason
    leaving_in: int | None = None


@dataclass
class RecitingEngine:
    """Recites `pace` tokens a step. What was aborted is free after `lateness` steps, and 0 promises
    the next one; a late one may still speak in the first of them. With `end_apart` an answer's end
    comes a step after its last token, as engines tell it that cut a stop token off."""

    slots: int = 2
    pace: int = 1
    lateness: int = 0
    end_apart: bool = False
    descriptors: Sequence[int] = ()
    entered: list[tuple[EngineRequest, int]] = field(default_factory=list)
    """Each admission, and how much of its answer there was."""

    def __post_init__(self) -> None:
        self._live: dict[EngineRequest, _Recital] = {}

    @property
    def capabilities(self) -> Capabilities:
        return scripted_capabilities(slots=self.slots)

    def admit(self, admit: Admit, generated: Sequence[int] = ()) -> None:
        if admit.request in self._live:
            raise AssertionError(f"request {admit.request} is inside already")
        if len(self._live) == self.slots:
            raise AssertionError("more requests than slots")
        answer = [*admit.prompt, END]
        if list(generated) != answer[: len(generated)]:
            raise AssertionError(f"{generated} is not how the answer begins")
        whole = answer[: admit.max_tokens]
        end = EndReason.STOP if len(whole) == len(answer) else EndReason.LENGTH
        rest = whole[len(generated) :]
        if not rest:
            raise AssertionError("an empty answer")
        self._live[admit.request] = _Recital(admit, rest, end)
        self.entered.append((admit.request, len(generated)))

    def abort(self, request: EngineRequest) -> bool:
        if (recital := self._live.get(request)) is not None and recital.leaving_in is None:
            recital.leaving_in = self.lateness
        return not self.lateness

    def step(self) -> StepResult:
        result = StepResult()
        for request, recital in list(self._live.items()):
            leaving_in = recital.leaving_in
            # What was under way when the abort came.
            if leaving_in is None or 0 < leaving_in == self.lateness:
                self._recite(request, recital, result)
            if leaving_in is not None:
                recital.leaving_in = leaving_in - 1
                if leaving_in <= 1:
                    del self._live[request]
                    result.freed.append(request)
        return result

    def busy(self) -> bool:
        return bool(self._live)

    def kv_usage(self) -> float:
        return len(self._live) / self.slots

    def close(self) -> None: ...

    def _recite(self, request: EngineRequest, recital: _Recital, result: StepResult) -> None:
        tokens, recital.rest = recital.rest[: self.pace], recital.rest[self.pace :]
        ended = not recital.rest and (not self.end_apart or not tokens)
        logprobs = [-float(token) for token in tokens]
        end = recital.end if ended else None
        result.gained.append(Gained(request, tokens, logprobs, end))
        if ended and recital.leaving_in is None:
            del self._live[request]
            result.freed.append(request)


@dataclass
class ListChannel:
    """Commands are put into `commands`; each turn takes them all. `frames` are without Stats."""

    commands: list[HostCommand] = field(default_factory=list)
    frames: list[HostFrame] = field(default_factory=list)

    def receive(self, timeout_s: float, also: Sequence[int] = ()) -> list[HostCommand]:
        commands, self.commands = self.commands, []
        return commands

    def send(self, frames: list[HostFrame]) -> None:
        self.frames += [frame for frame in frames if not isinstance(frame, Stats)]

    def flush(self, timeout_s: float) -> None: ...


class RecitingHost:
    """A runtime, and what it said."""

    def __init__(self, engine: RecitingEngine | None = None) -> None:
        self.engine = engine or RecitingEngine()
        self.channel = ListChannel()
        self.runtime = HostRuntime(self.engine, _VOCABULARY, self.channel, frozenset({END}))

    def turn(self, *commands: HostCommand) -> list[HostFrame]:
        """The frames of one turn that takes these commands."""
        self.channel.commands += commands
        before = len(self.channel.frames)
        self.runtime.turn()
        return self.channel.frames[before:]

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.turn()

    @property
    def texts(self) -> list[SlotText]:
        return [text for frame in self.frames if isinstance(frame, Step) for text in frame.texts]

    @property
    def text(self) -> str:
        return "".join(text.text for text in self.texts)

    @property
    def frames(self) -> list[HostFrame]:
        return self.channel.frames

    @property
    def released(self) -> list[Released]:
        return [frame for frame in self.frames if isinstance(frame, Released)]

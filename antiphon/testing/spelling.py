"""An engine without a model that spells "hello", and a host process that runs it:
`python -m antiphon.testing.spelling`.

For tests of everything around an engine: the runtime, the process, the socket.
"""

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field

from antiphon.engine.contract import AdmitRefused, Failed, Gained, StepResult
from antiphon.engine.host import main
from antiphon.events import Admit, EndReason
from antiphon.ids import EngineRequest
from antiphon.testing.scripted import scripted_capabilities
from antiphon.testing.vocabularies import END, byte_level_vocabulary

HANG = 1_000
"""A prompt that begins with this token makes the engine never return."""


@dataclass
class SpellingEngine:
    """Spells "hello" to every request, a token a step; frees what was aborted a step later, and
    says whether it promised so."""

    capabilities = scripted_capabilities(slots=2)
    frees_in_next_step: bool = True
    descriptors: Sequence[int] = ()
    refuse: AdmitRefused | None = None
    throw: Exception | None = None
    fail: Failed | None = None
    live: dict[EngineRequest, list[int]] = field(default_factory=dict)
    aborted: list[EngineRequest] = field(default_factory=list)

    def admit(self, admit: Admit, generated: Sequence[int] = ()) -> None:
        if admit.prompt[0] == HANG:
            signal.pause()
        if self.refuse is not None:
            raise self.refuse
        self.live[admit.request] = [*_HELLO, END][len(generated) :]

    def abort(self, request: EngineRequest) -> bool:
        if self.live.pop(request, None) is not None:
            self.aborted.append(request)
        return self.frees_in_next_step

    def step(self) -> StepResult:
        if self.throw is not None:
            raise self.throw
        result = StepResult(freed=self.aborted)
        self.aborted = []
        if self.fail is not None:
            del self.live[self.fail.request]
            result.failed.append(self.fail)
            self.fail = None
        for request, tokens in list(self.live.items()):
            token = tokens.pop(0)
            end = None if tokens else EndReason.STOP
            result.gained.append(Gained(request, [token], None, end))
            if end is not None:
                del self.live[request]
                result.freed.append(request)
        return result

    def busy(self) -> bool:
        return bool(self.live or self.aborted)

    def kv_usage(self) -> float:
        return 0.5

    def close(self) -> None: ...


_HELLO = byte_level_vocabulary().encode("hello").ids

if __name__ == "__main__":
    main(lambda _: SpellingEngine())

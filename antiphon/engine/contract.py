"""What an in-process engine does for the host runtime: tokens in, tokens out, one step at a time.

Nothing here knows text, frames or sockets; a TensorRT-LLM engine implements the same Protocol.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from antiphon.errors import EngineError
from antiphon.events import Admit, Capabilities, EndReason
from antiphon.ids import EngineRequest


@dataclass(eq=False)
class AdmitRefused(EngineError):
    """The engine will never run this request; it holds nothing of it. `code` is `capacity`,
    `window`, `invalid_schema` or `invalid_sampling`."""

    code: str
    detail: str

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


@dataclass(eq=False)
class EngineBroken(EngineError):
    """The engine can't be brought back to a known state; the host process must end."""

    detail: str

    def __str__(self) -> str:
        return f"engine broken: {self.detail}"


@dataclass(frozen=True, slots=True)
class Gained:
    """New tokens of one request in one step, an ending token included. `logprobs` is parallel to
    `tokens`. `cached` comes with the first ones, from an engine that can tell: how many tokens of
    the prompt it had computed for somebody before."""

    request: EngineRequest
    tokens: Sequence[int]
    logprobs: Sequence[float] | None = None
    end: EndReason | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The engine gave up one request and holds nothing of it any more."""

    request: EngineRequest
    code: str
    detail: str


@dataclass(slots=True)
class StepResult:
    """What one step did. `freed` lists requests of which the engine holds nothing any more: slot
    and KV are back. A failed request is in `failed` only. `duration_s` is set where an engine
    steps by itself: what the host could measure is only how long it took to hear of it.
    `prefilled` is the best estimate there is of the prompt tokens that the step computed."""

    gained: list[Gained] = field(default_factory=list)
    freed: list[EngineRequest] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    duration_s: float | None = None
    prefilled: int = 0


class StepEngine(Protocol):
    """An engine that the host drives from its one thread."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def descriptors(self) -> Sequence[int]:
        """When one of these is readable a step is worth while, though the engine is not busy."""

    def admit(self, admit: Admit, generated: Sequence[int] = ()) -> None:
        """Take the request in; its first token comes in a later step. Raises AdmitRefused.

        `generated` is what its answer has already, from an earlier admission that was aborted and
        freed: it follows the prompt and counts against `max_tokens` and `min_tokens`, and the seed
        moves on with it. With a JSON schema that can't be, since the grammar would begin anew.
        """

    def abort(self, request: EngineRequest) -> bool:
        """Stop one request; a later step reports it freed. Tokens not yet reported are lost, all
        or the last of them: what a step may still report goes on without a gap. Harmless when
        unknown.

        True promises that the very next step frees it and computes nothing more for it. The host
        then gives the slot back before that step, since it reads no command until the step is over.
        """

    def step(self) -> StepResult:
        """Run one engine step. Raises EngineBroken when no later step could work."""

    def busy(self) -> bool:
        """Whether a step would do anything, be it only freeing what was aborted."""

    def kv_usage(self) -> float:
        """The used part of the KV cache at the last step, 0…1."""

    def close(self) -> None:
        """Let go of everything; idempotent."""

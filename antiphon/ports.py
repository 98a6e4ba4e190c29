"""What the core needs from the leaves, said at the user's side. Implementations are structural:
nobody inherits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from antiphon.events import (
    CancelCause,
    Capabilities,
    HostCommand,
    HostFrame,
    Message,
    Turn,
    TurnEvent,
)
from antiphon.ids import ModelName


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """A model this server serves, as `/v1/models` shows it. `created` is a Unix time in seconds."""

    name: ModelName
    created: int
    owned_by: str
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingDefaults:
    """What a client's silence means, from the model's own card or generation config."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0


class EngineLink(Protocol):
    """One running engine host, as its driver sees it."""

    @property
    def pid(self) -> int: ...

    async def send(self, command: HostCommand) -> None:
        """Raises HostLost when the host is gone."""

    async def receive(self) -> HostFrame:
        """The next frame. Raises HostLost at the end of the stream, HostProtocolError on a
        malformed frame."""

    async def aclose(self, *, grace_s: float) -> None:
        """Ask the host to end, then kill its process group after the grace. Also when cancelled:
        the wait is shielded and bounded. Raises nothing else; idempotent."""

    def kill(self) -> None:
        """SIGKILL the host's process group now. Idempotent."""


class EngineLauncher(Protocol):
    """Starts engine hosts of one configured kind."""

    async def launch(self) -> EngineLink:
        """Start a host process; it reports Ready as its first frame. Raises HostStartFailed."""


class ChatTokenizer(Protocol):
    """The model's own chat template and vocabulary."""

    @property
    def longest_token(self) -> int:
        """The most characters that one token can stand for."""

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of the rendered prompt, ready for the assistant's turn. Text that spells a
        special token is encoded as plain text. Called from any thread. Raises InvalidRequest when
        the template refuses the messages."""


class TurnStream(Protocol):
    """The reading end of one turn."""

    async def next_event(self) -> TurnEvent:
        """The next event; after TurnEnded or TurnFailed there is none and calling again is a
        bug. Cancelling the call loses no event."""

    def cancel(self, cause: CancelCause) -> None:
        """Give everything back; never blocks, idempotent, legal in every state."""


class Chat(Protocol):
    """What the HTTP room needs of the rest of the server."""

    def models(self) -> tuple[ModelCard, ...]: ...

    def capabilities(self, model: ModelName) -> Capabilities | None:
        """What the model's engine can do; None while no host of it has been ready yet. Raises
        ModelNotFound."""

    def sampling_defaults(self, model: ModelName) -> SamplingDefaults:
        """Raises ModelNotFound."""

    async def open_turn(self, turn: Turn) -> TurnStream:
        """Start a turn. Raises RequestError when it is refused at once; later refusals arrive as
        TurnFailed,
        before any Delta."""


class Telemetry(Protocol):
    """What rooms report as it happens. Every method is a fact, never blocks, never raises."""

    def http_request_finished(
        self, handler: str, method: str, status: int, seconds: float
    ) -> None: ...

    def sse_opened(self) -> None:
        """A streaming answer began; `sse_closed` follows exactly once."""

    def sse_closed(self) -> None: ...

    def stream_disconnected(self) -> None:
        """The client left a streaming answer before its end."""

    def admission_rejected(self, reason: str) -> None:
        """A request was refused for load; `reason` is a short word of a fixed set."""

    def requests_in_flight(self, model: ModelName, *, running: int, waiting: int) -> None:
        """How many requests hold a slot and how many wait for one, now."""

    def queue_left(self, model: ModelName, seconds: float) -> None:
        """A request got its slot after waiting this long."""

    def first_token(self, model: ModelName, seconds: float) -> None:
        """The first text of a request, this long after the request arrived."""

    def prompt_admitted(self, model: ModelName, tokens: int) -> None: ...

    def tokens_generated(self, model: ModelName, tokens: int, seconds: float) -> None:
        """A request gained tokens, `seconds` after it last did; 0 for its first ones."""

    def turn_finished(self, model: ModelName, finished_reason: str, seconds: float) -> None:
        """A turn ended, in whatever way: stop, length, abort or error."""

    def turn_cancelled(self, cause: CancelCause) -> None: ...

    def released_after_disconnect(self, seconds: float, tokens: int) -> None:
        """The engine gave a slot back after the client left; `tokens` were generated in between."""

    def engine_stepped(self, model: ModelName, seconds: float) -> None: ...

    def engine_stats(self, model: ModelName, kv_usage: float) -> None:
        """`kv_usage` is 0…1."""

    def engine_restarted(self, model: ModelName) -> None: ...

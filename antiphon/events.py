"""What rooms say to one another: the engine's frames, and what a turn is.

Frames travel between processes as msgpack and are msgspec structs; the rest stays in the server and
is dataclasses.
"""

import enum
from dataclasses import dataclass
from typing import Literal

import msgspec

from antiphon.ids import EngineRequest, FileId, ModelName, RequestId, SlotIndex
from antiphon.sources import Source
from antiphon.tools import Toolbox, ToolCall
from antiphon.verdicts import Scoring
from antiphon.views import Piece, ShownFile, Truncation

Role = Literal["system", "developer", "user", "assistant", "tool"]
Detail = Literal["auto", "low", "high", "original"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture in a message: which file it is, and before which line of the text it stands.

    By lines, since what is judged and replaced in a text leaves them as many.
    """

    file: FileId
    media_type: str
    width: int
    height: int
    line: int = 0
    detail: Detail = "auto"
    name: str | None = None
    sha256: str = ""
    """Of its bytes; empty until somebody has looked whether it is there."""
    missing: Literal["deleted", "left_out"] | None = None
    """Why no model is shown it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation, its text parts already joined. A call is a message of its own
    whose content is empty; so is its result, of the role `tool`."""

    role: Role
    content: str
    name: str | None = None
    call: ToolCall | None = None
    call_id: str | None = None
    """Of a result: which call it is of."""
    images: tuple[Image, ...] = ()
    """In the order in which they stand in it."""

    @property
    def text(self) -> str:
        """What it says: its content, or a call's arguments."""
        return self.content if self.call is None else self.call.arguments


# ── server → host ────────────────────────────────────────────────────────────────────────────────


class Sampling(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """How tokens are chosen, every field resolved: what a client left out has the model's default.

    `temperature` 0 means greedy. `top_k` 0 means off. `seed` is always set, since engines repeat a
    constant one.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0
    min_tokens: int = 0
    ignore_eos: bool = False
    logprobs: bool = False
    json_schema: str | None = None


class Admit(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="admit"):
    """Start one generation in a free slot. `max_tokens` is a hard bound and always set. Only
    requests of the same `salt` may share what an engine keeps of prompts.

    `messages` is what the prompt was made of, where the engine wants that; `affinity` names the
    conversation, where somebody has given it a name. The prompt of a `patient` one may be computed
    in pieces, between which others' prompts pass it.
    """

    request: EngineRequest
    slot: SlotIndex
    prompt: list[int]
    max_tokens: int
    sampling: Sampling
    stop: list[str]
    salt: str | None = None
    messages: tuple[Message, ...] = ()
    affinity: str = ""
    patient: bool = False


class Abort(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="abort"):
    """Give the slot back as soon as a step allows; idempotent, and legal after the end. One that is
    paused is forgotten, without a Released: its slot was given back before."""

    request: EngineRequest
    slot: SlotIndex


class Pause(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="pause"):
    """Give the slot back and keep what was generated, for a Resume; idempotent, and legal after the
    end. Released says which came first, by its reason: PAUSED, or how the answer ended.

    Not for a request with a JSON schema or a presence or frequency penalty that has tokens: what an
    engine counted of them it would count anew.
    """

    request: EngineRequest
    slot: SlotIndex


class Resume(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="resume"):
    """Go on in this free slot with a request that was released as PAUSED, from its tokens: no text
    is lost, said twice or cut otherwise, and `tokens` counts on. A host that knows no such request
    answers with a Fault and a Released."""

    request: EngineRequest
    slot: SlotIndex


class Halt(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="halt"):
    """End the host process in order; whatever still runs is dropped."""


HostCommand = Admit | Abort | Pause | Resume | Halt

# ── host → server ────────────────────────────────────────────────────────────────────────────────


class EndReason(enum.StrEnum):
    """Why a generation ended, as the host knows it; or, PAUSED, why its slot is free before."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    CANCELLED = "cancelled"
    CAPACITY = "capacity"
    FAILED = "failed"
    PAUSED = "paused"


class TokenLogprob(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One sampled token: its text as far as it has one, its bytes, its natural-log probability."""

    text: str
    data: bytes
    logprob: float


class SlotText(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What one slot gained in a step: text that may leave, tokens so far, and the end if it came.

    `tokens` counts all generated tokens of this request, also those whose text is still held back.
    `prompt_tokens` is said by an engine that has counted them itself, `cached_tokens`, how many of
    them it had computed before, once by one that can tell.
    """

    slot: SlotIndex
    request: EngineRequest
    text: str
    tokens: int
    end: EndReason | None = None
    logprobs: list[TokenLogprob] | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What the loaded engine can do. Blocks are `block_size` tokens; `window` is prompt plus
    answer in tokens. What a request may ask for and an engine can't do is refused before it is
    queued."""

    engine: str
    engine_version: str
    slots: int
    kv_blocks: int
    block_size: int
    window: int
    special_tokens: list[int]
    logprobs: bool
    json_schema: bool
    seed: bool = True
    """The same request with the same seed, alone in the engine, has the same answer."""
    extras: bool = True
    """`top_k`, `min_p`, `repetition_penalty`, `ignore_eos`: what OpenAI's API has no field for."""
    min_tokens: bool = True
    prefix_cache: bool = False
    """A prompt that begins as an earlier one did is computed from where they part."""
    priority: bool = False
    """Among requests that it has, it can prefer one."""
    abort_proof: bool = False
    """A Released after an Abort is the engine's own word. Where it isn't, only the connection to
    whoever does the work is known to be closed."""
    counts_prompts: bool = False
    """Its `prompt_tokens` are the count: what was admitted is an estimate."""
    isolates_tenants: bool = False
    """What it keeps of prompts is shared only within a salt."""
    salted_repetition_penalty: bool = True
    """Whether a request that has a salt may have a repetition penalty too."""
    pausable: bool = False
    """It takes Pause and Resume."""
    lets_pass: bool = False
    """While others' prompts are to be computed, those of patient requests wait."""
    vision: bool = False
    """It can be shown images."""
    image_tokens: int = 0
    """About how many each of them takes; 0 where that goes by its size."""


class Ready(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="ready"):
    """The first frame of a host: the model is loaded and one step has run. `pid` 0 is an engine
    without a process of ours."""

    pid: int
    capabilities: Capabilities


class Step(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="step"):
    """One engine step with every slot's news. Sent for each step, also when no slot gained text:
    it is the heartbeat. `duration_s` 0 means that nobody knows.

    `prefilled` is how many prompt tokens the step computed, those of an answer that goes on among
    them. It is the host's estimate: engines say what they gave, not what they worked on.
    """

    number: int
    duration_s: float
    texts: list[SlotText]
    prefilled: int = 0


class Released(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="released"):
    """The slot is free and its KV blocks are back. Exactly one for each Admit and each Resume,
    after the last SlotText."""

    slot: SlotIndex
    request: EngineRequest
    reason: EndReason
    tokens: int


class Stats(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="stats"):
    """Sent about once a second, idle or not: the host is alive. `kv_usage` is 0…1."""

    steps: int
    live: int
    kv_usage: float


class Fault(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="fault"):
    """Something went wrong in the host; with `request` set it concerns that one, whose Released
    follows. Of its codes, `unavailable` says that the request was never begun, `lost` that
    whatever ran it is gone."""

    code: str
    detail: str
    request: EngineRequest | None = None


HostFrame = Ready | Step | Released | Stats | Fault

# ── a turn ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One validated request for an answer. `max_tokens` None means the server's default, within the
    window.

    `sampling.seed` is the seed of choice 0; choice i uses seed + i. `tenant` is on whose behalf it
    runs. Turns of different `salt` share nothing in an engine; without one they do.
    """

    request: RequestId
    model: ModelName
    messages: tuple[Message, ...]
    sampling: Sampling
    pieces: tuple[Piece, ...] = ()
    """What each of the messages is; none where all must be shown as they are."""
    truncation: Truncation = "disabled"
    """Whether old turns may be left out where not all fit."""
    compact: int | None = None
    """With more tokens than that in old turns, the older of them are left out in any case."""
    choices: int = 1
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    tenant: str | None = None
    salt: str | None = None
    user: str | None = None
    """Who asked; None is the local user, whom no plan limits."""
    address: str | None = None
    """Where it came from, as far as that can be believed; kept nowhere."""
    plan: str | None = None
    response: str | None = None
    """Its id on the wire, by which its bill is found."""
    stored: bool = False
    """It is an answer that is kept, whose bill is settled with its end."""
    tier: str | None = None
    """`service_tier` as the client wrote it."""
    background: bool = False
    """Nobody waits for its first token."""
    continues_tool: bool = False
    """Its last message is the result of a tool."""
    tools: Toolbox | None = None
    affinity: str = ""
    """The same for turns that begin alike, such as those of a conversation; empty where nobody
    knows better than the messages."""
    seeded: bool = False
    """The seed is the client's, who counts on it."""
    languages: tuple[str, ...] = ()
    """What the reader reads, BCP 47, the preferred first: for texts that are the server's own."""
    judges: bool = False
    """Its text is a judgement of another turn's, made by a guard model: nobody judges it."""
    upkeep: bool = False
    """It is the server's own work on what the user has said, such as a title: nobody pays for
    it."""
    scoring: Scoring | None = None
    """None where the client asked nothing of the classifier; rules judge it all the same."""
    silent: frozenset[str] = frozenset()
    """Fields of `sampling` that the client said nothing about: another model that answers has
    other defaults."""
    prompt_version: str | None = None
    """Of the operator's system prompt that it begins with, as `name@version`."""
    sources: tuple[Source, ...] = ()
    """What its answer may cite: the model was told how, and is shown them by these numbers."""
    files: tuple[ShownFile, ...] = ()
    """What became of each file that its messages name or that was searched."""
    must_see: bool = False
    """It brings images: only a model that sees them may answer. Those of earlier turns are told in
    words where it doesn't."""
    unjudged: int = 0
    """How many of its first messages no rule judges: the operator's own words, and what was judged
    when it came."""


class CancelCause(enum.StrEnum):
    """Why an answer was cancelled before its end."""

    DISCONNECT = "disconnect"
    SLOW_READER = "slow_reader"
    REQUESTED = "requested"
    """Somebody asked for it, by its id."""
    DEADLINE = "deadline"
    SHUTDOWN = "shutdown"
    POLICY = "policy"
    """Its input or its output was blocked."""
    OWNER_LOST = "owner_lost"
    FAILED = "failed"
    """Another choice of the same turn failed."""

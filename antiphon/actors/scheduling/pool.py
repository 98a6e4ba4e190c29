"""A pool as those who send it work see it: a model, its vocabulary, its scheduler behind a breaker,
its status."""

import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import trio

from antiphon.actors.breaker import Breaker
from antiphon.actors.engines.status import EngineStatus
from antiphon.actors.ref import Ref
from antiphon.actors.scheduling.messages import SchedulerMessage
from antiphon.actors.scheduling.prediction import Prediction
from antiphon.events import Message
from antiphon.ids import EngineRequest
from antiphon.ports import ChatTokenizer, ModelCard, SamplingDefaults
from antiphon.workload import Workload

_LONG_PROMPTS = 2
"""At once: each takes a core and, at the largest body, tens of megabytes."""


CountPrompt = Callable[[Sequence[Message]], Awaitable[int | None]]


class Predict(Protocol):
    """When the first token of a request would come, were it submitted now."""

    def __call__(
        self, workload: Workload, prompt: Sequence[int], max_tokens: int, salt: str | None = None
    ) -> Prediction | None:
        """`prompt` is its token ids. None while there is no schedule."""


def _engine_requests() -> Iterator[EngineRequest]:
    """Never reused while the server lives, so a late frame can't be taken for another request's."""
    return (EngineRequest(number) for number in itertools.count(1))


def _unpredicted(
    workload: Workload, prompt: Sequence[int], max_tokens: int, salt: str | None = None
) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One model served by one scheduler; `default_max_tokens` is the answer of a silent client,
    asked for at each turn. Who asks the scheduler asks the `breaker` first."""

    card: ModelCard
    scheduler: Ref[SchedulerMessage]
    breaker: Breaker
    status: EngineStatus
    tokenizer: ChatTokenizer
    sampling_defaults: SamplingDefaults
    default_max_tokens: Callable[[], int]
    sends_messages: bool = False
    """Whether the engine is to have the messages beside the prompt's token ids."""
    count_prompt: CountPrompt | None = None
    """Asks somebody who knows better than a tokenizer that only estimates; None when nobody did."""
    sees: Callable[[], bool | None] = lambda: False
    """Whether its engine can be shown images; None while nobody knows."""
    predict: Predict = _unpredicted
    requests: Iterator[EngineRequest] = field(default_factory=_engine_requests)
    long_prompts: trio.CapacityLimiter = field(
        default_factory=lambda: trio.CapacityLimiter(_LONG_PROMPTS)
    )
    """Worker threads for prompts too long to be tokenised on the event loop."""

    @property
    def knows_schemas(self) -> bool:
        """Whether its engine can be held to a JSON schema, as far as that is known."""
        capabilities = self.status.capabilities
        return capabilities is not None and capabilities.json_schema

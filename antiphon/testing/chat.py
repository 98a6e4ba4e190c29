"""A Chat whose turns are played by the test: it says what was asked and what was cancelled."""

import math
from collections.abc import Sequence

import trio

from antiphon.errors import AntiphonError, ModelNotFound
from antiphon.events import CancelCause, Capabilities, Message, Turn
from antiphon.ids import ModelName
from antiphon.ports import ModelCard, SamplingDefaults
from antiphon.turn_events import (
    ChoiceEnded,
    Delta,
    FinishReason,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnPlaced,
    Usage,
)

MODEL = ModelName("scripted/model")


class ScriptedTurn:
    """One turn's stream: the test feeds events, the server reads them."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.cancels: list[CancelCause] = []
        self.cancelled = trio.Event()
        self.waiting = trio.Event()
        """Set once the server has asked for an event that wasn't there."""
        self._is_over = False
        self._sender, self._receiver = trio.open_memory_channel[TurnEvent](math.inf)

    def feed(self, *events: TurnEvent) -> None:
        for event in events:
            self._sender.send_nowait(event)

    def say(self, *texts: str, choice: int = 0) -> None:
        self.feed(*(Delta(choice=choice, text=text) for text in texts))

    def finish(
        self, reason: FinishReason = FinishReason.STOP, *, prompt: int = 3, completion: int = 2
    ) -> None:
        for choice in range(self.turn.choices):
            self.feed(ChoiceEnded(choice=choice, finish_reason=reason))
        self.feed(TurnEnded(usage=Usage(prompt_tokens=prompt, completion_tokens=completion)))

    def fail(self, error: AntiphonError) -> None:
        self.feed(TurnFailed(error=error))

    async def next_event(self) -> TurnEvent:
        assert not self._is_over, "asked for an event after the last one"
        try:
            event = self._receiver.receive_nowait()
        except trio.WouldBlock:
            self.waiting.set()
            event = await self._receiver.receive()
        else:
            await trio.lowlevel.checkpoint()
        self._is_over = isinstance(event, TurnEnded | TurnFailed)
        return event

    def cancel(self, cause: CancelCause) -> None:
        self.cancels.append(cause)
        self.cancelled.set()


class ScriptedChat:
    """Opens ScriptedTurns. With `text` each is played to its end at once; without, by the test."""

    def __init__(
        self,
        *,
        text: Sequence[str] | None = None,
        refusal: AntiphonError | None = None,
        capabilities: Capabilities | None = None,
    ) -> None:
        self.text = text
        self.refusal = refusal
        self.placed: TurnPlaced | None = None
        """Where every turn goes; by default to the model that it asks for."""
        self.known = {MODEL}
        self.plans: list[str | None] = []
        """Whose models were listed."""
        self.turns: list[ScriptedTurn] = []
        self.counted: tuple[Message, ...] = ()
        """What was asked for last when tokens were counted."""
        self.is_holding_turns = False
        """While true, `open_turn` never returns."""
        self.opening = trio.Event()
        self._capabilities = capabilities or scripted_capabilities()
        self._sender, self._receiver = trio.open_memory_channel[ScriptedTurn](math.inf)

    async def next_turn(self) -> ScriptedTurn:
        """The next turn that a request opens."""
        return await self._receiver.receive()

    def models(self, plan: str | None = None) -> tuple[ModelCard, ...]:
        self.plans.append(plan)
        return tuple(
            ModelCard(name=name, created=1_700_000_000, owned_by="antiphon", window=2048)
            for name in sorted(self.known)
        )

    def sees(self, model: ModelName) -> bool | None:
        capabilities = self.capabilities(model)
        return None if capabilities is None else capabilities.vision

    def capabilities(self, model: ModelName) -> Capabilities | None:
        self._known(model)
        return self._capabilities

    def sampling_defaults(self, model: ModelName) -> SamplingDefaults:
        self._known(model)
        return SamplingDefaults()

    async def count_tokens(self, turn: Turn) -> int:
        """A token a character, and one for each message."""
        self._known(turn.model)
        await trio.lowlevel.checkpoint()
        self.counted = turn.messages
        return sum(len(message.content) + 1 for message in turn.messages)

    async def open_turn(self, turn: Turn) -> ScriptedTurn:
        self.opening.set()
        if self.is_holding_turns:
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        if self.refusal is not None:
            raise self.refusal
        stream = ScriptedTurn(turn)
        self.turns.append(stream)
        stream.feed(self.placed or TurnPlaced(model=turn.model))
        self._sender.send_nowait(stream)
        if self.text is not None:
            for choice in range(turn.choices):
                stream.say(*self.text, choice=choice)
            stream.finish(completion=len(self.text) * turn.choices)
        return stream

    def _known(self, model: ModelName) -> None:
        if model not in self.known:
            raise ModelNotFound(model)


def scripted_capabilities(*, logprobs: bool = True, json_schema: bool = True) -> Capabilities:
    """What the scripted engine claims to be able to do."""
    return Capabilities(
        engine="scripted",
        engine_version="1",
        slots=4,
        kv_blocks=64,
        block_size=16,
        window=2048,
        special_tokens=[0],
        logprobs=logprobs,
        json_schema=json_schema,
    )

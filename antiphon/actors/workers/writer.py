"""Has a model write something for a worker: one short turn in the background lane, on behalf of the
user whose conversation it is about, so that it is judged and kept apart as theirs are, and is never
ahead of anybody who waits."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import trio

from antiphon.errors import (
    ActorError,
    AntiphonError,
    ContextLengthExceeded,
    InvalidRequest,
    RequestError,
    SupervisionError,
)
from antiphon.events import CancelCause, Message, Sampling, Turn
from antiphon.ids import LOCAL_USER, ModelName, UserId, new_request_id
from antiphon.ports import Chat, ModelCard, TurnStream
from antiphon.records import User
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.turn_events import (
    ChoiceEnded,
    Cited,
    Delta,
    FinishReason,
    Refused,
    TurnEnded,
    TurnFailed,
    TurnPlaced,
)

PATIENCE_S = 60.0
"""How long after a turn something that a model writes may be waited for: what comes later must not
wait behind what nobody has time for."""
_LEAST_PATIENCE_S = 2.0
"""For what is late already, as after a stop: an idle server has answered by then."""
_BEGIN_S = 30.0
"""In which it must have begun: on a crowded server it may never."""
_CROWDED_S = 30.0
"""For so long a model isn't asked, once it had no time. What it would have been asked for would
pile up meanwhile, and be done in one go that everybody feels."""
_STILL_CROWDED_S = 5.0
"""In which the next one must have begun, for the same reason."""
_SAMPLING = Sampling(temperature=0.0)
"""The same again, where a kill makes it necessary; and no penalties, with which an engine can't
pause it for somebody who waits."""


class ModelUnavailable(Exception):
    """No answer this time; another time there may be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A model's answer. `is_cut`: it would have gone on."""

    text: str
    is_cut: bool
    model: ModelName


class Writer:
    """`model` is the one that the settings name, None the first there is."""

    def __init__(self, chat: Chat, model: Callable[[], str | None]) -> None:
        self._chat = chat
        self._model = model
        self._crowded_until = -math.inf
        self._is_crowded = False

    def card(self, name: str | None = None) -> ModelCard | None:
        """Of that model, else of the one that writes, else of the first; None while there is
        none."""
        cards = self._chat.models()
        by_name = {str(card.name): card for card in cards}
        for wanted in (name, self._model()):
            if wanted is not None and wanted in by_name:
                return by_name[wanted]
        return cards[0] if cards else None

    @property
    def windows(self) -> frozenset[int]:
        """Of all models."""
        return frozenset(card.window for card in self._chat.models())

    async def write(
        self, user: User, messages: tuple[Message, ...], max_tokens: int, *, age_s: float
    ) -> Written | None:
        """`age_s` after a turn. None where there is no time for it, where the model can't be asked
        that, and where the policy keeps back what it says. Raises ModelUnavailable."""
        started = trio.current_time()
        if started < self._crowded_until:
            return None
        card = self.card()
        if card is None:
            raise ModelUnavailable("there is no model")
        turn = upkeep(user, card.name, messages, max_tokens)
        patience_s = max(PATIENCE_S - age_s, _LEAST_PATIENCE_S)
        begin_s = _STILL_CROWDED_S if self._is_crowded else _BEGIN_S
        with trio.move_on_after(min(patience_s, begin_s)) as scope:

            def begun() -> None:
                self._is_crowded = False
                scope.deadline = started + patience_s

            return await self._answer(turn, begun)
        self._is_crowded = True
        self._crowded_until = trio.current_time() + _CROWDED_S
        return None

    async def _answer(self, turn: Turn, begun: Callable[[], None]) -> Written | None:
        try:
            stream = await self._chat.open_turn(turn)
        except (RequestError, ActorError, SupervisionError) as error:
            _raise_unless_final(error)
            return None
        try:
            return await _read(stream, turn.model, begun)
        finally:
            stream.cancel(CancelCause.DEADLINE)


def upkeep(user: User, model: ModelName, messages: tuple[Message, ...], max_tokens: int) -> Turn:
    """What it is made of was judged when it came."""
    is_local = user.id == LOCAL_USER
    return Turn(
        request=new_request_id(),
        model=model,
        messages=messages,
        sampling=_SAMPLING,
        max_tokens=max_tokens,
        tenant=user.tenant,
        salt=None if is_local else user.tenant,
        user=None if is_local else UserId(user.id),
        background=True,
        upkeep=True,
        unjudged=len(messages),
    )


async def _read(stream: TurnStream, model: ModelName, begun: Callable[[], None]) -> Written | None:
    """`begun` is told of the first text. Raises ModelUnavailable."""
    pieces: list[str] = []
    finish: FinishReason | None = None
    is_refused = False
    while True:
        match await stream.next_event():
            case TurnPlaced(model=placed):
                model = placed
            case Delta(text=text):
                if not pieces:
                    begun()
                pieces.append(text)
            case ChoiceEnded(finish_reason=reason):
                finish = reason
            case Refused():
                is_refused = True
            case CallStarted() | CallDelta() | CallEnded():
                pass  # it was offered no tools
            case Cited():
                pass  # it was shown nothing to cite
            case TurnFailed(error=error):
                _raise_unless_final(error)
                return None
            case TurnEnded():
                if is_refused:
                    return None
                is_cut = finish is FinishReason.LENGTH
                return Written(text="".join(pieces), is_cut=is_cut, model=model)
            case never:
                assert_never(never)


def _raise_unless_final(error: AntiphonError) -> None:
    """Raises ModelUnavailable, unless it would be refused for ever."""
    if not isinstance(error, InvalidRequest | ContextLengthExceeded):
        raise ModelUnavailable(str(error)) from error

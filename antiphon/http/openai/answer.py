"""A chat completion that is not streamed: pure, from turn events to one body."""

from dataclasses import dataclass, field
from typing import assert_never

import msgspec
from msgspec import UNSET

from antiphon.events import TokenLogprob
from antiphon.http.openai.moderations.wire import chat_moderation
from antiphon.http.openai.placed import cut_of
from antiphon.http.openai.wire import (
    ChatCompletionBody,
    ChoiceBody,
    logprobs_of,
    message_of_texts,
    usage_of,
)
from antiphon.ids import ModelName, ResponseId
from antiphon.tools import CallDelta, CallEnded, CallStarted, ToolCall
from antiphon.turn_events import (
    ChoiceEnded,
    Cited,
    Delta,
    FinishReason,
    Refused,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnPlaced,
    Usage,
)
from antiphon.verdicts import Judged
from antiphon.views import Manifest


@dataclass(slots=True)
class _Choice:
    pieces: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    refusal: str | None = None
    calls: list[tuple[CallStarted, list[str]]] = field(default_factory=list)
    finish_reason: FinishReason = FinishReason.STOP


class AnswerCollector:
    """Gathers the events of one turn."""

    def __init__(self, choices: int) -> None:
        self._choices = [_Choice() for _ in range(choices)]
        self._judged: Judged | None = None
        self._context: Manifest | None = None

    def add(self, event: TurnEvent) -> Usage | None:
        """Take an event; the usage when it was the last. Raises the error of a failed turn."""
        match event:
            case Delta(choice=choice, text=text, logprobs=logprobs):
                self._choices[choice].pieces.append(text)
                self._choices[choice].logprobs.extend(logprobs)
            case CallStarted(choice=choice):
                self._choices[choice].calls.append((event, []))
            case CallDelta(choice=choice, text=text):
                self._choices[choice].calls[-1][1].append(text)
            case CallEnded() | Cited():
                pass
            case Refused(choice=choice, text=text):
                self._choices[choice].refusal = text
            case ChoiceEnded(choice=choice, finish_reason=reason):
                self._choices[choice].finish_reason = reason
            case TurnEnded(usage=usage, judged=judged):
                self._judged = judged
                return usage
            case TurnFailed(error=error):
                raise error
            case TurnPlaced():
                self._context = cut_of(event)
            case _:
                assert_never(event)
        return None

    def encode(
        self,
        usage: Usage,
        *,
        response: ResponseId,
        model: ModelName,
        created: int,
        fingerprint: str,
        tier: str,
        with_logprobs: bool,
        with_moderation: bool = False,
    ) -> bytes:
        """The body, once the turn has ended."""
        return msgspec.json.encode(
            ChatCompletionBody(
                id=response,
                created=created,
                model=model,
                choices=[
                    ChoiceBody(
                        index=index,
                        message=message_of_texts(
                            "".join(choice.pieces), choice.refusal, _calls(choice)
                        ),
                        logprobs=logprobs_of(choice.logprobs) if with_logprobs else None,
                        finish_reason=choice.finish_reason,
                    )
                    for index, choice in enumerate(self._choices)
                ],
                usage=usage_of(usage),
                service_tier=tier,
                system_fingerprint=fingerprint,
                moderation=chat_moderation(self._judged)
                if with_moderation and self._judged is not None
                else UNSET,
                context=UNSET if self._context is None else self._context,
            )
        )


def _calls(choice: _Choice) -> list[ToolCall]:
    return [
        ToolCall(id=call.id, name=call.name, arguments="".join(pieces))
        for call, pieces in choice.calls
    ]

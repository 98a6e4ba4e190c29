"""The pure core of a session: which choices of a turn run, what they have said, how the turn ends.

Knows no mailbox and no client: engine news in, turn events out.
"""

from collections.abc import Iterator, Mapping
from typing import assert_never

from antiphon.errors import AntiphonError
from antiphon.events import (
    ChoiceEnded,
    Delta,
    EndReason,
    FinishReason,
    SlotText,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    Usage,
)
from antiphon.ids import EngineRequest


class Transcript:
    """One turn. It ends exactly once: with TurnEnded when every choice has, or with TurnFailed."""

    def __init__(self, prompt_tokens: int, choices: Mapping[EngineRequest, int]) -> None:
        self._prompt_tokens = prompt_tokens
        self._choices = dict(choices)
        self._open = set(choices)
        self._tokens = dict.fromkeys(choices, 0)
        self._ended = False

    def on_text(self, news: SlotText) -> Iterator[TurnEvent]:
        """What a step's news means to the reader; news of an ended choice mean nothing."""
        if self._ended or news.request not in self._open:
            return
        choice = self._choices[news.request]
        self._tokens[news.request] = news.tokens
        if news.prompt_tokens is not None:
            self._prompt_tokens = news.prompt_tokens
        if news.text:
            yield Delta(choice=choice, text=news.text, logprobs=tuple(news.logprobs or ()))
        if news.end is None:
            return
        match news.end:
            case EndReason.STOP:
                yield from self._end(news.request, FinishReason.STOP)
            case EndReason.LENGTH:
                yield from self._end(news.request, FinishReason.LENGTH)
            case EndReason.CONTENT_FILTER:
                yield from self._end(news.request, FinishReason.CONTENT_FILTER)
            case EndReason.CAPACITY | EndReason.FAILED | EndReason.CANCELLED | EndReason.PAUSED:
                # The reason, if the engine gave one, comes with the slot's release; and a pause is
                # no end.
                return
            case _:
                assert_never(news.end)

    def fail(self, error: AntiphonError) -> Iterator[TurnEvent]:
        """End the turn without success, whatever its choices had reached; once."""
        if self._ended:
            return
        self._ended = True
        yield TurnFailed(
            error=error, usage=self.told or Usage(prompt_tokens=0, completion_tokens=0)
        )

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def begun(self) -> bool:
        """Whether the engine has produced anything, so that trying again would repeat it."""
        return any(self._tokens.values())

    @property
    def usage(self) -> Usage:
        return Usage(
            prompt_tokens=self._prompt_tokens, completion_tokens=sum(self._tokens.values())
        )

    @property
    def told(self) -> Usage | None:
        """What the turn has cost so far; nothing where it has brought nothing."""
        return self.usage if self.begun else None

    @property
    def unfinished(self) -> dict[EngineRequest, int]:
        """Generations that still hold or want a slot, with the tokens seen of each."""
        return {request: self._tokens[request] for request in self._open}

    def _end(self, request: EngineRequest, reason: FinishReason) -> Iterator[TurnEvent]:
        self._open.discard(request)
        yield ChoiceEnded(choice=self._choices[request], finish_reason=reason)
        if not self._open:
            self._ended = True
            yield TurnEnded(usage=self.usage)

"""The pure core of a session: which choices of a turn run, what they have said, how the turn ends.

Knows no mailbox and no client: engine news in, what was generated out. What of that may leave, and
when all of it has, is `outgoing`'s.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from antiphon.errors import AntiphonError
from antiphon.events import EndReason, SlotText
from antiphon.ids import EngineRequest
from antiphon.turn_events import ChoiceEnded, Delta, FinishReason, TurnEnded, TurnFailed, Usage
from antiphon.verdicts import Judged

_NOTHING = Usage(prompt_tokens=0, completion_tokens=0)


class Transcript:
    """One turn. It ends exactly once: with TurnEnded when its reader has the end of every choice,
    or with TurnFailed."""

    def __init__(self, prompt_tokens: int, choices: Mapping[EngineRequest, int]) -> None:
        self._prompt_tokens = prompt_tokens
        self._choices = dict(choices)
        self._open = set(choices)
        self._tokens = dict.fromkeys(choices, 0)
        self._cached: int | None = None
        self._ended = self._was_cut = False

    def on_text(self, news: SlotText) -> Iterator[Delta | ChoiceEnded]:
        """What a step's news means; news of an ended choice mean nothing."""
        if self._ended or news.request not in self._open:
            return
        choice = self._choices[news.request]
        self._tokens[news.request] = news.tokens
        if news.prompt_tokens is not None:
            self._prompt_tokens = news.prompt_tokens
        if news.cached_tokens is not None:
            # What a choice found there by the grace of another one, nobody had computed before.
            known = news.cached_tokens if self._cached is None else self._cached
            self._cached = min(known, news.cached_tokens)
        if news.text:
            yield Delta(choice=choice, text=news.text, logprobs=tuple(news.logprobs or ()))
        if news.end is None:
            return
        match news.end:
            case EndReason.STOP:
                yield self._finish(news.request, FinishReason.STOP)
            case EndReason.LENGTH:
                yield self._finish(news.request, FinishReason.LENGTH)
            case EndReason.CONTENT_FILTER:
                yield self._finish(news.request, FinishReason.CONTENT_FILTER)
            case EndReason.CAPACITY | EndReason.FAILED | EndReason.CANCELLED | EndReason.PAUSED:
                # The reason, if the engine gave one, comes with the slot's release; and a pause is
                # no end.
                return
            case _:
                assert_never(news.end)

    def add(self, request: EngineRequest, choice: int) -> None:
        """The choice, which has ended, is generated once more; all of its tokens count."""
        self._choices[request] = choice
        self._open.add(request)
        self._tokens[request] = 0

    def drop(self, request: EngineRequest) -> dict[EngineRequest, int]:
        """It won't be after all: what is to be given back."""
        dropped = {each: tokens for each, tokens in self.unfinished.items() if each == request}
        self._open -= dropped.keys()
        return dropped

    def choice_of(self, request: EngineRequest) -> int:
        return self._choices[request]

    def tokens_of(self, choice: int) -> int:
        """What was generated for it so far."""
        return sum(self._tokens[each] for each, of in self._choices.items() if of == choice)

    def cut(self, choices: Iterable[int]) -> dict[EngineRequest, int]:
        """Nobody wants what these still generate: those of them that run, with their tokens."""
        wanted = set(choices)
        cut = {
            request: tokens
            for request, tokens in self.unfinished.items()
            if self._choices[request] in wanted
        }
        self._open -= cut.keys()
        self._was_cut = self._was_cut or bool(cut)
        return cut

    def end(self, judged: Judged | None = None) -> TurnEnded:
        """Every choice's end has left. What was blocked before it brought anything is free."""
        assert not self._ended, "a turn ends once"
        self._ended = True
        usage = self.told or (_NOTHING if self._was_cut else self.usage)
        return TurnEnded(usage=usage, judged=judged)

    def fail(self, error: AntiphonError) -> Iterator[TurnFailed]:
        """End the turn without success, whatever its choices had reached; once."""
        if self._ended:
            return
        self._ended = True
        yield TurnFailed(error=error, usage=self.told or _NOTHING)

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
            prompt_tokens=self._prompt_tokens,
            completion_tokens=sum(self._tokens.values()),
            cached_tokens=min(self._cached or 0, self._prompt_tokens),
        )

    @property
    def told(self) -> Usage | None:
        """What the turn has cost so far; nothing where it has brought nothing."""
        return self.usage if self.begun else None

    @property
    def unfinished(self) -> dict[EngineRequest, int]:
        """Generations that still hold or want a slot, with the tokens seen of each."""
        return {request: self._tokens[request] for request in self._open}

    def _finish(self, request: EngineRequest, reason: FinishReason) -> ChoiceEnded:
        self._open.discard(request)
        return ChoiceEnded(choice=self._choices[request], finish_reason=reason)

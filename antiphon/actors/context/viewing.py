"""Making the view of a turn for one model: its messages counted, a plan, the planned prompt
encoded, and another plan where that turned out to be too long."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec
import trio

from antiphon.actors.context.counting import Counts
from antiphon.actors.context.manifest import manifest_of
from antiphon.actors.context.material import joined
from antiphon.actors.context.measuring import Measured, measured
from antiphon.actors.context.planning import Budget, Plan, plan, usual_answer
from antiphon.actors.context.seeing import (
    Sight,
    as_seen,
    placeholders,
    shown_images,
    with_images,
)
from antiphon.actors.context.view import View, encode, fit
from antiphon.context_settings import ContextSettings
from antiphon.events import Message, Turn
from antiphon.ports import ChatTokenizer

_TRIES = 6
"""Prompts are encoded as often at most. Counts that are a little short need a second one; by the
last, all that may be left out is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """A model, as far as views need it."""

    tokenizer: ChatTokenizer
    window: int
    default_max_tokens: int
    threads: trio.CapacityLimiter
    sight: Sight = field(default_factory=Sight)


class Viewer:
    """Makes views, and remembers what it has counted."""

    def __init__(self, settings: Callable[[], ContextSettings] = ContextSettings) -> None:
        self._settings = settings
        self._counts = Counts()

    async def view(self, turn: Turn, means: Means) -> View:
        """Raises ContextLengthExceeded for what has to be shown and doesn't fit, InvalidRequest
        when the model's template refuses the messages."""
        seen = as_seen(turn, means.sight)
        found = await self._measured(seen, means)
        draft = await self._draft(seen, found, means)
        view = fit(
            draft.prompt,
            max_tokens=turn.max_tokens,
            default=means.default_max_tokens,
            window=means.window,
        )
        view = replace(view, messages=draft.messages)
        if found is None or draft.plan is None:
            return view
        manifest = manifest_of(
            found.parts,
            draft.plan,
            prompt_tokens=len(draft.prompt),
            window=means.window,
            answer=view.max_tokens,
            truncation=turn.truncation,
        )
        if turn.files:
            manifest = msgspec.structs.replace(manifest, files=turn.files)
        if images := shown_images(turn, means.sight, draft.plan.shown):
            manifest = msgspec.structs.replace(manifest, images=images)
        pictured = with_images(turn)
        counts = tuple(each for each in found.counts if each[0] not in pictured)
        return replace(view, manifest=manifest, counts=counts)

    async def draft(self, turn: Turn, means: Means) -> tuple[tuple[Message, ...], list[int]]:
        """The messages and the prompt of the view, whether there is room for an answer or not.
        Raises as `view`."""
        seen = as_seen(turn, means.sight)
        draft = await self._draft(seen, await self._measured(seen, means), means)
        return draft.messages, draft.prompt

    async def _measured(self, turn: Turn, means: Means) -> Measured | None:
        if not turn.pieces:
            return None
        return await measured(
            turn,
            self._counts.of(means.tokenizer, means.threads),
            window=means.window,
            longest=self._settings().tool_output_tokens,
            sight=means.sight,
        )

    async def _draft(self, turn: Turn, found: Measured | None, means: Means) -> "_Draft":
        if found is None:
            prompt = await _encoded(turn, turn.messages, means)
            return _Draft(messages=turn.messages, prompt=prompt)
        usual = usual_answer(means.default_max_tokens, means.window)
        budget = Budget(
            window=means.window,
            usual_answer=usual,
            answer=usual if turn.max_tokens is None else turn.max_tokens,
            truncation=turn.truncation,
            settings=self._settings(),
            frame=self._counts.of(means.tokenizer, means.threads).frame(),
            compact=turn.compact,
        )
        return await _planned(found, budget, means)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A prompt, and how it came about where it was planned."""

    messages: tuple[Message, ...]
    prompt: list[int]
    plan: Plan | None = None


async def _planned(found: Measured, budget: Budget, means: Means) -> _Draft:
    """A plan whose prompt fits, or one that leaves out all that may be."""
    most, tries = budget.window - budget.answer, 0
    while True:
        planned = plan(found.parts, budget)
        messages = joined(found.shown(planned))
        prompt = await _encoded(found.turn, messages, means)
        tries += 1
        if len(prompt) <= most or not planned.can_drop:
            return _Draft(messages=messages, prompt=prompt, plan=planned)
        # In tokens as they were counted, which may be another vocabulary's. Be it one token, it is
        # a whole turn that is left out.
        over = (len(prompt) - most) * planned.tokens // len(prompt) + 1
        excess = most - planned.tokens + over
        budget = replace(budget, excess=budget.window if tries == _TRIES - 1 else excess)


async def _encoded(turn: Turn, messages: tuple[Message, ...], means: Means) -> list[int]:
    prompt = await encode(
        means.tokenizer,
        messages,
        window=means.window,
        threads=means.threads,
        tools=turn.tools,
    )
    return [*prompt, *images] if (images := placeholders(messages, means.sight)) else prompt

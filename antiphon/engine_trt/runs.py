"""One request on its way through the engine, and what its latest output says. Values and readings;
nothing here decides."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from antiphon.events import Admit, EndReason

_ENDS = {"stop": EndReason.STOP, "length": EndReason.LENGTH}
_UNLIKELY = -9999.0
"""OpenAI's word for a probability that isn't known because it is too small."""


@dataclass(slots=True, eq=False)
class Run:
    """A request, in the engine or (without `output`) beside it after an error that hit everybody.

    `order` counts submits, `read` the tokens taken from the present output, `generated` all that
    were. `over`: its answer has ended, or nobody wants it; the slot is used until it is free.
    """

    admit: Admit
    blocks: int
    output: Any = None
    task: "asyncio.Task[None] | None" = None
    order: int = 0
    heard_at: float = 0.0
    read: int = 0
    generated: list[int] = field(default_factory=list)
    over: bool = False
    retried: bool = False
    failure: tuple[str, str] | None = None
    """Why it failed, told when its slot is free."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is new in an output. `ended_by` is the library's word where it isn't one of ours.
    `prefilled` comes with the first token: what of the prompt no cache had, in however many
    iterations it was computed."""

    tokens: Sequence[int]
    logprobs: Sequence[float] | None
    end: EndReason | None
    ended_by: str | None
    prefilled: int = 0
    cached: int | None = None
    """What a cache had of it, with the first token of all; None where the library can't say."""


def read(run: Run) -> Reading:
    """The news of the run's output, which is cumulative and may shrink at its end, when the library
    cuts a stop token off."""
    completion = run.output.outputs[0]
    tokens = list(completion.token_ids[run.read :])
    prefilled, cached = 0, None
    if tokens and not run.read:
        known = getattr(run.output, "cached_tokens", None)
        prefilled = len(run.admit.prompt) + len(run.generated) - (known or 0)
        cached = None if run.generated else known
    logprobs = None
    if run.admit.sampling.logprobs:
        logprobs = _logprobs(tokens, list(completion.logprobs or ())[run.read :])
    run.read += len(tokens)
    reason = completion.finish_reason
    end = _ENDS.get(reason)
    strange = reason if end is None and reason not in (None, "not_finished") else None
    return Reading(tokens, logprobs, end, strange, prefilled, cached)


def _logprobs(tokens: Sequence[int], entries: Sequence[Any]) -> list[float]:
    """Of each token; entries are numbers, or the likeliest tokens of each place."""
    values = []
    for index, token in enumerate(tokens):
        entry = entries[index] if index < len(entries) else None
        if isinstance(entry, dict):
            found = entry.get(token)
            entry = getattr(found, "logprob", found)
        values.append(_UNLIKELY if entry is None else float(entry))
    return values

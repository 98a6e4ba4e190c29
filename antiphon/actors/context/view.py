"""What the model is shown for a turn: the prompt's token ids and the room left for the answer.

Keeps the rule that nothing is cut silently: what doesn't fit the window is refused with the
numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import trio

from antiphon.actors.context.counting import THREAD_CHARS
from antiphon.actors.tools.words import in_words
from antiphon.errors import ContextLengthExceeded
from antiphon.events import Message
from antiphon.ids import ItemId
from antiphon.ports import ChatTokenizer
from antiphon.tools import Toolbox
from antiphon.views import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A prompt as token ids, and the longest answer in tokens that goes with it."""

    prompt: list[int]
    max_tokens: int
    messages: tuple[Message, ...] = ()
    """What the prompt was made of."""
    manifest: Manifest | None = None
    """None where all of the turn was shown, and nobody had asked for less."""
    counts: tuple[tuple[ItemId, int], ...] = ()
    """Tokens of items that had not been counted."""


def fit(prompt: list[int], *, max_tokens: int | None, default: int, window: int) -> View:
    """Settle the longest answer: what the client named, else the default or what the window leaves.

    Raises ContextLengthExceeded when prompt and answer don't fit `window` tokens.
    """
    room = window - len(prompt)
    wanted = min(default, room) if max_tokens is None else max_tokens
    if room < 1 or wanted > room:
        raise ContextLengthExceeded(
            window=window, prompt_tokens=len(prompt), max_tokens=max(wanted, 1)
        )
    return View(prompt=prompt, max_tokens=wanted)


async def encode(
    tokenizer: ChatTokenizer,
    messages: Sequence[Message],
    *,
    window: int,
    threads: trio.CapacityLimiter,
    tools: Toolbox | None = None,
) -> list[int]:
    """Token ids of the rendered messages and tools; long ones in a worker thread, while `threads`
    has one.

    Raises InvalidRequest when the model's template refuses the messages, ContextLengthExceeded
    without tokenising where even the longest tokens there are would overflow `window`.
    """
    shown = () if tools is None else tools.tools
    if tokenizer.tool_format is None:
        messages, shown = in_words(messages, shown), ()
    chars = sum(len(each.text) for each in messages) + sum(len(each.text) for each in shown)
    if chars <= THREAD_CHARS:
        return tokenizer.encode_chat(messages, shown)
    # Tokenising takes eighty times the memory of the text: what is hopeless isn't tried, and what
    # isn't waits its turn.
    least = math.ceil(chars / tokenizer.longest_token)
    if least > window:
        raise ContextLengthExceeded(
            window=window, prompt_tokens=least, max_tokens=1, qualifier="at least "
        )
    # Whoever gives up must not wait for it: nothing but its result would be missed.
    return await trio.to_thread.run_sync(
        tokenizer.encode_chat, messages, shown, abandon_on_cancel=True, limiter=threads
    )

"""How many tokens texts have: asked once of each vocabulary, and remembered by item.

What is counted here is single texts. It says what to choose; whether the choice fits is seen by
encoding all of it.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import trio

from antiphon.actors.context.parts import Frame
from antiphon.errors import InvalidRequest
from antiphon.events import Message
from antiphon.ports import ChatTokenizer

THREAD_CHARS = 16_384
"""Tokenising costs about a third of a microsecond a character; longer text would be felt by every
stream, so it goes to a worker thread, where the tokenizer works without Python's lock."""
_REMEMBERED = 65_536
"""Texts, for each vocabulary: some ten megabytes."""
_GUESS = Frame(base=4, each=6)
"""For a template that refuses to be tried."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text to be counted; `key` is what it is remembered by, None for one that isn't."""

    content: str
    key: Hashable | None = None


class Counts:
    """Of all vocabularies."""

    def __init__(self) -> None:
        self._vocabularies: dict[int, _Vocabulary] = {}

    def of(self, tokenizer: ChatTokenizer, threads: trio.CapacityLimiter) -> "Counting":
        known = self._vocabularies.get(id(tokenizer))
        if known is None:
            # It holds the tokenizer, so no other one can come by its number.
            known = self._vocabularies[id(tokenizer)] = _Vocabulary(tokenizer)
        return Counting(known, threads)


class _Vocabulary:
    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self.tokenizer = tokenizer
        self.frame: Frame | None = None
        self._known: OrderedDict[Hashable, int] = OrderedDict()

    def recall(self, key: Hashable) -> int | None:
        if (count := self._known.get(key)) is not None:
            self._known.move_to_end(key)
        return count

    def keep(self, key: Hashable, count: int) -> None:
        self._known[key] = count
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


class Counting:
    """By one vocabulary."""

    def __init__(self, vocabulary: _Vocabulary, threads: trio.CapacityLimiter) -> None:
        self._vocabulary = vocabulary
        self._threads = threads

    async def count(self, texts: Sequence[Text], *, most: int) -> list[int]:
        """Tokens of each text; of one that has more than `most` whatever it holds, about as many.
        Raises InvalidRequest for what is no text."""
        tokenizer = self._vocabulary.tokenizer
        counts = [self._known(text) for text in texts]
        unknown = []
        for place, text in enumerate(texts):
            if counts[place] is not None:
                continue
            # Tokenising takes eighty times the memory of the text: what is hopeless isn't tried.
            least = math.ceil(len(text.content) / tokenizer.longest_token)
            if least > most:
                counts[place] = least
            else:
                unknown.append(place)
        wanted = [texts[place].content for place in unknown]
        found = await self._off_the_loop(
            lambda: [tokenizer.count_text(text) for text in wanted], sum(map(len, wanted))
        )
        for place, count in zip(unknown, found, strict=True):
            counts[place] = count
            if (key := texts[place].key) is not None:
                self._vocabulary.keep(key, count)
        return [count or 0 for count in counts]

    async def work(self, work: Callable[[Callable[[str], int]], T], chars: int) -> T:
        """What needs to count as it goes, over so many characters in all."""
        return await self._off_the_loop(lambda: work(self._vocabulary.tokenizer.count_text), chars)

    def frame(self) -> Frame:
        """What its template adds."""
        if self._vocabulary.frame is None:
            self._vocabulary.frame = _measured(self._vocabulary.tokenizer)
        return self._vocabulary.frame

    def _known(self, text: Text) -> int | None:
        return None if text.key is None else self._vocabulary.recall(text.key)

    async def _off_the_loop(self, work: Callable[[], T], chars: int) -> T:
        if chars <= THREAD_CHARS:
            return work()
        # Whoever gives up must not wait for it: nothing but its result would be missed.
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)


def _measured(tokenizer: ChatTokenizer) -> Frame:
    """From a short conversation, with one exchange and with two."""
    question, answer = Message(role="user", content="a"), Message(role="assistant", content="a")
    try:
        short = len(tokenizer.encode_chat([question]))
        long = len(tokenizer.encode_chat([question, answer, question]))
    except InvalidRequest:
        return _GUESS
    text = tokenizer.count_text("a")
    each = max(0, math.ceil((long - short) / 2) - text)
    return Frame(base=max(0, short - text - each), each=each)

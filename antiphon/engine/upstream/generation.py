"""One admitted generation: asked of a replica, and of another one while that can do no harm.

Keeps the rule that nothing is tried again once a token has come, or where a replica may still be
at work on it.
"""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import assert_never

import msgspec
import structlog
import trio

from antiphon.engine.stops import StopFilter
from antiphon.engine.upstream.affinity import conversation_key
from antiphon.engine.upstream.answer import Answer
from antiphon.engine.upstream.chunks import Chunk
from antiphon.engine.upstream.counting import Counter
from antiphon.engine.upstream.dialect import Flavour, body_of, path_of
from antiphon.engine.upstream.exchange import Connect, Exchange
from antiphon.engine.upstream.fleet import Choice, Fleet, Replica
from antiphon.engine.upstream.imagery import blind, urls_of
from antiphon.engine.upstream.ports import Images
from antiphon.engine.upstream.trouble import Kind, Trouble
from antiphon.events import Admit, EndReason, SlotText, TokenLogprob
from antiphon.upstream_settings import UpstreamSettings

log = structlog.get_logger(__name__)

_PAUSE_S = 0.25
"""Between two rounds of asking all replicas, unless one of them has news before."""
_CUT = 0.9
"""A replica that counts less of a prompt than this part of it has cut it: chat templates differ by
a few tokens, and Ollama drops the head of what doesn't fit (its issue 4967)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What every generation works with."""

    settings: UpstreamSettings
    fleet: Fleet
    connect: Connect
    headers: Mapping[str, str]
    counter: Counter
    images: Images | None = None


class Generation:
    """From Admit to its end. `tokens` is what has been generated so far, as far as is known."""

    def __init__(self, admit: Admit, means: Means, say: Callable[[SlotText], None]) -> None:
        self.admit = admit
        self.tokens = 0
        self._means = means
        self._say = say
        self._stops = StopFilter([] if admit.sampling.min_tokens else admit.stop)
        self._parts: list[str] = []
        self._prompt_tokens: int | None = None
        self._cached_tokens: int | None = None
        self._said = self._counted = 0
        self._urls: Mapping[str, str] = {}
        """Of its images, until a replica has them."""

    async def run(self) -> EndReason:
        """Raises Trouble."""
        total_s = self._means.settings.total_s
        with trio.move_on_after(total_s):
            return await self._run()
        raise Trouble(Kind.SILENT, f"it took longer than {total_s:g} s")

    async def _run(self) -> EndReason:
        fleet = self._means.fleet
        key = conversation_key(self.admit)
        tried = self._blind()
        self._urls = await urls_of(self.admit.messages, self._means.images)
        losses = pauses = 0
        give_up_at: float | None = None
        last = Trouble(Kind.UNAVAILABLE, "no replica is up")
        while True:
            choice = fleet.choose(key, tried)
            if choice is None:
                now = trio.current_time()
                give_up_at = now + self._means.settings.wait_s if give_up_at is None else give_up_at
                if now >= give_up_at:
                    raise last
                pauses += 1
                await self._pause(last, pauses, give_up_at - now)
                tried = self._blind()
                continue
            try:
                return await self._attempt(choice)
            except Trouble as trouble:
                losses += trouble.kind is Kind.LOST
                if self.tokens or not _may_move(trouble, losses):
                    raise
                tried.add(choice.replica.name)
                last = trouble

    def _blind(self) -> set[str]:
        """Who can't be asked, as far as is known now."""
        replicas = self._means.fleet.replicas.values()
        return blind(self._means.settings, replicas, self.admit.messages)

    async def _pause(self, last: Trouble, pauses: int, longest_s: float) -> None:
        """Until a replica comes up, or it makes sense to ask again: who is busy is asked less and
        less."""
        pause_s = _PAUSE_S
        if last.kind is Kind.BUSY:
            pause_s = last.retry_after_s or _PAUSE_S * 2 ** min(pauses - 1, 4)
        with trio.move_on_after(min(longest_s, pause_s)):
            await self._means.fleet.news()

    async def _attempt(self, choice: Choice) -> EndReason:
        replica, fleet = choice.replica, self._means.fleet
        fleet.began(replica)
        try:
            return await self._ask(choice)
        except Trouble as trouble:
            fleet.failed(replica, trouble)
            raise
        finally:
            fleet.ended(replica)

    async def _ask(self, choice: Choice) -> EndReason:
        settings = self._means.settings
        replica = choice.replica
        refused: Trouble | None = None
        async with AsyncExitStack() as stack:
            # Up to the first token: whoever waits behind a probe need not wait for the last one.
            with choice.permit:
                try:
                    exchange = await stack.enter_async_context(self._exchange(replica))
                    await exchange.open(settings.idle_s)
                    answer = Answer(exchange, settings.idle_s)
                    chunk = await self._first(answer)
                except Trouble as trouble:
                    if not trouble.kind.says_alive:
                        raise
                    # In good order, and no word against the replica: its breaker hears no failure.
                    refused = trouble
            if refused is not None:
                raise refused
            self._urls = {}  # it won't be asked again
            return await self._relay(replica, answer, chunk)

    def _exchange(self, replica: Replica) -> Exchange:
        means = self._means
        flavour = Flavour.UNKNOWN if replica.facts is None else replica.facts.flavour
        return Exchange(
            means.connect,
            replica.url + path_of(means.settings),
            means.headers,
            connect_s=means.settings.connect_s,
            body=body_of(self.admit, means.settings, flavour, self._urls),
        )

    async def _first(self, answer: Answer) -> Chunk | None:
        """The first chunk that says something; a role alone is nothing yet."""
        while True:
            chunk = await answer.next_chunk()
            if chunk is None or chunk.is_token or chunk.end is not None:
                return chunk
            self._note(chunk)

    async def _relay(self, replica: Replica, answer: Answer, chunk: Chunk | None) -> EndReason:
        end: EndReason | None = None
        while chunk is not None:
            self._note(chunk)
            if end is None:  # text after the end is none
                text = self._stops.push(chunk.text)
                self._parts.append(chunk.text)
                if self._stops.hit:
                    kept = _spelling(text, chunk.logprobs)
                    return await self._finish(replica, EndReason.STOP, text, kept)
                end = chunk.end
                if end is not None:
                    text += self._stops.flush()
                if text or chunk.is_token:
                    self._say(self._news(text, chunk.logprobs))
            chunk = await answer.next_chunk()
        assert end is not None  # an answer is over only after its end
        return await self._finish(replica, end)

    def _note(self, chunk: Chunk) -> None:
        """A chunk with text is a token, unless the replica counts by itself."""
        self._said += chunk.is_token
        if chunk.completion_tokens is not None:
            self._counted = chunk.completion_tokens
        self.tokens = max(self._said, self._counted)
        if chunk.prompt_tokens is not None:
            self._prompt_tokens = chunk.prompt_tokens
        if chunk.cached_tokens is not None:
            self._cached_tokens = chunk.cached_tokens

    async def _finish(
        self,
        replica: Replica,
        end: EndReason,
        text: str = "",
        logprobs: tuple[TokenLogprob, ...] = (),
    ) -> EndReason:
        """Say the end, with the best counts that can be had."""
        counter = self._means.counter
        if self._counted:
            self.tokens = self._counted
        elif self._parts:
            counted = await counter.count_text(replica, "".join(self._parts))
            self.tokens = counted or self._said
        prompt_tokens = self._prompt_tokens
        if counter.is_exact and not self._has_images:
            self._compare(replica, prompt_tokens)
            prompt_tokens = None  # the server has counted it by the model's own tokenizer
        elif prompt_tokens is None and not self._has_images:
            prompt_tokens = await counter.count_prompt(replica, self.admit.messages)
        news = self._news(text, logprobs)
        self._say(
            msgspec.structs.replace(
                news, end=end, prompt_tokens=prompt_tokens, cached_tokens=self._cached_tokens
            )
        )
        return end

    @property
    def _has_images(self) -> bool:
        """Then only the replica knows how many tokens there were."""
        return any(message.images for message in self.admit.messages)

    def _compare(self, replica: Replica, theirs: int | None) -> None:
        ours = len(self.admit.prompt)
        if theirs is not None and theirs < ours * _CUT:
            log.warning("prompt_cut", replica=replica.name, tokens=ours, counted=theirs)

    def _news(self, text: str, logprobs: tuple[TokenLogprob, ...]) -> SlotText:
        return SlotText(
            slot=self.admit.slot,
            request=self.admit.request,
            text=text,
            tokens=self.tokens,
            logprobs=list(logprobs) if self.admit.sampling.logprobs else None,
        )


def _spelling(text: str, logprobs: tuple[TokenLogprob, ...]) -> tuple[TokenLogprob, ...]:
    """The entries whose tokens begin within `text`: what a stop string cut off has none."""
    kept = []
    at = 0
    for entry in logprobs:
        if at >= len(text):
            break
        kept.append(entry)
        at += len(entry.text)
    return tuple(kept)


def _may_move(trouble: Trouble, losses: int) -> bool:
    """Whether another replica may be asked, while no token has come."""
    match trouble.kind:
        case Kind.UNREACHABLE | Kind.BUSY | Kind.UNUSABLE:
            return True
        case Kind.LOST:
            return losses < 2
        case Kind.SILENT | Kind.BROKEN | Kind.CONTEXT | Kind.INVALID | Kind.UNAVAILABLE:
            return False
        case _:
            assert_never(trouble.kind)

"""One pool's predictions put together: what its scheduler and driver report as it happens, and
what a router asks. Pure: every method takes `now`."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from antiphon.actors.scheduling.mirror import EngineMirror, Inside
from antiphon.actors.scheduling.outlook import Outlook
from antiphon.actors.scheduling.policy import is_urgent
from antiphon.actors.scheduling.prediction import Prediction, Predictor
from antiphon.actors.scheduling.prefixes import PrefixMemory
from antiphon.actors.scheduling.releases import expected_releases
from antiphon.ids import EngineRequest
from antiphon.workload import WorkloadClass

_ALL = frozenset(WorkloadClass)
_LEAST_LEFT = 0.1
"""A step that should be over by now will take at least this part of itself more."""
_SHARE_TOKENS = 8192.0
"""Over about so many prompt tokens it is counted how many of them were not in the cache."""
_TRUST_TOKENS = 4096.0
_LEAST_TRUST = 0.05
"""Something must be claimed, or nothing could ever be found to be there again."""
_TYPICAL_OF = 32
_MOST_GAP = 2.0
"""The time from one step's end to the next's is taken for the length of the second, what the host
does between them included, unless it is more than so many times what the step itself took."""


class Forecast:
    """The model, the mirror and the memory of prefixes of one pool; outlives its hosts."""

    def __init__(self, *, step_tokens: int = 128) -> None:
        self.predictor = Predictor(step_tokens=step_tokens)
        self.mirror = EngineMirror(step_tokens)
        self.prefixes = PrefixMemory(blocks=4096, block_size=32)
        self._new_share = 1.0
        """The part of prompts that no cache has."""
        self._trust = 1.0
        """The part of what should be in the cache that is there."""
        self._typical = dict.fromkeys(WorkloadClass, (64.0, 256.0))
        """New prompt tokens and longest answers of late."""
        self._prompts: dict[EngineRequest, tuple[Sequence[int], str | None]] = {}
        self._stepped_at = -math.inf
        self._busy_since = -math.inf
        self._releases: dict[tuple[WorkloadClass, frozenset[WorkloadClass]], tuple[float, ...]] = {}
        self._releases_at: tuple[int, int] | None = None

    def restarted(self, *, kv_blocks: int, block_size: int, lets_pass: bool = False) -> None:
        """Another host runs the engine now, with nothing in it. `lets_pass` as in Capabilities."""
        self.predictor.restarted()
        self.mirror.clear()
        self.mirror.lets_pass = lets_pass
        self.prefixes.resize(blocks=kv_blocks, block_size=block_size)
        self._prompts.clear()
        self._releases_at = None

    def begun(
        self,
        request: EngineRequest,
        lane: WorkloadClass,
        prompt: Sequence[int],
        max_tokens: int,
        now: float,
        *,
        salt: str | None = None,
        tokens: int = 0,
        patient: bool = False,
    ) -> None:
        """The engine is told to begin, or to go on where it had `tokens` of the answer."""
        if not self.mirror.busy:
            self._busy_since = now
        cached = len(prompt) if tokens else self._cached(prompt, salt)
        self._new_share += (len(prompt) - cached - self._new_share * len(prompt)) / _SHARE_TOKENS
        self._new_share = min(max(self._new_share, 0.0), 1.0)
        if not tokens:
            new, longest = self._typical[lane]
            new += (len(prompt) - cached - new) / _TYPICAL_OF
            self._typical[lane] = new, longest + (max_tokens - longest) / _TYPICAL_OF
        self.mirror.begun(
            request,
            lane,
            len(prompt),
            max_tokens,
            cached_tokens=cached,
            tokens=tokens,
            patient=patient,
        )
        self._prompts[request] = (prompt, salt)

    def stepped(self, duration_s: float, gained: Iterable[EngineRequest], now: float) -> None:
        """A step has ended, in which these got a token."""
        busy = self.mirror.busy
        work, firsts = self.mirror.stepped(gained)
        for request in firsts:
            prompt, salt = self._prompts[request]
            self.prefixes.remember(prompt, salt)
            self._judge_cache(self.mirror.inside[request])
        if busy:
            since_s = now - max(self._stepped_at, self._busy_since)
            seconds = since_s if duration_s <= since_s <= _MOST_GAP * duration_s else duration_s
            self.predictor.observe_step(
                seconds, work.decoding, work.prefill, work.context, work.attended
            )
        self._stepped_at = now

    def ended(self, request: EngineRequest, tokens: int, *, whole: bool = True) -> None:
        """The engine has given its slot back after so many tokens; `whole` unless it was cut short
        by somebody."""
        run = self.mirror.ended(request)
        prompt, salt = self._prompts.pop(request, ((), None))
        if run is None:
            return
        if run.left == 0 and tokens > 1:
            self.prefixes.remember(prompt, salt, answer_tokens=tokens - 1)
        if whole:
            self.predictor.observe_length(run.lane, tokens, run.max_tokens)

    def observe_first_token(self, prediction: Prediction, seconds: float) -> None:
        """What was predicted of a request, and how long it took from then."""
        self.predictor.observe_first_token(prediction, seconds)

    def predict(
        self,
        outlook: Outlook,
        prompt: Sequence[int],
        max_tokens: int,
        now: float,
        *,
        salt: str | None = None,
    ) -> Prediction:
        """When the first token of this prompt would come, were it submitted now."""
        tokens = len(prompt)
        return self.predictor.predict(
            self.refined(outlook, tokens, max_tokens, now),
            tokens,
            max_tokens,
            self._cached(prompt, salt),
        )

    def typical(self, outlook: Outlook, now: float) -> Prediction:
        """The same, of what is usual in its lane of late."""
        tokens, max_tokens = (round(each) for each in self._typical[outlook.lane])
        refined = self.refined(outlook, tokens, max_tokens, now)
        return self.predictor.predict(refined, tokens, max_tokens)

    def refined(self, outlook: Outlook, prompt_tokens: int, max_tokens: int, now: float) -> Outlook:
        """The schedule's outlook with what is known of the inside of the engine."""
        mirror = self.mirror
        if not mirror.busy:
            return outlook
        work = mirror.current()
        step_s = self.predictor.times.step_s(work)
        age_s = now - max(self._stepped_at, self._busy_since)
        backlog, attended = mirror.backlog(passing=is_urgent(outlook.lane))
        releases: tuple[float, ...] = ()
        if self.predictor.slots_short(outlook, prompt_tokens + max_tokens):
            releases = self._expected_releases(outlook, max_tokens, _ALL, outlook.joining)
        shared = outlook.shared
        if shared is not None and shared.short:
            found = self._expected_releases(outlook, max_tokens, shared.lanes, 0)
            shared = replace(shared, releases=found)
        return outlook.with_inside(
            shared=shared,
            ahead_prompt_tokens=outlook.ahead_prompt_tokens * self._new_share,
            decoding=mirror.decoding,
            context_tokens=mirror.context,
            prefilling=mirror.prefilling,
            prefill_tokens=max(backlog - work.prefill, 0.0),
            attended_tokens=max(attended - work.attended, 0.0),
            step_left_s=max(step_s - age_s, _LEAST_LEFT * step_s),
            releases=releases,
        )

    def _cached(self, prompt: Sequence[int], salt: str | None) -> int:
        return round(self.prefixes.cached(prompt, salt) * self._trust)

    def _judge_cache(self, run: Inside) -> None:
        """An engine without a cache, or with a smaller one than it said, takes longer to its first
        tokens than what should have been left to read does."""
        if run.cached and not run.before:
            there = 1.0 - min(run.late_tokens / run.cached, 1.0)
            self._trust += (there - self._trust) * min(run.cached / _TRUST_TOKENS, 0.5)
            self._trust = max(self._trust, _LEAST_TRUST)

    def _expected_releases(
        self, outlook: Outlook, max_tokens: int, of: frozenset[WorkloadClass], joining: int
    ) -> tuple[float, ...]:
        """Once a step: it is the same for all who ask meanwhile."""
        now = (self.mirror.step, len(self.mirror.inside))
        if self._releases_at != now:
            self._releases_at = now
            self._releases.clear()
        found = self._releases.get((outlook.lane, of))
        if found is None:
            if outlook.ahead > 0:
                tokens = outlook.ahead_blocks * outlook.block_size - outlook.ahead_prompt_tokens
                max_tokens = max(round(tokens / outlook.ahead) - outlook.block_size // 2, 1)
            found = expected_releases(
                self.mirror,
                self.predictor.lengths,
                of=of,
                joining=joining,
                next_lane=outlook.lane,
                next_max_tokens=max_tokens,
            )
            self._releases[outlook.lane, of] = found
        return found

"""Asks an OpenAI-compatible `/v1/moderations` elsewhere, for all the rules that want its word at
once: few connections, each answer within the deadline, and a breaker before all of it."""

from collections.abc import Callable, Mapping, Sequence

import httpx2
import msgspec
import structlog
import trio

from antiphon.actors.breaker import (
    Breaker,
    BreakerSpec,
    BreakerStatistics,
    Permit,
    Refused,
    Verdict,
)
from antiphon.actors.moderation.messages import Unjudged
from antiphon.policy.rules import Rule, UpstreamMatcher
from antiphon.supervision.context import ChildContext
from antiphon.verdicts import Failure, Finding, Stage

log = structlog.get_logger(__name__)

_BREAKER = BreakerSpec(failures=5, reset_s=2.0, max_reset_s=30.0)
_CONNECTIONS = 8
_CONNECT_S = 2.0


class Opinion(msgspec.Struct, frozen=True):
    """What it says of one text."""

    flagged: bool
    categories: dict[str, bool | None] = {}
    category_scores: dict[str, float | None] = {}


class _Answer(msgspec.Struct, frozen=True):
    results: list[Opinion]


def _judge(error: Exception) -> Verdict:
    return Verdict.FAILURE if isinstance(error, Unjudged) else Verdict.NOTHING


class Remote:
    """A permanent child, which holds the connections. `url` ends with its `/v1`."""

    def __init__(
        self,
        url: str,
        key: str | None,
        model: Callable[[], str],
        *,
        connect: Callable[[], httpx2.AsyncBaseTransport] | None = None,
    ) -> None:
        self._url = f"{url.rstrip('/')}/moderations"
        self._headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self._model = model
        self._connect = connect
        self._breaker = Breaker("moderation upstream", _BREAKER, judge=_judge)
        self._client: httpx2.AsyncClient | None = None

    async def run(self, context: ChildContext) -> None:
        """A child's start function."""
        limits = httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=2)
        async with httpx2.AsyncClient(
            transport=None if self._connect is None else self._connect(),
            limits=limits,
            # The deadline is the caller's; the environment is nobody's to read but the settings'.
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
            trust_env=False,
        ) as self._client:
            context.ready()
            try:
                await context.stopping.wait()
            finally:
                self._client = None

    def statistics(self) -> BreakerStatistics:
        return self._breaker.statistics()

    async def judge(
        self, rules: Sequence[Rule], stage: Stage, texts: Sequence[str], deadline_s: float
    ) -> tuple[tuple[Finding, ...], ...]:
        """What the rules make of its word on each text. Raises Unjudged."""
        match self._breaker.admit():
            case Refused():
                raise Unjudged(Failure.CIRCUIT_OPEN)
            case Permit() as permit:
                with permit:
                    opinions = await self._opinions(texts, deadline_s)
        return tuple(
            tuple(found for rule in rules for found in findings_of(rule, stage, text, opinion))
            for text, opinion in zip(texts, opinions, strict=True)
        )

    async def _opinions(self, texts: Sequence[str], deadline_s: float) -> list[Opinion]:
        if self._client is None:
            raise Unjudged(Failure.UPSTREAM)
        with trio.move_on_after(deadline_s):
            try:
                reply = await self._client.post(
                    self._url,
                    headers=self._headers,
                    json={"model": self._model(), "input": list(texts)},
                )
                answer = (
                    msgspec.json.decode(reply.content, type=_Answer) if reply.is_success else None
                )
            except (httpx2.HTTPError, msgspec.MsgspecError, UnicodeDecodeError) as error:
                log.warning("moderation_upstream_failed", problem=type(error).__name__)
                raise Unjudged(Failure.UPSTREAM) from error
            if answer is None or len(answer.results) != len(texts):
                log.warning("moderation_upstream_failed", problem=f"status {reply.status_code}")
                raise Unjudged(Failure.UPSTREAM)
            return answer.results
        raise Unjudged(Failure.DEADLINE)


def findings_of(rule: Rule, stage: Stage, text: str, opinion: Opinion) -> tuple[Finding, ...]:
    """Without thresholds of its own a rule takes what is flagged there."""
    assert isinstance(rule.match, UpstreamMatcher)
    return tuple(
        rule.finding(
            stage,
            end=len(text),
            category=category,
            score=opinion.category_scores.get(category or ""),
        )
        for category in _categories(rule.match.thresholds, opinion)
    )


def _categories(thresholds: Mapping[str, float], opinion: Opinion) -> Sequence[str | None]:
    if thresholds:
        scores = opinion.category_scores
        return [name for name, least in thresholds.items() if (scores.get(name) or 0.0) >= least]
    if not opinion.flagged:
        return ()
    return [name for name, holds in opinion.categories.items() if holds] or [None]

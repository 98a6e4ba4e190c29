"""The router: how the pools stand, which may answer a turn, and a record of what was decided.

No actor: it never waits, and every turn asks it. The rules are in `route` and `choice`; it brings
them the state of the pools, and keeps the last decisions for people, without any text.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import structlog
import trio

from antiphon.actors.breaker import Circuit
from antiphon.actors.context.view import View
from antiphon.actors.routing.choice import Answer, Decision, refusals
from antiphon.actors.routing.memory import Memory
from antiphon.actors.routing.route import (
    Ability,
    PoolView,
    Reason,
    Route,
    RouteRequest,
    Stay,
    conversation_key,
    meant,
    route,
)
from antiphon.actors.routing.rules import Rules, is_entitled, names
from antiphon.actors.scheduling.pool import Pool
from antiphon.actors.scheduling.scheduler import ScheduleView
from antiphon.errors import AntiphonError, InvalidRequest, ModelNotFound
from antiphon.events import Capabilities, Turn
from antiphon.ids import ModelName, RequestId
from antiphon.moments import Unplaced
from antiphon.ports import ModelCard
from antiphon.telemetry import Telemetry
from antiphon.views import Fate, Manifest

log = structlog.get_logger(__name__)

_KEPT = 200
"""Decisions that an operator can look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedPool:
    """A pool and what routing has to know of it beside."""

    pool: Pool
    view: ScheduleView
    smaller: ModelName | None = None
    cost: float = 1.0
    trouble: Callable[[], str | None] = lambda: None
    """What else keeps it from working, in words."""

    @property
    def window(self) -> int:
        capabilities = self.pool.status.capabilities
        return self.pool.card.window if capabilities is None else capabilities.window


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """One decision as operators see it; `model` is None where nobody took the request, and `error`
    then says why."""

    request_id: RequestId
    asked: str
    model: ModelName | None
    moved: str | None
    reasons: tuple[str, ...]
    passed: tuple[tuple[ModelName, str], ...]
    predicted_s: float | None
    at: float
    """On the event loop's clock."""
    error: str | None = None
    prompt_tokens: int | None = None
    items: Mapping[str, int] = field(default_factory=dict)
    """Of the conversation, those that the model wasn't shown as they are, by what became of
    them."""


class Router:
    """`rules` is asked for at each turn, since an operator may change them."""

    def __init__(
        self, pools: Sequence[RoutedPool], rules: Callable[[], Rules], telemetry: Telemetry
    ) -> None:
        self._pools = {pool.pool.card.name: pool for pool in pools}
        self._rules = rules
        self._telemetry = telemetry
        self._memory = Memory()
        self._recent: deque[Routing] = deque(maxlen=_KEPT)

    @property
    def rules(self) -> Rules:
        return self._rules()

    @property
    def pools(self) -> Mapping[ModelName, RoutedPool]:
        """By model; the first one is who asks for none."""
        return self._pools

    def cards(self, plan: str | None = None) -> tuple[ModelCard, ...]:
        """All that a caller of this plan may ask for, aliases too."""
        rules = self.rules
        allowed = names(rules, tuple(self._pools), rules.plan(plan))
        return tuple(card for name in allowed if (card := self._card(name)) is not None)

    def meant(self, name: str) -> tuple[RoutedPool, ...]:
        """The pools that a name stands for, by preference. Raises ModelNotFound."""
        return tuple(self._pools[model] for model in meant(name, self.rules, self._pools))

    def capabilities(self, name: str) -> Capabilities | None:
        """What one of the pools behind a name can do; None while nobody knows. Raises
        ModelNotFound."""
        pools = self.meant(name)
        known = [each for pool in pools if (each := pool.pool.status.capabilities) is not None]
        if len(known) < len(pools):
            return None
        return msgspec.structs.replace(
            known[0],
            window=max(each.window for each in known),
            logprobs=any(each.logprobs for each in known),
            json_schema=any(each.json_schema for each in known),
            seed=any(each.seed for each in known),
            salted_repetition_penalty=any(each.salted_repetition_penalty for each in known),
            vision=self.sees(name) is True,
        )

    def sees(self, name: str) -> bool | None:
        """Whether one of the pools behind a name can be shown images; None while nobody knows.
        Raises ModelNotFound."""
        told = [pool.pool.sees() for pool in self.meant(name)]
        return True if True in told else None if None in told else False

    def first_meant(self, turn: Turn) -> Pool:
        """The pool that a turn means, whoever will answer it. Raises ModelNotFound for a name that
        its caller can't have."""
        rules = self.rules
        if not is_entitled(turn.model, rules.plan(turn.plan)):
            raise ModelNotFound(turn.model)
        return self._pools[meant(turn.model, rules, self._pools)[0]].pool

    def route(self, turn: Turn) -> Route:
        """Who may answer the turn now. Raises ModelNotFound."""
        rules, now = self.rules, trio.current_time()
        conversation = _conversation(turn)
        return route(
            RouteRequest(
                asked=turn.model,
                conversation=conversation,
                plan=rules.plan(turn.plan),
                last=self._memory.last((turn.model, conversation), now),
                needs=_needs(turn),
                wants=_wants(turn),
            ),
            rules,
            {name: _seen(pool, now) for name, pool in self._pools.items()},
        )

    def placed(self, turn: Turn, decision: Decision, view: View) -> None:
        """The turn was taken there: from now on its conversation belongs there."""
        manifest, prompt_tokens = view.manifest, len(view.prompt)
        now = trio.current_time()
        if decision.reasons[0] is not Reason.SMALLER:
            stay = Stay(model=decision.model, moved=decision.moved)
            self._memory.note((turn.model, _conversation(turn)), stay, now)
        reasons = tuple(reason.value for reason in decision.reasons)
        self._telemetry.turn_routed(decision.model, _headline(decision))
        items = {} if manifest is None else _less_than_shown(manifest)
        if manifest is not None:
            self._telemetry.view_built(decision.model, manifest)
            if items.get(Fate.DROPPED):
                log.info("context_cut", request_id=turn.request, model=decision.model, **items)
        report = log.debug if decision.moved is None else log.info
        passed = tuple((each.model, each.reason.value) for each in decision.passed)
        report(
            "turn_routed",
            request_id=turn.request,
            asked=turn.model,
            model=decision.model,
            moved=decision.moved,
            reasons=reasons,
            passed=passed,
            predicted_s=_rounded(decision.predicted_s),
            prompt_tokens=prompt_tokens,
            items=items,
        )
        self._recent.append(
            Routing(
                request_id=turn.request,
                asked=turn.model,
                model=decision.model,
                moved=decision.moved,
                reasons=reasons,
                passed=passed,
                predicted_s=_rounded(decision.predicted_s),
                at=now,
                prompt_tokens=prompt_tokens,
                items=items,
            )
        )

    def refused(
        self,
        turn: Turn,
        route: Route,
        answers: Mapping[ModelName, Answer],
        error: AntiphonError,
    ) -> None:
        """Nobody took the turn."""
        kind = type(error).__name__
        passed = tuple((each.model, each.reason.value) for each in refusals(route, answers))
        # A request that is wrong says nothing of the pools, and may come by the thousand.
        report = log.debug if isinstance(error, InvalidRequest) else log.info
        report("turn_refused", request_id=turn.request, asked=turn.model, error=kind, passed=passed)
        self._telemetry.turn_noted(turn.request, Unplaced(passed=passed))
        self._recent.append(
            Routing(
                request_id=turn.request,
                asked=turn.model,
                model=None,
                moved=None,
                reasons=(),
                passed=passed,
                predicted_s=None,
                at=trio.current_time(),
                error=kind,
            )
        )

    def recent(self) -> tuple[Routing, ...]:
        """The last decisions, the latest one first."""
        return tuple(reversed(self._recent))

    def _card(self, name: str) -> ModelCard | None:
        if (own := self._pools.get(ModelName(name))) is not None:
            return own.pool.card
        try:
            pools = self.meant(name)
        except ModelNotFound:  # an alias of nothing that runs: its settings were changed since
            return None
        first = pools[0].pool.card
        return ModelCard(
            name=ModelName(name),
            created=first.created,
            owned_by=first.owned_by,
            window=max(pool.window for pool in pools),
        )


def problems(pools: Iterable[RoutedPool]) -> list[str]:
    """Of each pool that should get no work now, why, in words."""
    now = trio.current_time()
    return [problem for pool in pools if (problem := problem_of(pool, now)) is not None]


def problem_of(routed: RoutedPool, now: float) -> str | None:
    """Why this pool should get no work now, in words; None when it should."""
    pool = routed.pool
    if (problem := pool.status.problem(now)) is not None:
        return f"engine {pool.card.name}: {problem}"
    if routed.view.schedule is None:
        return f"scheduler {pool.card.name}: starting"
    if (problem := routed.trouble()) is not None:
        return f"engine {pool.card.name}: {problem}"
    circuit = pool.breaker.statistics()
    # Only until the next try: traffic has to come for the probe that closes it.
    if circuit.circuit == Circuit.OPEN.value and circuit.retry_after_s:
        return f"circuit {circuit.name}: open for {circuit.retry_after_s:.1f} s"
    return None


def _seen(routed: RoutedPool, now: float) -> PoolView:
    pool = routed.pool
    return PoolView(
        model=pool.card.name,
        window=routed.window,
        cost=routed.cost,
        smaller=routed.smaller,
        problem=_reason(routed, now),
        abilities=_abilities(pool),
    )


def _reason(routed: RoutedPool, now: float) -> Reason | None:
    status = routed.pool.status
    if not status.ready or routed.view.schedule is None:
        return Reason.STARTING
    if status.problem(now) is not None or routed.trouble() is not None:
        return Reason.STALLED
    circuit = routed.pool.breaker.statistics()
    # One whose next try is due works, until that try has failed: somebody has to make it.
    is_out = circuit.circuit == Circuit.OPEN.value and circuit.retry_after_s
    return Reason.CIRCUIT if is_out or circuit.circuit == Circuit.HALF_OPEN.value else None


def _abilities(pool: Pool) -> frozenset[Ability]:
    capabilities = pool.status.capabilities
    if capabilities is None:
        return frozenset(Ability) - ({Ability.VISION} if pool.sees() is False else set())
    can = {
        Ability.VISION: pool.sees() is not False,
        Ability.LOGPROBS: capabilities.logprobs,
        Ability.JSON: capabilities.json_schema,
        Ability.SEED: capabilities.seed,
        Ability.SALTED_PENALTY: capabilities.salted_repetition_penalty,
    }
    return frozenset(ability for ability, able in can.items() if able)


def _needs(turn: Turn) -> frozenset[Ability]:
    wants = {
        Ability.LOGPROBS: turn.sampling.logprobs,
        Ability.JSON: turn.sampling.json_schema is not None
        or (turn.tools is not None and turn.tools.required),
        Ability.SEED: turn.seeded,
        Ability.VISION: turn.must_see,
        Ability.SALTED_PENALTY: turn.salt is not None
        # Where it is the model's own, whether it gets salts at all was settled with that.
        and "repetition_penalty" not in turn.silent
        and turn.sampling.repetition_penalty != 1,
    }
    return frozenset(ability for ability, wanted in wants.items() if wanted)


def _wants(turn: Turn) -> frozenset[Ability]:
    """Where earlier turns have images, somebody who sees them goes first."""
    has_images = any(message.images for message in turn.messages)
    return frozenset({Ability.VISION} if has_images else ())


def _conversation(turn: Turn) -> str:
    return conversation_key(turn.user or turn.tenant or "", turn.affinity, turn.messages)


def _headline(decision: Decision) -> str:
    """The one word that a decision is counted by."""
    if decision.moved is not None and decision.reasons[0] is not Reason.AFFINITY:
        return decision.moved.value
    return decision.reasons[0].value


def _less_than_shown(manifest: Manifest) -> dict[str, int]:
    """How many items of its conversation a model isn't shown as they are."""
    fates = (Fate.TRIMMED, Fate.SUMMARISED, Fate.DROPPED)
    return {fate.value: items for fate in fates if (items := manifest.items(fate))}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)

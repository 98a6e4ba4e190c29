"""Finding the pool that answers a turn, and reserving what that may cost, for a session.

It asks one candidate after another until `choice` decides; it starts no work and tells nobody.
"""

from dataclasses import dataclass

from antiphon.actors.context.view import View
from antiphon.actors.context.viewing import Viewer
from antiphon.actors.routing.choice import Answer, Decision, Offer, Refusal, cant_see, choose
from antiphon.actors.routing.route import Candidate, Route
from antiphon.actors.routing.router import RoutedPool, Router
from antiphon.actors.routing.rules import terms_of, tier_of, workload_of
from antiphon.actors.scheduling.pool import Pool
from antiphon.actors.scheduling.prediction import Prediction
from antiphon.actors.sessions.charges import Charges, Tab
from antiphon.actors.sessions.means import means_of
from antiphon.errors import (
    ContextLengthExceeded,
    EngineUnavailable,
    InvalidRequest,
    RequestError,
)
from antiphon.events import Turn
from antiphon.ids import ModelName
from antiphon.moments import Placed
from antiphon.plan_settings import PlanSettings
from antiphon.turn_events import TurnPlaced
from antiphon.workload import Workload

_UNKNOWN_S = 2.0
"""When to come again while no engine has said yet what it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a turn goes, what it shows the model there, and how it is told."""

    pool: Pool
    view: View
    workload: Workload
    decision: Decision
    prediction: Prediction | None
    told: TurnPlaced

    @property
    def noted(self) -> Placed:
        """For those who look after the server."""
        decision = self.decision
        return Placed(
            model=decision.model,
            moved=None if decision.moved is None else decision.moved.value,
            reasons=tuple(reason.value for reason in decision.reasons),
            passed=tuple((each.model, each.reason.value) for each in decision.passed),
            predicted_s=decision.predicted_s,
            prompt_tokens=len(self.view.prompt),
            max_tokens=self.view.max_tokens,
            manifest=self.view.manifest,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What was found out of one candidate."""

    view: View
    workload: Workload
    prediction: Prediction | None


class Placing:
    """Of one turn."""

    def __init__(
        self, turn: Turn, router: Router, charges: Charges, tab: Tab, viewer: Viewer
    ) -> None:
        self._turn = turn
        self._router = router
        self._viewer = viewer
        self._charges = charges
        self._tab = tab
        self._route: Route | None = None
        self._answers: dict[ModelName, Answer] = {}
        self._asked: dict[ModelName, _Asked] = {}
        self._views: dict[tuple[object, ...], View] = {}
        """By tokenizer, window, default answer and what is seen: pools may share them all."""

    async def place(self) -> Placement:
        """The pool for the turn, with its charge on the tab. Raises RequestError, StoreUnavailable.

        To be called again after `refused`, and after `anew`.
        """
        if self._route is None:
            self._route = self._router.route(self._turn)
        try:
            decision = await self._decide(self._route)
        except RequestError as error:
            self._router.refused(self._turn, self._route, self._answers, error)
            raise
        asked = self._asked[decision.model]
        await self._charges.reserve(
            self._tab,
            self._turn,
            model=decision.model,
            prompt_tokens=len(asked.view.prompt),
            max_tokens=asked.view.max_tokens,
        )
        charge = self._tab.charge
        return Placement(
            pool=self._router.pools[decision.model].pool,
            view=asked.view,
            workload=asked.workload,
            decision=decision,
            prediction=asked.prediction,
            told=TurnPlaced(
                model=decision.model,
                tier=tier_of(self._turn.tier, self._plan),
                moved=None if decision.moved is None else decision.moved.value,
                limits=() if charge is None else charge.limits,
                expected_s=_expected_s(asked.prediction),
                manifest=asked.view.manifest,
                counts=asked.view.counts,
            ),
        )

    async def refused(self, model: ModelName, error: Refusal) -> None:
        """The pool would not take it after all: the next one may."""
        self._answers[model] = error
        await self._charges.settle(self._tab)

    async def anew(self) -> None:
        """Everything may stand otherwise by now."""
        self._route = None
        self._answers.clear()
        await self._charges.settle(self._tab)

    async def _decide(self, route: Route) -> Decision:
        while True:
            match choose(route, self._answers):
                case Candidate(model=model):
                    self._answers[model] = await self._ask(self._router.pools[model])
                case Decision() as decision:
                    return decision

    async def _ask(self, routed: RoutedPool) -> Answer:
        model = routed.pool.card.name
        if (asked := self._asked.get(model)) is not None:
            return self._offer(routed, asked.view)
        try:
            view = await self._view(routed)
        except (ContextLengthExceeded, InvalidRequest, EngineUnavailable) as error:
            return error
        return self._offer(routed, view)

    def _offer(self, routed: RoutedPool, view: View) -> Offer:
        rules = self._router.rules
        workload = workload_of(self._turn, self._plan, rules, prompt_tokens=len(view.prompt))
        prediction = routed.pool.predict(workload, view.prompt, view.max_tokens, self._turn.salt)
        self._asked[routed.pool.card.name] = _Asked(
            view=view, workload=workload, prediction=prediction
        )
        return Offer(prediction=prediction, terms=terms_of(workload, rules))

    async def _view(self, routed: RoutedPool) -> View:
        pool, turn, plan = routed.pool, self._turn, self._plan
        default = pool.default_max_tokens()
        if plan is not None and plan.max_output_tokens:
            default = min(default, plan.max_output_tokens)
            _check_longest(turn.max_tokens, plan.max_output_tokens)
        _check_sight(turn, pool)
        capabilities = pool.status.capabilities
        sight = (pool.sees(), 0 if capabilities is None else capabilities.image_tokens)
        key = (id(pool.tokenizer), routed.window, default, sight)
        if (view := self._views.get(key)) is None:
            means = means_of(routed, default_max_tokens=default)
            view = self._views[key] = await self._viewer.view(turn, means)
        return view

    @property
    def _plan(self) -> PlanSettings | None:
        return self._router.rules.plan(self._turn.plan)


def _check_sight(turn: Turn, pool: Pool) -> None:
    """Raises InvalidRequest where images can't be seen, EngineUnavailable while nobody knows."""
    if turn.must_see and not pool.sees():
        if pool.sees() is None:
            raise EngineUnavailable(retry_after_s=_UNKNOWN_S)
        raise cant_see(pool.card.name)


def _expected_s(prediction: Prediction | None) -> float | None:
    return prediction.ttft_s if prediction is not None and prediction.confident else None


def _check_longest(max_tokens: int | None, longest: int) -> None:
    """Raises InvalidRequest: a bound that is silently another one would be taken for an answer that
    is whole."""
    if max_tokens is not None and max_tokens > longest:
        raise InvalidRequest(
            f"max_tokens is too large: {max_tokens}. Your plan allows at most {longest} completion "
            "tokens.",
            "max_tokens",
            "invalid_value",
        )

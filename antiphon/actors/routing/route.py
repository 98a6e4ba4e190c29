"""Which pools may answer a request, in which order, and why: the candidates of one request.

Pure: aliases, plans, canaries, health, affinity and cost, over frozen values. Which of them takes
the request is `choice`'s business, once its prompt has been counted.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from antiphon.actors.routing.rules import Rules, is_entitled
from antiphon.alias_settings import AliasSettings
from antiphon.errors import ModelNotFound
from antiphon.events import Message
from antiphon.ids import ModelName
from antiphon.plan_settings import PlanSettings


class Reason(enum.StrEnum):
    """Why a pool was chosen, or passed over: one word each, and no others."""

    EXACT = "exact"
    """It was asked for by its name."""
    ALIAS = "alias"
    """The alias that was asked for names it."""
    CANARY = "canary"
    AFFINITY = "affinity"
    """The conversation was answered there before."""
    SMALLER = "smaller"
    """It stands in for a model that can't answer soon."""
    QUEUED = "queued"
    """Late, but nobody else is sooner."""
    COST = "cost"
    """It costs more than the plan has a budget for, so others come first."""
    STARTING = "starting"
    STALLED = "stalled"
    CIRCUIT = "circuit"
    """Its breaker is open."""
    UNABLE = "unable"
    """Its engine can't do what the request needs."""
    WINDOW = "window"
    """The prompt and its answer don't fit."""
    OVERLOAD = "overload"
    """The first token would come too late."""
    FULL = "full"
    """As much waits there as may wait."""
    UNAVAILABLE = "unavailable"
    """It was to take the request, and its engine was gone."""


OUT = frozenset({Reason.STARTING, Reason.STALLED, Reason.CIRCUIT})
"""States of a pool that should get no work now."""


class Moved(enum.StrEnum):
    """Why another model answers than the first choice: what clients are told."""

    OVERLOAD = "overload"
    CANARY = "canary"
    FALLBACK = "fallback"


class Ability(enum.StrEnum):
    """What some engines can do and others can't."""

    LOGPROBS = "logprobs"
    JSON = "json"
    SEED = "seed"
    SALTED_PENALTY = "salted_penalty"
    """A repetition penalty for a tenant whose prompts are kept apart."""
    VISION = "vision"


EVERYTHING = frozenset(Ability)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """A pool at one moment. `problem` is one of OUT, None while it works."""

    model: ModelName
    window: int
    cost: float = 1.0
    smaller: ModelName | None = None
    problem: Reason | None = None
    abilities: frozenset[Ability] = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """Where a conversation was answered last, and why it was there."""

    model: ModelName
    moved: Moved | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRequest:
    """What routing goes by. `conversation` is the same for every turn of one; `plan` is None for
    who has none, and may have everything."""

    asked: str
    conversation: str = ""
    plan: PlanSettings | None = None
    last: Stay | None = None
    needs: frozenset[Ability] = frozenset()
    wants: frozenset[Ability] = frozenset()
    """Of the pools of an alias, those that have it go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A pool that may answer. `moved` is what a client is told where it is chosen though nothing
    better was passed over. `stands_in`: it may only answer where a pool that was meant can't."""

    model: ModelName
    reason: Reason
    cost: float
    moved: Moved | None = None
    stands_in: bool = False
    problem: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A pool that did not get the request, and why."""

    model: ModelName
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """`candidates` by preference, those that work before those that don't. `first` is the model
    that was meant: all others are told to the client as moves."""

    asked: str
    first: ModelName
    candidates: tuple[Candidate, ...]
    unable: tuple[Passed, ...] = ()
    missing: frozenset[Ability] = frozenset()
    """What the request needs and no pool has that it may go to."""


def meant(asked: str, rules: Rules, models: Mapping[ModelName, object]) -> tuple[ModelName, ...]:
    """The models that a name stands for, whoever asks. Raises ModelNotFound."""
    if ModelName(asked) in models:
        return (ModelName(asked),)
    if (alias := rules.aliases.get(asked)) is not None:
        found = tuple(ModelName(name) for name in alias.models if ModelName(name) in models)
        if found:
            return found
    raise ModelNotFound(asked)


def route(request: RouteRequest, rules: Rules, pools: Mapping[ModelName, PoolView]) -> Route:
    """The candidates for a request. Raises ModelNotFound for a name that nobody has, and for one
    that the caller's plan doesn't name: which of them is nobody's business."""
    if not is_entitled(request.asked, request.plan):
        raise ModelNotFound(request.asked)
    models = meant(request.asked, rules, pools)
    alias = None if ModelName(request.asked) in pools else rules.aliases[request.asked]
    main = _within_budget(_main(models, alias, request, pools), request.plan, pools, alias)
    if alias is not None and request.wants:
        main.sort(key=lambda each: not request.wants <= pools[each.model].abilities)
    first = main[0]
    if alias is not None:
        main = _with_affinity(main, request.last)
    every = (*main, *_stand_ins(main, request.plan, pools))
    able = [each for each in every if request.needs <= pools[each.model].abilities]
    return Route(
        asked=request.asked,
        first=_first_choice(first, models),
        # Stable: within those that work, and within those that don't, the preference stays.
        candidates=tuple(sorted(able, key=lambda each: each.problem is not None)),
        unable=tuple(
            Passed(model=each.model, reason=Reason.UNABLE) for each in every if each not in able
        ),
        missing=request.needs.difference(*(pools[each.model].abilities for each in every)),
    )


def share_point(key: str) -> float:
    """Where a conversation stands between 0 and 1: always the same place, and evenly spread."""
    digest = blake2b(key.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def conversation_key(caller: str, affinity: str, messages: Sequence[Message]) -> str:
    """The same for every turn of a conversation: its name, or failing that what it begins with.
    Texts are hashed, so that whoever keeps the key keeps none."""
    digest = blake2b(digest_size=16)
    parts = [caller, affinity]
    if not affinity:
        said = next((each for each in messages if each.role == "user"), None)
        if said is not None:
            parts += ["said", said.content, *(image.file for image in said.images)]
    # A length before each part, so that no two lists of parts spell the same bytes.
    for part in parts:
        data = part.encode("utf-8", "replace")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def _main(
    models: tuple[ModelName, ...],
    alias: AliasSettings | None,
    request: RouteRequest,
    pools: Mapping[ModelName, PoolView],
) -> list[Candidate]:
    """The pools that were meant; the canary, for its share of conversations, before them."""
    reason = Reason.EXACT if alias is None else Reason.ALIAS
    found = [_candidate(pools[model], reason) for model in models]
    canary = None if alias is None or alias.canary is None else ModelName(alias.canary)
    if alias is None or canary is None or canary not in pools:
        return found
    if share_point(f"{request.asked}\n{request.conversation}") >= alias.canary_share:
        return found
    arm = replace(_candidate(pools[canary], Reason.CANARY), moved=Moved.CANARY)
    return [arm, *(each for each in found if each.model != canary)]


def _within_budget(
    main: list[Candidate],
    plan: PlanSettings | None,
    pools: Mapping[ModelName, PoolView],
    alias: AliasSettings | None,
) -> list[Candidate]:
    """What costs more than the plan's budget comes after what doesn't. An exact name is what the
    caller chose, whatever it costs."""
    if alias is None or plan is None or not plan.max_cost:
        return main
    budget = plan.max_cost
    dear = [each for each in main if pools[each.model].cost > budget]
    return [
        *(each for each in main if each not in dear),
        *(replace(each, reason=Reason.COST) for each in dear),
    ]


def _with_affinity(main: list[Candidate], last: Stay | None) -> list[Candidate]:
    """The pool that holds the conversation's prefix goes first while it works."""
    if last is None:
        return main
    for each in main:
        if each.model == last.model and each.problem is None and each.reason is not Reason.COST:
            stays = replace(each, reason=Reason.AFFINITY, moved=each.moved or last.moved)
            return [stays, *(other for other in main if other is not each)]
    return main


def _stand_ins(
    main: list[Candidate], plan: PlanSettings | None, pools: Mapping[ModelName, PoolView]
) -> list[Candidate]:
    """The smaller models of those that were meant, and theirs."""
    if plan is not None and not plan.smaller_model:
        return []
    seen = {each.model for each in main}
    found = []
    waiting = [each.model for each in main if each.reason is not Reason.CANARY]
    while waiting:
        smaller = pools[waiting.pop(0)].smaller
        if smaller is not None and smaller in pools and smaller not in seen:
            seen.add(smaller)
            found.append(replace(_candidate(pools[smaller], Reason.SMALLER), stands_in=True))
            waiting.append(smaller)
    return found


def _candidate(pool: PoolView, reason: Reason) -> Candidate:
    return Candidate(model=pool.model, reason=reason, cost=pool.cost, problem=pool.problem)


def _first_choice(first: Candidate, models: tuple[ModelName, ...]) -> ModelName:
    """A canary is a move, also for those who are in its share."""
    return models[0] if first.reason is Reason.CANARY else first.model

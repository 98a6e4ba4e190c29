"""Which pools may answer a request, in which order."""

import random
from dataclasses import replace

import pytest

from antiphon.actors.routing.choice import choose
from antiphon.actors.routing.route import (
    EVERYTHING,
    Ability,
    Moved,
    PoolView,
    Reason,
    RouteRequest,
    Stay,
    conversation_key,
    route,
    share_point,
)
from antiphon.actors.routing.rules import is_entitled, names
from antiphon.alias_settings import AliasSettings
from antiphon.errors import InvalidRequest, ModelNotFound
from antiphon.events import Image, Message
from antiphon.ids import FileId
from antiphon.plan_settings import PlanSettings
from antiphon.testing.routing import a_pool_view, some_pools, some_rules

POOLS = some_pools(a_pool_view("big", smaller="small"), a_pool_view("small"), a_pool_view("long"))
AUTO = AliasSettings(models=("big", "long"))
RULES = some_rules(aliases={"auto": AUTO})


def order(request, rules=RULES, pools=POOLS):
    return [candidate.model for candidate in route(request, rules, pools).candidates]


def test_an_exact_name_is_that_model_and_what_stands_in_for_it():
    found = route(RouteRequest(asked="big"), RULES, POOLS)

    assert [(each.model, each.reason, each.stands_in) for each in found.candidates] == [
        ("big", Reason.EXACT, False),
        ("small", Reason.SMALLER, True),
    ]
    assert found.first == "big"


def test_an_alias_is_its_models_by_preference_and_then_their_stand_ins():
    assert order(RouteRequest(asked="auto")) == ["big", "long", "small"]


@pytest.mark.parametrize("asked", ["none", "", "Big"])
def test_a_name_that_nobody_has_is_not_found(asked):
    with pytest.raises(ModelNotFound):
        route(RouteRequest(asked=asked), RULES, POOLS)


def test_a_name_that_the_plan_does_not_have_is_as_if_there_were_none():
    plan = PlanSettings(models=("small",))

    assert order(RouteRequest(asked="small", plan=plan)) == ["small"]
    for asked in ("big", "auto"):
        with pytest.raises(ModelNotFound):
            route(RouteRequest(asked=asked, plan=plan), RULES, POOLS)


def test_a_plan_that_names_an_alias_has_the_models_behind_it_under_that_name_alone():
    plan = PlanSettings(models=("auto",))

    assert order(RouteRequest(asked="auto", plan=plan)) == ["big", "long", "small"]
    with pytest.raises(ModelNotFound):
        route(RouteRequest(asked="big", plan=plan), RULES, POOLS)


def test_without_the_plans_leave_no_smaller_model_stands_in():
    plan = PlanSettings(smaller_model=False)

    assert order(RouteRequest(asked="big", plan=plan)) == ["big"]


def test_smaller_models_have_smaller_ones_themselves_each_once():
    pools = some_pools(
        a_pool_view("a", smaller="b"), a_pool_view("b", smaller="c"), a_pool_view("c", smaller="a")
    )

    assert order(RouteRequest(asked="a"), pools=pools) == ["a", "b", "c"]


def test_pools_that_are_out_come_last_and_keep_their_order():
    pools = dict(POOLS)
    pools["big"] = replace(pools["big"], problem=Reason.STARTING)

    assert order(RouteRequest(asked="auto"), pools=pools) == ["long", "small", "big"]
    assert route(RouteRequest(asked="auto"), RULES, pools).first == "big"


def test_a_conversation_stays_where_it_was_while_that_pool_works():
    last = Stay(model="long", moved=Moved.OVERLOAD)
    found = route(RouteRequest(asked="auto", last=last), RULES, POOLS).candidates

    assert (found[0].model, found[0].reason, found[0].moved) == (
        "long",
        Reason.AFFINITY,
        Moved.OVERLOAD,
    )

    pools = dict(POOLS)
    pools["long"] = replace(pools["long"], problem=Reason.CIRCUIT)
    assert order(RouteRequest(asked="auto", last=last), pools=pools)[0] == "big"


def test_an_exact_name_is_answered_by_that_model_wherever_the_conversation_was():
    last = Stay(model="small")

    assert order(RouteRequest(asked="big", last=last))[0] == "big"


def test_nobody_stays_with_a_model_that_only_stood_in():
    assert order(RouteRequest(asked="auto", last=Stay(model="small")))[0] == "big"


def test_what_costs_more_than_the_plans_budget_comes_last():
    pools = dict(POOLS)
    pools["big"] = replace(pools["big"], cost=5.0)
    plan = PlanSettings(max_cost=2.0)
    found = route(RouteRequest(asked="auto", plan=plan), RULES, pools)

    assert [each.model for each in found.candidates] == ["long", "big", "small"]
    assert found.candidates[1].reason is Reason.COST
    assert found.first == "long"
    assert order(RouteRequest(asked="big", plan=plan), pools=pools)[0] == "big"


def test_affinity_does_not_outweigh_the_budget():
    pools = dict(POOLS)
    pools["big"] = replace(pools["big"], cost=5.0)
    request = RouteRequest(asked="auto", plan=PlanSettings(max_cost=2.0), last=Stay(model="big"))

    assert order(request, pools=pools)[0] == "long"


def test_an_engine_that_cannot_do_it_is_no_candidate():
    pools = dict(POOLS)
    pools["big"] = replace(pools["big"], abilities=frozenset({Ability.SEED}))
    found = route(RouteRequest(asked="auto", needs=frozenset({Ability.JSON})), RULES, pools)

    assert [each.model for each in found.candidates] == ["long", "small"]
    assert [(each.model, each.reason) for each in found.unable] == [("big", Reason.UNABLE)]


def test_a_canary_gets_its_share_of_conversations_and_always_the_same_ones():
    rules = some_rules(
        aliases={"auto": AliasSettings(models=("big",), canary="long", canary_share=0.1)}
    )

    def arm(number):
        found = route(RouteRequest(asked="auto", conversation=str(number)), rules, POOLS)
        return found.candidates[0].model

    arms = [arm(number) for number in range(2000)]

    assert arms == [arm(number) for number in range(2000)]
    assert 150 < arms.count("long") < 250


def test_a_larger_share_keeps_all_conversations_that_a_smaller_one_had():
    def drawn(share):
        rules = some_rules(
            aliases={"auto": AliasSettings(models=("big",), canary="long", canary_share=share)}
        )
        return {
            number
            for number in range(500)
            if route(RouteRequest(asked="auto", conversation=str(number)), rules, POOLS)
            .candidates[0]
            .reason
            is Reason.CANARY
        }

    assert drawn(0.1) < drawn(0.3)
    assert drawn(1.0) == set(range(500))
    assert drawn(0.0) == set()


def test_a_canary_is_a_move_and_falls_back_to_what_was_meant():
    rules = some_rules(
        aliases={"auto": AliasSettings(models=("big", "long"), canary="long", canary_share=1.0)}
    )
    found = route(RouteRequest(asked="auto"), rules, POOLS)

    assert [(each.model, each.moved) for each in found.candidates[:2]] == [
        ("long", Moved.CANARY),
        ("big", None),
    ]
    assert found.first == "big"


def test_an_alias_whose_models_are_gone_is_not_found():
    rules = some_rules(aliases={"old": AliasSettings(models=("gone",))})

    with pytest.raises(ModelNotFound):
        route(RouteRequest(asked="old"), rules, POOLS)


def test_names_are_models_and_aliases_that_the_plan_has():
    plan = PlanSettings(models=("auto", "small"))

    assert list(names(RULES, ("big", "small"), None)) == ["big", "small", "auto"]
    assert list(names(RULES, ("big", "small"), plan)) == ["small", "auto"]


def test_a_plan_that_is_gone_is_the_default_one():
    rules = some_rules(plans={"free": PlanSettings(priority=1)}, default_plan="free")

    assert rules.plan("gone") == rules.plan("free")
    assert rules.plan(None) is None


def test_the_conversation_key_is_its_name_or_else_how_it_began():
    first = Message(role="user", content="hello")
    more = (first, Message(role="assistant", content="hi"), Message(role="user", content="and?"))

    assert conversation_key("u", "", (first,)) == conversation_key("u", "", more)
    assert conversation_key("u", "", (first,)) != conversation_key("v", "", (first,))
    assert conversation_key("u", "c1", (first,)) == conversation_key("u", "c1", ())
    assert conversation_key("u", "c1", (first,)) != conversation_key("u", "c2", (first,))
    assert conversation_key("ua", "", ()) != conversation_key("u", "a", ())
    assert "hello" not in conversation_key("u", "", (first,))


def test_shares_are_spread_evenly():
    points = sorted(share_point(str(number)) for number in range(1000))

    assert all(abs(point - number / 1000) < 0.05 for number, point in enumerate(points))


@pytest.mark.parametrize("seed", range(300))
def test_every_candidate_is_one_that_the_caller_may_have(seed):
    """Of random settings and random states: entitled, reachable, able, and always the same."""
    rng = random.Random(seed)
    models = [f"m{number}" for number in range(rng.randint(1, 5))]
    pools = some_pools(
        *(
            PoolView(
                model=model,
                window=rng.choice((64, 512)),
                cost=rng.choice((0.5, 1.0, 4.0)),
                smaller=rng.choice((None, None, *models)),
                problem=rng.choice((None, None, Reason.STARTING, Reason.CIRCUIT)),
                abilities=frozenset(rng.sample(list(Ability), rng.randint(1, 4))),
            )
            for model in models
        )
    )
    aliases = {
        f"a{number}": AliasSettings(
            models=tuple(rng.sample(models, rng.randint(1, len(models)))),
            canary=rng.choice((None, *models)),
            canary_share=rng.random(),
        )
        for number in range(3)
    }
    plan = rng.choice(
        (
            None,
            PlanSettings(
                models=tuple(rng.sample([*models, *aliases], rng.randint(0, 3))),
                smaller_model=rng.random() < 0.5,
                max_cost=rng.choice((0.0, 1.0)),
            ),
        )
    )
    rules = some_rules(aliases=aliases)
    request = RouteRequest(
        asked=rng.choice([*models, *aliases, "nobody"]),
        conversation=str(seed),
        plan=plan,
        last=rng.choice((None, Stay(model=rng.choice(models)))),
        needs=frozenset(rng.sample(list(Ability), rng.randint(0, 1))),
    )
    try:
        found = route(request, rules, pools)
    except ModelNotFound:
        known = request.asked in pools or request.asked in aliases
        assert not known or not is_entitled(request.asked, plan)
        return

    assert is_entitled(request.asked, plan)
    alias = aliases.get(request.asked)
    meant = {request.asked} if alias is None else {*alias.models, alias.canary}
    reachable = set(meant)
    for _ in models:
        reachable |= {pools[each].smaller for each in reachable if each in pools}
    for each in found.candidates:
        assert each.model in (meant if not each.stands_in else reachable - {None})
        assert not each.stands_in or plan is None or plan.smaller_model
        assert request.needs <= pools[each.model].abilities
    ordered = [each.model for each in found.candidates]
    assert len(set(ordered)) == len(ordered)
    healthy = [pools[model].problem is None for model in ordered]
    assert healthy == sorted(healthy, reverse=True)
    assert found.first in meant
    assert route(request, rules, pools) == found


VISION = frozenset({Ability.VISION})
ONE_SEES = some_pools(a_pool_view("big", abilities=EVERYTHING - VISION), a_pool_view("long"))


def test_what_must_be_seen_goes_only_to_who_sees():
    found = route(RouteRequest(asked="auto", needs=VISION, wants=VISION), RULES, ONE_SEES)

    assert [each.model for each in found.candidates] == ["long"]
    assert found.first == "long"


def test_what_nobody_sees_who_was_asked_is_refused_and_it_is_said_why():
    found = route(RouteRequest(asked="big", needs=VISION), RULES, ONE_SEES)

    with pytest.raises(InvalidRequest, match="'big' can't see images"):
        choose(found, {})


def test_who_sees_what_was_shown_before_goes_first_unless_another_was_asked_by_name():
    assert order(RouteRequest(asked="auto", wants=VISION), pools=ONE_SEES) == ["long", "big"]
    assert order(RouteRequest(asked="big", wants=VISION), pools=ONE_SEES) == ["big"]


def test_conversations_that_begin_with_other_images_are_others():
    def key(file):
        image = Image(file=FileId(file), media_type="image/png", width=1, height=1)
        return conversation_key("u", "", [Message(role="user", content="", images=(image,))])

    assert key("file-a") == key("file-a") != key("file-b")

"""What is kept of verdicts: by which texts they are found again, and how many of them."""

import itertools

from antiphon.actors.moderation.remembered import Remembered, key_of
from antiphon.verdicts import (
    Action,
    Failure,
    Finding,
    NotRun,
    OnFailure,
    PolicyScope,
    Stage,
    Verdict,
)

CLEAN = Verdict(version="1")
FOUND = Verdict(version="1", findings=(Finding(rule="r", stage=Stage.INPUT, action=Action.BLOCK),))
UNSURE = Verdict(
    version="1",
    not_run=(
        NotRun(rule="r", stage=Stage.INPUT, failure=Failure.DEADLINE, on_failure=OnFailure.OPEN),
    ),
)


def key(text, *, version="1", tenant="a", plan=None, stage=Stage.INPUT):
    return key_of(version, PolicyScope(tenant=tenant, plan=plan), stage, text)


def test_versions_tenants_plans_and_stages_share_nothing():
    keys = [
        key_of(version, PolicyScope(tenant=tenant, plan=plan), stage, text)
        for version, tenant, plan, stage, text in itertools.product(
            ("1", "11"), (None, "a", "1a"), (None, "", "a"), tuple(Stage), ("", "1", "a", "\ud800")
        )
    ]

    assert len(set(keys)) == len(keys)


def test_what_was_said_of_a_text_is_said_again():
    kept = Remembered()
    kept.put(key("clean"), CLEAN)
    kept.put(key("bad"), FOUND)
    kept.put(key("of the next version"), Verdict(version="2"))

    assert kept.get(key("clean")) == CLEAN
    assert kept.get(key("bad")) == FOUND
    assert kept.get(key("of the next version")) == Verdict(version="2")
    assert kept.get(key("another")) is None


def test_a_verdict_that_is_not_whole_is_asked_for_again():
    kept = Remembered()
    kept.put(key("text"), UNSURE)

    assert kept.get(key("text")) is None


def test_what_was_not_asked_for_the_longest_goes_first():
    kept = Remembered(most=2)
    kept.put(key("a"), CLEAN)
    kept.put(key("b"), CLEAN)
    kept.get(key("a"))
    kept.put(key("c"), CLEAN)

    assert [kept.get(key(text)) is not None for text in "abc"] == [True, False, True]
    assert len(kept) == 2


def test_texts_in_which_nothing_was_found_share_one_verdict():
    kept = Remembered()
    for number in range(3):
        kept.put(key(f"{number}"), Verdict(version="1"))

    assert len({id(kept.get(key(f"{number}"))) for number in range(3)}) == 1

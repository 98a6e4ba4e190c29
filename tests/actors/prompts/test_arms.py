"""Who gets which version."""

import itertools

import pytest

from antiphon.actors.prompts.arms import arm_of
from antiphon.actors.routing.route import conversation_key
from antiphon.context_records import PromptActivation

CONVERSATIONS = [conversation_key("user_2", f"conv_{number}", ()) for number in range(200)]


def activation(name: str = "guide", **arms: float) -> PromptActivation:
    shares = {int(version.removeprefix("v")): share for version, share in arms.items()}
    return PromptActivation(name=name, number=1, arms=shares, created_ms=1)


def canaries(split: PromptActivation, version: int = 2) -> set[str]:
    return {key for key in CONVERSATIONS if arm_of(split, key) == version}


def test_a_version_alone_is_for_everybody():
    assert {arm_of(activation(v3=1.0), key) for key in CONVERSATIONS} == {3}


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_of_200_conversations_about_its_share_is_the_canarys(share):
    found = len(canaries(activation(v1=1 - share, v2=share)))

    # Three standard deviations of as many throws of a coin.
    assert abs(found - 200 * share) <= 3 * (200 * share * (1 - share)) ** 0.5


def test_a_conversation_keeps_its_version():
    assert canaries(activation(v1=0.7, v2=0.3)) == canaries(activation(v2=0.3, v1=0.7))


def test_a_canary_that_grows_keeps_the_conversations_that_it_has():
    steps = [canaries(activation(v1=1 - share, v2=share)) for share in (0.05, 0.2, 0.5, 0.8)]

    assert all(less < more for less, more in itertools.pairwise(steps))


def test_several_canaries_have_a_part_each():
    split = activation(v1=0.5, v2=0.25, v3=0.25)
    parts = [canaries(split, version) for version in (1, 2, 3)]

    assert sum(map(len, parts)) == 200
    assert all(part for part in parts)


def test_two_prompts_split_differently():
    one, other = (canaries(activation(name, v1=0.5, v2=0.5)) for name in ("guide", "tutor"))

    assert one != other


def test_an_arm_without_a_share_is_nobodys():
    assert canaries(activation(v1=1.0, v2=0.0)) == set()
    assert canaries(activation(v1=0.0, v2=0.5)) == set(CONVERSATIONS)


def test_shares_that_miss_one_by_a_rounding_error_leave_nobody_without():
    split = activation(v1=0.1 - 1e-12, v2=0.9 - 1e-12)

    assert {arm_of(split, key) for key in CONVERSATIONS} == {1, 2}

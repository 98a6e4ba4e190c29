from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.openvino.kv import BLOCK_TOKENS
from antiphon.engine.openvino.prefills import Prefills
from antiphon.ids import EngineRequest

ONE, TWO, THREE = EngineRequest(1), EngineRequest(2), EngineRequest(3)
BLOCK = list(range(BLOCK_TOKENS))


def test_prompts_share_a_step_in_order_after_the_answers():
    prefills = Prefills(100, 0)
    prefills.enter(ONE, [1] * 150)
    prefills.enter(TWO, [2] * 60)

    assert [prefills.step(10) for _ in range(4)] == [90, 90, 30, 0]


def test_a_first_token_ends_a_prompt_whatever_was_left_of_it():
    prefills = Prefills(100, 0)
    prefills.enter(ONE, [1] * 500)
    prefills.enter(TWO, [2] * 60)
    prefills.step(0)

    prefills.gave_token(ONE)

    assert prefills.step(1) == 60
    assert prefills.waiting == 1


def test_without_prompts_nothing_is_computed_and_a_full_step_has_no_room_for_any():
    prefills = Prefills(4, 0)
    assert prefills.step(3) == 0

    prefills.enter(ONE, [1] * 9)

    assert prefills.step(4) == 0
    assert prefills.step(9) == 0


def test_what_is_cached_is_not_computed_again_but_for_the_last_token():
    prefills = Prefills(1000, 100)
    for request in (ONE, TWO, THREE):
        prompt = BLOCK * 2 + [7] * (3 if request is THREE else 0)
        cached = prefills.enter(request, prompt)
        cost = prefills.step(0)
        prefills.gave_token(request)

        assert cost == {ONE: 2 * BLOCK_TOKENS, TWO: 1, THREE: 3}[request]
        assert cached == len(prompt) - cost


def test_an_answer_is_cached_with_its_prompt_and_a_half_computed_prompt_by_half():
    prefills = Prefills(BLOCK_TOKENS, 100)
    prefills.enter(ONE, BLOCK)
    prefills.step(0)
    prefills.gave_token(ONE)
    prefills.leave(ONE, BLOCK * 3)
    prefills.enter(TWO, BLOCK * 3 + [7])
    assert prefills.step(0) == 1

    prefills.enter(THREE, [9, *BLOCK, *BLOCK])
    prefills.leave(TWO, [])
    prefills.step(0)
    prefills.leave(THREE, [])

    prefills.enter(ONE, [9, *BLOCK, *BLOCK])
    assert [prefills.step(0) for _ in range(3)] == [BLOCK_TOKENS, 1, 0]


def test_what_was_used_longest_ago_is_forgotten_first():
    prefills = Prefills(1000, 2)
    for token in (1, 2, 1, 3):
        prefills.enter(ONE, [token] * BLOCK_TOKENS)
        prefills.step(0)
        prefills.leave(ONE, [])

    prefills.enter(ONE, [1] * BLOCK_TOKENS)
    prefills.enter(TWO, [2] * BLOCK_TOKENS)

    assert prefills.step(0) == 1 + BLOCK_TOKENS


PROMPTS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=100), min_size=1, max_size=8)


@given(prompts=PROMPTS, step_tokens=st.integers(8, 200), blocks=st.integers(0, 6))
def test_every_prompt_is_computed_once_and_the_memory_is_bounded(
    prompts: list[list[int]], step_tokens: int, blocks: int
):
    prefills = Prefills(step_tokens, blocks)
    for number, prompt in enumerate(prompts):
        prefills.enter(EngineRequest(number), list(prompt))
    computed = 0
    while part := prefills.step(2):
        assert part <= step_tokens - 2
        computed += part
    for number, prompt in enumerate(prompts):
        prefills.gave_token(EngineRequest(number))
        prefills.leave(EngineRequest(number), prompt)

    assert computed <= sum(map(len, prompts))
    assert computed == sum(map(len, prompts)) or blocks
    assert prefills.waiting == 0
    assert len(prefills._cache) <= blocks
    assert prefills._known == {}

from antiphon.engine_trt.prefixes import SharedPrefixes

SIZE = 4
SYSTEM = list(range(100, 110))
"""Two whole blocks and a half."""


def question(number: int) -> list[int]:
    return [number * 50 + place for place in range(9)]


def test_what_many_prompts_begin_with_is_shared_in_whole_blocks():
    prefixes = SharedPrefixes(SIZE)

    found = [prefixes.shared_tokens(SYSTEM + question(number), None) for number in range(5)]

    assert found == [0, 0, 8, 8, 8]


def test_a_conversation_that_grows_is_not_shared():
    prefixes = SharedPrefixes(SIZE)
    prompt = list(SYSTEM)

    for number in range(20):
        prompt += question(number)
        assert prefixes.shared_tokens(prompt, None) == 0


def test_the_same_prompt_again_is_not_shared():
    prefixes = SharedPrefixes(SIZE)

    assert {prefixes.shared_tokens(SYSTEM + question(1), None) for _ in range(9)} == {0}


def test_prompts_that_have_nothing_in_common_share_nothing():
    prefixes = SharedPrefixes(SIZE)

    assert {prefixes.shared_tokens(question(number), None) for number in range(9)} == {0}


def test_tenants_share_nothing():
    prefixes = SharedPrefixes(SIZE)

    for number in range(9):
        assert prefixes.shared_tokens(SYSTEM + question(number), f"tenant {number}") == 0


def test_a_short_prompt_has_no_whole_block():
    prefixes = SharedPrefixes(SIZE)

    assert {prefixes.shared_tokens([1, 2, 3], None) for _ in range(5)} == {0}


def test_memory_is_bounded_and_the_latest_used_is_kept():
    prefixes = SharedPrefixes(SIZE)
    for number in range(30_000):
        prefixes.shared_tokens(SYSTEM + question(number), None)

    assert len(prefixes._continuations) <= 8_192
    assert prefixes.shared_tokens(SYSTEM + question(40_000), None) == 8

"""What of a prompt an engine should still have in its cache."""

from antiphon.actors.scheduling.prefixes import PrefixMemory


def memory(blocks: int = 100) -> PrefixMemory:
    return PrefixMemory(blocks=blocks, block_size=4)


def tokens(start: int, count: int) -> list[int]:
    return list(range(start, start + count))


def test_nothing_is_known_of_a_prompt_never_seen():
    assert memory().cached(tokens(0, 12)) == 0


def test_whole_blocks_from_the_start_are_known():
    known = memory()
    known.remember([*tokens(0, 10), 77])

    assert known.cached([*tokens(0, 10), 88, 89]) == 8
    assert known.cached([99, *tokens(1, 9)]) == 0


def test_the_last_token_is_always_computed():
    known = memory()
    known.remember(tokens(0, 8))

    assert known.cached(tokens(0, 8)) == 7
    assert known.cached([]) == 0


def test_a_conversation_that_goes_on_has_its_answer_too():
    known = memory()
    known.remember(tokens(0, 10), answer_tokens=7)

    assert known.cached([*tokens(0, 10), *tokens(500, 7), *tokens(900, 5)]) == 17


def test_an_answer_to_another_question_is_not_its_own():
    known = memory()
    known.remember(tokens(0, 10), answer_tokens=7)

    assert known.cached([*tokens(0, 9), 55, *tokens(500, 12)]) == 8


def test_of_two_answers_to_the_same_question_the_last_one_goes_on():
    known = memory()
    known.remember(tokens(0, 10), answer_tokens=30)
    known.remember(tokens(0, 10), answer_tokens=7)

    assert known.cached([*tokens(0, 10), *tokens(500, 40)]) == 17


def test_tenants_are_strangers():
    known = memory()
    known.remember(tokens(0, 8), "one")

    assert known.cached(tokens(0, 10), "two") == 0
    assert known.cached(tokens(0, 10), "one") == 8


def test_what_was_used_last_is_kept_and_its_beginning_longest():
    known = memory(blocks=3)
    known.remember(tokens(0, 8))
    known.remember(tokens(100, 8))

    assert known.cached(tokens(100, 9)) == 8
    assert known.cached(tokens(0, 9)) == 4


def test_another_host_has_nothing():
    known = memory()
    known.remember(tokens(0, 8))

    known.resize(blocks=10, block_size=4)

    assert known.cached(tokens(0, 9)) == 0

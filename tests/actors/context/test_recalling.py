"""Which memories are in front."""

from antiphon.actors.context.recalling import ranks

FACTS = ["My sister is called Ada.", "I work as a baker.", "My cat eats fish.", "I am 41."]


def in_front(*said: str) -> list[int]:
    """The memories, the first one first."""
    places = ranks(FACTS, said)
    return sorted(range(len(FACTS)), key=lambda memory: places[memory])


def test_without_a_word_of_them_the_latest_comes_first():
    assert in_front() == [3, 2, 1, 0]


def test_what_was_spoken_of_last_comes_first():
    assert in_front("what does Ada do", "and a baker?")[:2] == [1, 0]


def test_what_is_spoken_of_most_comes_first():
    assert in_front("does my sister Ada feed a baker?")[:2] == [0, 1]


def test_the_order_changes_only_when_something_else_is_spoken_of():
    before = in_front("my cat", "the sister")

    assert in_front("my cat", "the sister", "and so on", "what else?") == before


def test_words_of_every_memory_say_nothing():
    assert in_front("my my my") == in_front()


def test_numbers_are_words():
    assert in_front("a baker", "who is 41?")[0] == 3


def test_nothing_remembered_is_no_order():
    assert ranks([], ["hello"]) == ()

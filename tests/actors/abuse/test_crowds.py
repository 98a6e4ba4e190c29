"""How many came, of whom there may be any number."""

from antiphon.actors.abuse.crowds import Crowds

HOUR_S = 3_600.0


def test_only_who_is_new_is_news():
    crowds: Crowds[str] = Crowds()

    met = [crowds.meet("here", user, 0.0, size=10) for user in ("a", "b", "a", "c", "b")]

    assert met == [1, 2, 0, 3, 0]


def test_who_was_not_here_for_an_hour_is_new_again_and_counts_no_more():
    crowds: Crowds[str] = Crowds()
    crowds.meet("here", "a", 0.0, size=10)
    crowds.meet("here", "b", HOUR_S / 2, size=10)

    assert crowds.meet("here", "a", HOUR_S, size=10) == 2
    assert crowds.meet("here", "c", 2 * HOUR_S, size=10) == 1


def test_keys_and_members_are_bounded():
    crowds: Crowds[int] = Crowds()
    for key in range(1_000):
        crowds.meet(key, "a", 0.0, size=10)
    met = [crowds.meet(5_000, str(member), 1.0, size=10) for member in range(1_000)]

    assert len(crowds) == 10
    assert max(met) == 64

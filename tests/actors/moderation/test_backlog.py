import trio

from antiphon.actors.moderation.backlog import BATCH_CHARACTERS, BATCH_TEXTS, Backlog
from antiphon.actors.moderation.messages import ScoreTexts
from antiphon.actors.reply import Reply


def wanted(*texts: str, deadline: float = 10.0) -> ScoreTexts:
    return ScoreTexts(texts=texts, reply=Reply(deadline=deadline))


def a_backlog(limit: int = 1000) -> Backlog:
    return Backlog(lambda: limit)


def test_what_came_together_is_taken_together_in_order():
    backlog = a_backlog()
    asked = [wanted("a"), wanted("b", "c"), wanted("d")]

    assert all(map(backlog.add, asked))

    assert len(backlog) == 4
    assert backlog.take(0.0) == tuple(asked)
    assert backlog.take(0.0) == ()


def test_a_batch_ends_where_it_would_get_too_large():
    backlog = a_backlog()
    many = [wanted(*["x"] * (BATCH_TEXTS // 2)) for _ in range(3)]
    long = wanted("y" * BATCH_CHARACTERS)
    for each in (*many, long):
        backlog.add(each)

    assert backlog.take(0.0) == (many[0], many[1])
    assert backlog.take(0.0) == (many[2],)
    assert backlog.take(0.0) == (long,)


def test_a_request_that_is_too_large_for_any_batch_goes_alone():
    backlog = a_backlog()
    large = wanted(*["x"] * (BATCH_TEXTS + 1))
    backlog.add(large)
    backlog.add(wanted("y"))

    assert backlog.take(0.0) == (large,)


def test_more_texts_than_may_wait_are_refused():
    backlog = a_backlog(limit=3)

    assert backlog.add(wanted("a", "b"))
    assert not backlog.add(wanted("c", "d"))
    assert backlog.add(wanted("e"))


def test_a_request_of_more_texts_than_may_wait_is_let_in_alone():
    backlog = a_backlog(limit=2)

    assert backlog.add(wanted("a", "b", "c"))
    assert not backlog.add(wanted("d"))


def test_who_left_frees_the_place():
    backlog = a_backlog(limit=1)
    left = wanted("a")
    backlog.add(left)
    assert not backlog.add(wanted("b"))

    left.reply.close()

    assert len(backlog) == 0
    stays = wanted("c")
    assert backlog.add(stays)
    assert backlog.take(0.0) == (stays,)


def test_those_who_left_do_not_pile_up_while_nobody_judges():
    backlog = a_backlog(limit=4)
    for _ in range(100):
        each = wanted("a")
        assert backlog.add(each)
        each.reply.close()

    assert len(backlog._waiting) <= 5


def test_what_is_too_late_is_not_handed_out():
    backlog = a_backlog()
    backlog.add(wanted("late", deadline=1.0))
    in_time = wanted("in time", deadline=3.0)
    backlog.add(in_time)

    assert backlog.take(2.0) == (in_time,)


async def test_the_limit_is_asked_for_each_time():
    await trio.lowlevel.checkpoint()
    limits = [1]
    backlog = Backlog(lambda: limits[-1])
    backlog.add(wanted("a"))
    assert not backlog.add(wanted("b"))

    limits.append(2)

    assert backlog.add(wanted("b"))

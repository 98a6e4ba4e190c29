"""What an engine is doing, by what went in and what came out."""

from hypothesis import given
from hypothesis import strategies as st

from antiphon.actors.scheduling.mirror import EngineMirror
from antiphon.ids import EngineRequest
from antiphon.workload import WorkloadClass

CHAT, LONG = WorkloadClass.INTERACTIVE, WorkloadClass.LONG
ONE, TWO = EngineRequest(1), EngineRequest(2)


def mirror() -> EngineMirror:
    return EngineMirror(step_tokens=100)


def test_a_prompt_is_read_in_chunks():
    engine = mirror()
    engine.begun(ONE, CHAT, 250, 10)

    read = [engine.stepped(())[0].prefill, engine.stepped(())[0].prefill]
    last, firsts = engine.stepped([ONE])

    assert [*read, last.prefill] == [100, 100, 50]
    assert firsts == [ONE]
    assert engine.decoding == 1
    assert engine.context == 250


def test_what_decodes_goes_before_what_is_read():
    engine = mirror()
    engine.begun(ONE, CHAT, 10, 10)
    engine.stepped([ONE])
    engine.begun(TWO, CHAT, 500, 10)
    engine.stepped([ONE])  # it came while this step ran

    work, _ = engine.stepped([ONE])

    assert (work.decoding, work.prefill) == (1, 99)


def test_what_comes_while_a_step_runs_is_not_in_it():
    engine = mirror()
    engine.begun(ONE, CHAT, 30, 10)
    engine.begun(TWO, CHAT, 30, 10)

    first, _ = engine.stepped([ONE])
    second, _ = engine.stepped([ONE, TWO])

    assert (first.prefill, second.prefill) == (30, 30)


def test_what_the_cache_has_is_not_read_again():
    engine = mirror()
    engine.begun(ONE, CHAT, 90, 10, cached_tokens=64)

    work, _ = engine.stepped([ONE])

    assert work.prefill == 26
    assert work.attended == 26 * (64 + 13)


def test_a_first_token_puts_the_mirror_right():
    engine = mirror()
    engine.begun(ONE, CHAT, 500, 10)  # all of it was in the cache, and nobody knew

    engine.stepped([ONE])

    assert engine.backlog() == (0, 0)
    assert engine.decoding == 1


def test_a_first_token_that_is_late_is_still_expected():
    engine = mirror()
    engine.begun(ONE, CHAT, 50, 10)

    engine.stepped(())

    assert engine.backlog()[0] == 1
    assert engine.prefilling == 1


def test_answers_grow_by_a_token_a_step():
    engine = mirror()
    engine.begun(ONE, CHAT, 50, 10)
    for _ in range(4):
        engine.stepped([ONE])

    run = engine.inside[ONE]

    assert engine.gained(run) == 4
    assert engine.context == 50 + 3


def test_an_answer_that_goes_on_has_what_it_had():
    engine = mirror()
    engine.begun(ONE, CHAT, 50, 100, cached_tokens=50, tokens=20)
    before = engine.gained(engine.inside[ONE])
    engine.stepped([ONE])

    assert (before, engine.gained(engine.inside[ONE])) == (20, 21)


def test_what_has_ended_leaves_nothing_behind():
    engine = mirror()
    engine.begun(ONE, CHAT, 50, 10)
    engine.begun(TWO, CHAT, 70, 10)
    for _ in range(3):
        engine.stepped([ONE, TWO])

    engine.ended(ONE)
    engine.ended(TWO)

    assert not engine.busy
    assert (engine.decoding, engine.context, engine.backlog()) == (0, 0, (0, 0))


def test_to_end_what_never_began_is_nothing():
    engine = mirror()

    assert engine.ended(ONE) is None


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(("begun", "ended", "stepped")),
        st.integers(1, 5),
        st.integers(-1, 400),
        st.integers(0, 500),
    ),
    max_size=60,
)


@given(EVENTS)
def test_whatever_happens_it_counts_what_is_there(events):
    engine = mirror()

    for kind, number, tokens, cached in events:
        request = EngineRequest(number)
        match kind:
            case "begun":
                engine.begun(request, CHAT, tokens, 100, cached_tokens=cached)
            case "ended":
                engine.ended(request)
            case "stepped":
                engine.stepped([request])

        assert engine.decoding + engine.prefilling == len(engine.inside)
        assert engine.backlog()[0] >= engine.prefilling
        assert 0 <= engine.current().prefill <= 100

    for number in range(6):
        engine.ended(EngineRequest(number))
    assert (engine.decoding, engine.context, engine.backlog()) == (0, 0, (0, 0))


def test_patient_prompts_are_read_while_nobody_elses_is():
    engine = mirror()
    engine.lets_pass = True
    engine.begun(ONE, LONG, 250, 10, patient=True)
    alone, _ = engine.stepped(())
    engine.begun(TWO, CHAT, 130, 10)  # while the second step runs
    before = engine.backlog(passing=True)[0]
    engine.stepped(())
    beside = [engine.stepped(())[0].prefill, engine.stepped([TWO])[0].prefill]
    after, _ = engine.stepped([ONE])

    assert alone.prefill == 100
    assert before == 130
    assert beside == [100, 30]
    assert after.prefill == 50


def test_an_engine_that_lets_none_pass_reads_prompts_as_they_came():
    engine = mirror()
    engine.begun(ONE, LONG, 250, 10, patient=True)
    engine.stepped(())
    engine.begun(TWO, CHAT, 130, 10)

    assert engine.backlog(passing=True)[0] == 150 + 130

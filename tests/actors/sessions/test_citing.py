"""Citations: marks in what a model generates become events, and no client sees one."""

import random
from collections.abc import Iterable

import pytest

from antiphon.actors.sessions.citing import Citing
from antiphon.events import TokenLogprob
from antiphon.ids import FileId
from antiphon.sources import Source
from antiphon.tools import CallStarted
from antiphon.turn_events import ChoiceEnded, Cited, Delta, FinishReason

SOURCES = (
    Source(file=FileId("file-a"), filename="a.pdf"),
    Source(file=FileId("file-b"), filename="b.txt"),
)
END = ChoiceEnded(choice=0, finish_reason=FinishReason.STOP)


def read(pieces: Iterable[str], sources: tuple[Source, ...] = SOURCES) -> tuple[str, list[object]]:
    """The text that leaves, and what is cited where."""
    citing = Citing(sources, choices=1)
    out = [each for piece in pieces for each in citing.take(Delta(choice=0, text=piece))]
    out += citing.take(END)
    assert out[-1] == END
    text, cited = "", []
    for event in out[:-1]:
        match event:
            case Delta(text=said):
                text += said
            case Cited(at=at, file=file):
                assert at == len(text), "a citation stands where its text ends"
                cited.append((at, file))
            case _:
                raise AssertionError(event)
    return text, cited


def test_a_mark_becomes_a_citation_and_leaves_no_trace():
    text, cited = read(["The sky is blue【1】. The sea too【2】."])

    assert text == "The sky is blue. The sea too."
    assert cited == [(15, "file-a"), (28, "file-b")]


def test_however_a_text_is_cut_what_leaves_is_the_same():
    whole = (
        "It costs 5 € 【1】, or less 【2, 1†a.pdf】. 【note】 a[1]【9】 and 【 open 【1】【2】 end"
    )
    expected = read([whole])
    dice = random.Random(1)

    for _ in range(300):
        cuts = sorted(dice.sample(range(1, len(whole)), dice.randint(1, 20)))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        assert read(pieces) == expected
    assert read(list(whole)) == expected


def test_the_space_before_a_mark_goes_with_it_unless_a_word_follows():
    assert read(["blue 【1】."])[0] == "blue."
    assert read(["blue 【1】 and"])[0] == "blue and"
    assert read(["blue 【1】and"])[0] == "blue and"
    assert read(["blue 【1】【2】 and"])[0] == "blue and"
    assert read(["blue 【1】 【2】 and"])[0] == "blue and"
    assert read(["blue ", "【", "note】"])[0] == "blue 【note】"


def test_several_sources_may_be_in_one_mark():
    assert read(["x【1, 2】"]) == ("x", [(1, "file-a"), (1, "file-b")])
    assert read(["x【2†source】"]) == ("x", [(1, "file-b")])


def test_a_mark_of_nothing_is_taken_out_all_the_same():
    assert read(["x【7】y"]) == ("xy", [])


def test_brackets_that_are_no_mark_are_text():
    assert read(["【注意】 and 【"]) == ("【注意】 and 【", [])
    assert read(["【1\n2】"]) == ("【1\n2】", [])


def test_a_mark_that_is_cut_off_at_the_end_is_no_text():
    assert read(["blue【1"]) == ("blue", [])
    assert read(["blue【1†some fi"]) == ("blue", [])


def test_what_never_becomes_a_mark_is_held_for_a_short_while_only():
    citing = Citing(SOURCES, choices=1)

    out = citing.take(Delta(choice=0, text="【1†" + "x" * 200))

    assert sum(len(each.text) for each in out if isinstance(each, Delta)) == 203


def test_without_sources_nothing_is_looked_at():
    text, cited = read(["blue【1】"], sources=())

    assert (text, cited) == ("blue【1】", [])


def test_each_choice_is_read_by_itself():
    citing = Citing(SOURCES, choices=2)

    first = citing.take(Delta(choice=0, text="a【"))
    other = citing.take(Delta(choice=1, text="1】b"))

    assert [each.text for each in first if isinstance(each, Delta)] == ["a"]
    assert [each.text for each in other if isinstance(each, Delta)] == ["1】b"]


def test_what_is_held_leaves_before_a_call_begins():
    citing = Citing(SOURCES, choices=1)
    citing.take(Delta(choice=0, text="see 【"))
    started = CallStarted(choice=0, call=0, id="c", name="f")

    out = citing.take(started)

    assert [each.text for each in out if isinstance(each, Delta)] == [" 【"]
    assert out[-1] == started


@pytest.mark.parametrize("pieces", [["blue", " 【", "1", "】", "."], ["blue 【1】."]])
def test_log_probabilities_of_a_mark_never_leave(pieces: list[str]):
    citing = Citing(SOURCES, choices=1)
    out = []
    for piece in pieces:
        tokens = tuple(
            TokenLogprob(text=each, data=each.encode(), logprob=-1.0)
            for each in ([piece] if len(pieces) > 1 else ["blue", " 【", "1", "】", "."])
        )
        out += citing.take(Delta(choice=0, text=piece, logprobs=tokens))
    out += citing.take(END)

    told = [entry.text for each in out if isinstance(each, Delta) for entry in each.logprobs]
    assert told == ["blue", "."]

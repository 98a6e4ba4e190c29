import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.stops import StopFilter

SOME_TEXT = st.text(alphabet="abx", max_size=40)
SOME_STOPS = st.lists(st.text(alphabet="abx", min_size=1, max_size=5), max_size=5)


def filtered(pieces: list[str], stops: list[str]) -> tuple[str, bool]:
    stop_filter = StopFilter(stops)
    text = "".join(map(stop_filter.push, pieces)) + stop_filter.flush()
    return text, stop_filter.hit


def naive(text: str, stops: list[str]) -> tuple[str, bool]:
    """Read on until some stop string is complete; cut where the longest complete one begins."""
    for end in range(len(text) + 1):
        starts = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if starts:
            return text[: min(starts)], True
    return text, False


@given(pieces=st.lists(SOME_TEXT, max_size=8), stops=SOME_STOPS)
def test_stop_strings_cut_where_reading_the_whole_text_would(pieces: list[str], stops: list[str]):
    assert filtered(pieces, stops) == naive("".join(pieces), stops)


@given(text=SOME_TEXT, stop=st.text(alphabet="abx", min_size=1, max_size=4))
def test_one_stop_string_cuts_at_its_first_place(text: str, stop: str):
    cut = text.find(stop)

    assert filtered(list(text), [stop]) == (text if cut == -1 else text[:cut], cut != -1)


@given(pieces=st.lists(SOME_TEXT, max_size=8), stops=SOME_STOPS)
def test_only_what_may_begin_a_stop_string_is_held_back(pieces: list[str], stops: list[str]):
    stop_filter = StopFilter(stops)
    seen = left = ""
    for piece in pieces:
        seen += piece
        left += stop_filter.push(piece)
        if stop_filter.hit:
            break
        held = seen[len(left) :]
        assert seen.startswith(left)
        assert held == "" or any(stop.startswith(held) for stop in stops)


@pytest.mark.parametrize(
    ("pieces", "stops", "left"),
    [
        (["one\n", "\ntwo"], ["\n\n"], "one"),
        (["a", "b", "c", "d"], ["abcd", "bc"], "a"),
        (["abcd"], ["abcd", "bc"], "a"),
        (["xab"], ["ab", "xab"], ""),
        (["ends wit"], ["with"], "ends wit"),
        (["nothing"], [""], "nothing"),
    ],
)
def test_stop_string_examples(pieces: list[str], stops: list[str], left: str):
    assert filtered(pieces, stops)[0] == left


def test_nothing_leaves_after_a_hit():
    stop_filter = StopFilter(["."])

    assert stop_filter.push("a.b") == "a"
    assert stop_filter.push("c") == ""
    assert stop_filter.flush() == ""

"""What was found by words and what was found by meaning, in one order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.document_records import FoundChunk
from antiphon.embedding import Neighbour
from antiphon.ids import FileId
from antiphon.ranking import HybridRanker, Ranked, averaged
from antiphon.reading_files import TextChunk

RANKER = HybridRanker()


def text(file: str, number: int, score: float) -> FoundChunk:
    chunk = TextChunk(number=number, text="…", start=0, end=1)
    return FoundChunk(file=FileId(file), filename=file, chunk=chunk, score=score)


def near(file: str, number: int, similarity: float) -> Neighbour:
    return Neighbour(file=FileId(file), number=number, similarity=similarity)


def order(texts, neighbours, share=None) -> list[tuple[str, int]]:
    ranked = RANKER.ranked(texts, neighbours, text_share=share)
    return [(each.file, each.number) for each in ranked]


def test_what_both_kinds_find_comes_before_what_one_of_them_finds():
    texts = [text("a", 0, 0.8), text("a", 1, 0.7)]
    neighbours = [near("a", 2, 0.6), near("a", 1, 0.5), near("a", 3, 0.1)]

    assert order(texts, neighbours)[0] == ("a", 1)


def test_the_share_decides_which_kind_counts():
    texts, neighbours = [text("a", 0, 0.9)], [near("b", 0, 0.9), near("a", 0, 0.1)]

    assert order(texts, neighbours, 1.0)[0] == ("a", 0)
    assert order(texts, neighbours, 0.0)[0] == ("b", 0)


def test_words_count_alone_where_nobody_could_search_by_meaning():
    (ranked,) = RANKER.ranked([text("a", 0, 0.9)], [], text_share=None)

    assert ranked.score == pytest.approx(0.9)


def test_a_search_that_finds_nothing_like_it_scores_low():
    (ranked,) = RANKER.ranked([], [near("a", 0, 0.1)], text_share=None)

    assert ranked.score < 0.1


def test_equal_scores_have_an_order():
    texts = [text("b", 1, 0.5), text("a", 2, 0.5), text("a", 1, 0.5)]

    assert order(texts, []) == [("a", 1), ("a", 2), ("b", 1)]


scores = st.floats(min_value=-1, max_value=3)
places = st.tuples(st.sampled_from("ab"), st.integers(0, 5))


@given(
    st.dictionaries(places, scores.map(abs)),
    st.dictionaries(places, scores),
    st.one_of(st.none(), st.floats(0, 1)),
)
def test_each_chunk_is_there_once_and_scores_are_from_0_to_1_and_fall(words, meaning, share):
    ranked = RANKER.ranked(
        [text(*place, score) for place, score in words.items()],
        [near(*place, score) for place, score in meaning.items()],
        text_share=share,
    )

    assert {(each.file, each.number) for each in ranked} == words.keys() | meaning.keys()
    assert len(ranked) == len(words.keys() | meaning.keys())
    each = [one.score for one in ranked]
    assert each == sorted(each, reverse=True)
    assert all(0 <= score <= 1 for score in each)


# ── the words of a question ──────────────────────────────────────────────────────────────────────


def test_words_that_every_text_has_are_not_looked_for():
    assert RANKER.terms("What is the capital of France?") == ("capital", "france")


def test_a_question_of_such_words_alone_is_looked_for_all_the_same():
    assert RANKER.terms("Who are you?") == ("who", "are", "you")


def test_each_word_once_without_its_clitic():
    assert RANKER.terms("The president's plan, the President\u2019s PLAN") == ("president", "plan")


def test_a_long_question_has_only_so_many():
    assert len(RANKER.terms(" ".join(f"word{number}" for number in range(500)))) == 24


@pytest.mark.parametrize("hostile", ['"a" OR (b', "NEAR(x, 3)", "col:*", "'; DROP TABLE x; --"])
def test_what_would_be_syntax_elsewhere_are_words(hostile: str):
    assert all(term.replace("'", "").isalnum() for term in RANKER.terms(hostile))


def test_a_question_without_words_has_none():
    assert RANKER.terms("?!… 🙂") == ()


def test_words_of_other_scripts_are_kept():
    assert "東京タワー" in RANKER.terms("東京タワー は どこ")


def test_of_a_question_in_several_ways_the_mean_counts():
    one = [
        Ranked(file=FileId("a"), number=0, score=0.75),
        Ranked(file=FileId("b"), number=1, score=0.5),
    ]
    other = [Ranked(file=FileId("b"), number=1, score=0.5)]

    assert averaged([one]) == one
    assert averaged([one, other]) == [
        Ranked(file=FileId("b"), number=1, score=0.5),
        Ranked(file=FileId("a"), number=0, score=0.375),
    ]

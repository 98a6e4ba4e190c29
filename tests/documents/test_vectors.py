"""Texts as vectors, by the real model."""

import numpy as np
import pytest

from antiphon.documents.vectors import WINDOW, SentenceVectors

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def model() -> SentenceVectors:
    return SentenceVectors()


def like(one, other) -> float:
    return float(one.astype(np.float32) @ other.astype(np.float32))


def test_a_short_text_is_the_same_as_question_and_as_passage(model: SentenceVectors):
    text = "What is the capital of France?"

    assert like(model.question(text), model.passage(text)) == pytest.approx(1.0, abs=1e-3)


def test_of_a_long_question_both_ends_count(model: SentenceVectors):
    asked, filler = "Who discovered penicillin?", "The weather was fine that day. " * 200
    alone = model.question(asked)

    for text in (asked + filler, filler + asked):
        assert like(model.question(text), alone) > like(model.question(filler), alone)


def test_of_a_long_passage_every_part_counts(model: SentenceVectors):
    sentence = "Alexander Fleming discovered penicillin in 1928. "
    filler = "The weather was fine that day, and everybody went outside. "
    long = filler * 60 + sentence * 20 + filler * 60
    asked = model.question("Who discovered penicillin?")

    assert like(model.passage(long), asked) > like(model.passage(filler * 140), asked)
    assert np.linalg.norm(model.passage(long).astype(np.float32)) == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("text", ["", " \n", "🙂", "a" * 5000, "word " * (3 * WINDOW + 1)])
def test_every_text_has_a_vector(model: SentenceVectors, text: str):
    assert np.isfinite(model.passage(text)).all()
    assert np.isfinite(model.question(text)).all()

"""The words' head."""

import numpy as np
import pytest

from antiphon.classifier.words import FARTHEST, WordHead

HEAD = WordHead(
    places={"bad": 0, "worse": 1, "fine": 2},
    rarity=np.array([1.0, 2.0, 1.0], dtype=np.float32),
    weights=np.array([1.0, 1.4, -1.2], dtype=np.float32),
    bias=-0.25,
)


def test_a_text_of_no_known_word_gets_the_bias():
    assert HEAD.logits(["", "nothing known", "b a d"]).tolist() == [-0.25] * 3


def test_words_count_by_how_often_and_how_rare_they_are():
    once, twice, mixed = HEAD.logits(["bad", "bad, bad!", "worse than bad"])

    assert once == twice == pytest.approx(0.75)
    assert mixed == pytest.approx((2 * 1.4 + 1.0) / 5**0.5 - 0.25)


def test_a_good_word_takes_away():
    bad, both = HEAD.logits(["bad", "bad fine"])

    assert both < bad


def test_no_text_goes_farther_than_the_limit():
    loud = WordHead(
        places={"bad": 0},
        rarity=np.ones(1, dtype=np.float32),
        weights=np.array([40.0], dtype=np.float32),
        bias=0.0,
    )

    assert loud.logits(["bad"]).tolist() == [float(FARTHEST)]

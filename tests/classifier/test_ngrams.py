"""Hashed n-grams."""

import numpy as np
import pytest

from antiphon.classifier.linear import NgramHeads
from antiphon.classifier.ngrams import BUCKETS, bags

FIXED = [
    33181,
    71773,
    59749,
    54818,
    3758,
    107012,
    80762,
    106857,
    60556,
    104569,
    118805,
    94933,
    14767,
    7614,
    76931,
    11201,
    16667,
    96212,
    23265,
    120269,
    75917,
]

TEXTS = ["a fine day", "", "x", "tea , or coffee ?", "\ud83d\ude00 naïve 日本語", "a fine day"]


def test_a_text_has_the_same_n_grams_alone_and_among_others():
    together = bags(TEXTS)

    for at, text in enumerate(TEXTS):
        alone = bags([text])
        ours = together.buckets[together.starts[at] : together.starts[at + 1]]
        assert sorted(ours) == sorted(alone.buckets)


def test_buckets_are_the_same_in_every_process_and_on_every_machine():
    found = bags(["a day"])

    assert found.buckets.tolist() == FIXED
    assert found.buckets.max() < BUCKETS


def test_no_n_gram_crosses_from_one_text_into_the_next():
    assert len(bags(["ab", "cd"]).buckets) == 2 * len(bags(["ab"]).buckets)


def test_a_word_counts_wherever_it_stands():
    first, second = bags(["zebra"]), bags(["oh my zebra"])

    assert set(first.buckets.tolist()) & set(second.buckets.tolist())


def heads(rarity: int = 10) -> NgramHeads:
    random = np.random.default_rng(0)
    return NgramHeads(
        weights=random.integers(-100, 100, (BUCKETS, 3), dtype=np.int8),
        scale=np.array([0.01, 0.1, 1.0], dtype=np.float32),
        rarity=np.full(BUCKETS, rarity, dtype=np.uint8),
        bias=np.array([1.0, 2.0, 3.0], dtype=np.float32),
    )


def test_logits_of_a_batch_are_those_of_each_text():
    together = heads().logits(bags(TEXTS))

    for at, text in enumerate(TEXTS):
        assert together[at] == pytest.approx(heads().logits(bags([text]))[0], rel=1e-5)


def test_logits_are_the_weighted_sum_over_the_texts_length():
    found = bags(["tea"])
    sums = heads().weights[found.buckets].astype(np.int64).sum(axis=0)

    expected = sums * heads().scale / np.sqrt(len(found.buckets) * 100) + heads().bias

    assert heads().logits(found)[0] == pytest.approx(expected, rel=1e-5)


def test_a_text_of_unknown_n_grams_gets_the_bias_and_no_division_by_zero():
    blank = heads(rarity=0)
    quiet = NgramHeads(
        weights=np.zeros_like(blank.weights),
        scale=blank.scale,
        rarity=blank.rarity,
        bias=blank.bias,
    )

    assert quiet.logits(bags(["", "tea"])).tolist() == [[1.0, 2.0, 3.0]] * 2

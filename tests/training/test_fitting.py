"""How the classifier's heads are fitted, on little made-up sets."""

import numpy as np
import pytest

from antiphon.classifier.ngrams import bags
from training.fitting import fit_ngrams, fit_platt, rarities, taken
from training.kernels import fit_kernel, fit_projection
from training.lbfgs import minimise

UNKNOWN = np.nan


def test_lbfgs_finds_the_lowest_place_of_a_bowl():
    scale = np.array([1.0, 10.0, 100.0])
    goal = np.array([3.0, -1.0, 0.5])

    found = minimise(
        lambda at: (
            float(scale @ (at - goal) ** 2),
            2 * scale * (at - goal),
        ),
        np.zeros(3),
        iterations=50,
        tolerance=1e-9,
    )

    assert found == pytest.approx(goal, abs=1e-5)


def ring(count: int = 300):
    """What no straight line can tell apart: a cloud inside a ring."""
    random = np.random.default_rng(1)
    angle, inside = random.random(count) * 2 * np.pi, np.arange(count) % 2
    radius = np.where(inside, 0.5, 3.0) + random.random(count) * 0.3
    vectors = np.stack([np.cos(angle) * radius, np.sin(angle) * radius], axis=1)
    more = np.repeat(vectors, 3, axis=1) + random.standard_normal((count, 6)) * 0.05
    labels = inside.astype(np.float32)[:, None]
    return np.hstack([vectors, more]).astype(np.float32), labels, np.ones(count, np.float32)


def test_kernel_heads_tell_a_cloud_from_the_ring_around_it():
    vectors, labels, weights = ring()

    found = fit_kernel(vectors[:200], labels[:200], weights[:200], numbers=8, narrow=4.0)

    assert ((found.logits(vectors[200:]) > 0) == (labels[200:] > 0)).mean() > 0.97


def test_kernel_heads_are_the_same_every_time():
    vectors, labels, weights = ring(120)

    first, second = (fit_kernel(vectors, labels, weights, numbers=4) for _ in range(2))

    assert (first.known == second.known).all()
    assert (first.shares == second.shares).all()


def test_an_unknown_label_is_no_evidence_either_way():
    vectors, labels, weights = ring(160)
    hidden = labels.copy()
    hidden[::4] = UNKNOWN

    found = fit_kernel(vectors, hidden, weights, numbers=8, narrow=4.0).logits(vectors[::4])

    assert ((found > 0) == (labels[::4] > 0)).mean() > 0.95


def test_the_projection_keeps_distances():
    vectors, _, _ = ring(150)
    scaled = (vectors - vectors.mean(axis=0)) / (vectors.std(axis=0) + 1e-4)

    short = fit_projection(vectors, numbers=8).shortened(vectors)

    whole = np.linalg.norm(scaled[0] - scaled[1:], axis=1)
    assert np.linalg.norm(short[0] - short[1:], axis=1) == pytest.approx(whole, rel=0.05, abs=0.05)


TEXTS = ["a red kite", "the red barn", "red wine", "a blue kite", "the blue barn", "blue wine"] * 4
LABELS = np.array([[1.0], [1.0], [1.0], [0.0], [0.0], [0.0]] * 4, dtype=np.float32)


def test_n_gram_heads_learn_the_word_that_matters():
    found = fit_ngrams(bags(TEXTS), LABELS, np.ones(len(TEXTS), np.float32))

    said = found.logits(bags(["my red hat", "my blue hat"]))[:, 0]

    assert said[0] > 0 > said[1]


def test_an_n_gram_of_one_text_only_tells_nothing():
    found = rarities(bags(["tea", "tea", "coffee"]))

    assert (found[bags(["tea"]).buckets] > 0).all()
    assert (found[bags(["coffee"]).buckets] == 0).sum() >= 5


def test_some_texts_are_taken_with_their_own_n_grams():
    whole = bags(["tea", "coffee", "milk"])

    some = taken(whole, np.array([2, 0]))

    for at, text in enumerate(["milk", "tea"]):
        ours = some.buckets[some.starts[at] : some.starts[at + 1]]
        assert sorted(ours) == sorted(bags([text]).buckets)


def test_platt_makes_chances_of_logits():
    random = np.random.default_rng(2)
    logits = random.standard_normal(4000).astype(np.float32) * 3
    labels = (random.random(4000) < 1 / (1 + np.exp(-(0.5 * logits - 1)))).astype(np.float32)

    slope, intercept = fit_platt(logits, labels, np.ones(4000, np.float32))

    assert slope == pytest.approx(0.5, abs=0.06)
    assert intercept == pytest.approx(-1, abs=0.12)

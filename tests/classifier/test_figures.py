"""The figures, against ones worked out by hand."""

import numpy as np
import pytest

from antiphon.classifier.figures import at_threshold, auroc, auroc_interval, figures, rate


def scores(*values: float):
    return np.array(values, dtype=np.float64)


def truths(*values: int):
    return np.array(values, dtype=np.bool_)


def test_auroc_counts_the_pairs_in_the_right_order():
    # of the 2 × 3 pairs, 4 are in order, 1 is tied, 1 is not
    found = auroc(scores(0.9, 0.4, 0.8, 0.4, 0.1), truths(1, 1, 0, 0, 0))

    assert found == pytest.approx((3 + 1 + 0.5) / 6)


def test_auroc_of_a_perfect_an_inverted_and_a_constant_score():
    assert auroc(scores(0.1, 0.9), truths(0, 1)) == 1.0
    assert auroc(scores(0.9, 0.1), truths(0, 1)) == 0.0
    assert auroc(scores(0.5, 0.5, 0.5), truths(0, 1, 1)) == 0.5


def test_auroc_needs_rows_of_both_kinds():
    with pytest.raises(ValueError, match="both kinds"):
        auroc(scores(0.1, 0.2), truths(1, 1))


def test_the_interval_of_auroc_holds_its_value_and_is_the_same_every_time():
    random = np.random.default_rng(4)
    true = random.random(200) < 0.3
    score = true * 0.5 + random.random(200)

    first = auroc_interval(score, true, seed=1)

    assert first == auroc_interval(score, true, seed=1)
    assert 0.5 < first.low < first.value < first.high < 1.0
    assert 0.02 < first.high - first.low < 0.2


def test_wilsons_interval_is_the_textbooks():
    found = rate(8, 10)

    assert (found.value, found.low, found.high) == pytest.approx((0.8, 0.4902, 0.9433), abs=1e-4)
    assert rate(0, 20).low == 0.0
    assert rate(0, 20).high == pytest.approx(0.1611, abs=1e-4)
    with pytest.raises(ValueError, match="no rows"):
        rate(0, 0)


def test_a_threshold_flags_what_reaches_it():
    point = at_threshold(scores(0.9, 0.5, 0.5, 0.2, 0.1), truths(1, 1, 0, 1, 0), 0.5)

    assert point.flagged == pytest.approx(2 / 3)
    assert point.false_alarms == pytest.approx(1 / 2)
    assert point.precision == pytest.approx(2 / 3)
    assert point.f1 == pytest.approx(2 / 3)


def test_a_set_of_one_kind_has_the_figures_that_it_can_have():
    found = figures([0.9, 0.2], [True, True], threshold=0.5)

    assert found.auroc is None
    assert found.false_alarms is None
    assert found.flagged is not None
    assert found.flagged.value == 0.5


def test_the_curve_only_falls_as_the_threshold_rises():
    random = np.random.default_rng(0)
    found = figures(random.random(100), random.random(100) < 0.5, threshold=0.5)

    assert [point.threshold for point in found.curve] == pytest.approx(
        [step / 20 for step in range(1, 20)]
    )
    flagged = [point.flagged for point in found.curve]
    assert flagged == sorted(flagged, reverse=True)


def test_no_rows_or_a_truth_missing_is_refused():
    with pytest.raises(ValueError, match="needs rows"):
        figures([], [], threshold=0.5)
    with pytest.raises(ValueError, match="needs rows"):
        figures([0.1, 0.2], [True], threshold=0.5)

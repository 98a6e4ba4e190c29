"""The heads that compare a text with known ones."""

from itertools import pairwise

import numpy as np
import pytest

from antiphon.classifier.injection import CONTEXT, paired, passages
from antiphon.classifier.kernel import KernelHeads, Projection, gaussian, squared


def heads(width: float = 2.0) -> KernelHeads:
    known = np.array([[0.0, 0.0], [2.0, 0.0]], dtype=np.float32)
    return KernelHeads(
        projection=Projection(
            mean=np.array([1.0, 0.0, 0.0], dtype=np.float32),
            scale=np.array([1.0, 2.0, 1.0], dtype=np.float32),
            directions=np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], dtype=np.float32),
            step=np.ones(2, dtype=np.float32),
        ),
        known=known,
        unit=np.ones(2, dtype=np.float32),
        squares=squared(known),
        shares=np.array([[1.0], [-1.0]], dtype=np.float32),
        bias=np.array([0.25], dtype=np.float32),
        width=width,
    )


def test_likeness_falls_with_the_squared_distance():
    texts = np.array([[0.0, 0.0], [1.0, 1.0]], dtype=np.float32)

    found = gaussian(texts, texts, squared(texts), np.float32(0.5))

    assert found == pytest.approx(np.array([[1, np.exp(-1)], [np.exp(-1), 1]]), abs=1e-6)


def test_a_text_like_a_known_one_gets_its_share():
    vectors = np.array([[1.0, 0.0, 9.0], [3.0, 0.0, 9.0]], dtype=np.float32)

    found = heads().logits(vectors)[:, 0]

    assert found == pytest.approx([1.25 - np.exp(-2), -0.75 + np.exp(-2)], abs=1e-6)


def test_many_texts_get_what_each_gets_alone():
    vectors = np.random.default_rng(0).standard_normal((150, 3)).astype(np.float32)

    together = heads().logits(vectors)

    assert together[77] == pytest.approx(heads().logits(vectors[77:78])[0], abs=1e-6)
    assert together[149] == pytest.approx(heads().logits(vectors[149:])[0], abs=1e-6)


def test_a_text_like_none_gets_the_bias():
    far = np.full((1, 3), 1e6, dtype=np.float32)

    assert heads().logits(far)[0, 0] == 0.25


def test_a_sentence_is_paired_with_the_last_layer_of_its_passage():
    sentences = np.zeros((3, 3456), dtype=np.float32)
    passage = np.arange(3456, dtype=np.float32)[None]

    found = paired(sentences, passage)

    assert found.shape == (3, 3456 + CONTEXT)
    assert (found[2, 3456:] == passage[0, -CONTEXT:]).all()


def test_long_documents_are_cut_into_passages_that_share_a_sentence():
    text = " ".join(f"This is sentence number {number} of it." for number in range(100))

    found = passages(text)

    assert len(found) > 2
    assert all(sum(map(len, passage)) < 1000 for passage in found)
    for before, after in pairwise(found):
        assert after[0] == before[-1]
    assert passages("") == [[]]

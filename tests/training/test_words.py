"""The words' head as it is taken over, and the reader that takes it."""

import io
import os
import pickle

import numpy as np
import pytest

from antiphon.classifier import weights
from antiphon.classifier.loading import parts
from training.word_export import Inert, read_inert
from training.words import word_head


class NumpyArrayWrapper:
    """Named as joblib's is."""

    def __init__(self, array):
        self.dtype, self.shape, self.order = array.dtype, array.shape, "C"
        self.numpy_array_alignment_bytes = 16


class Harmful:
    def __reduce__(self):
        return (os.mkdir, ("made by a pickle",))


def test_a_rude_word_weighs_more_than_a_kind_one():
    rude, kind = word_head().logits(["you idiot", "thanks a lot"])

    assert rude > 0 > kind


def test_the_shipped_weights_hold_the_same_head():
    shipped = parts(weights.unpack(weights.path().read_bytes())).words
    taken = word_head()

    assert shipped.places == taken.places
    assert (shipped.rarity == taken.rarity).all()
    assert (shipped.weights == taken.weights).all()
    assert shipped.bias == pytest.approx(taken.bias)


def test_reading_a_pickle_runs_nothing_that_it_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    found = read_inert(io.BytesIO(pickle.dumps(Harmful())))

    assert isinstance(found, Inert)
    assert not list(tmp_path.iterdir())


def test_an_array_is_read_from_behind_its_wrapper():
    array = np.arange(6, dtype=np.float64).reshape(2, 3)
    wrapped = pickle.dumps(NumpyArrayWrapper(array)).removesuffix(pickle.STOP)
    padded = bytes([3]) + b"\xff" * 3 + array.tobytes()

    assert (read_inert(io.BytesIO(wrapped + padded + pickle.STOP)) == array).all()

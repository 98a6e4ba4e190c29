"""The weights' file."""

import numpy as np
import pytest

from antiphon.classifier import weights


def test_arrays_come_back_as_they_were():
    arrays = {"b": np.arange(6, dtype=np.int8).reshape(2, 3), "a": np.array([0.5], np.float16)}

    found = weights.unpack(weights.pack(arrays))

    assert set(found) == {"a", "b"}
    assert all((found[name] == arrays[name]).all() for name in arrays)
    assert all(found[name].dtype == arrays[name].dtype for name in arrays)


def test_the_same_arrays_are_the_same_bytes_in_whatever_order():
    first, second = np.zeros(3), np.ones(2)

    assert weights.pack({"x": first, "y": second}) == weights.pack({"y": second, "x": first})


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]\n", b'[["a", "<f4", [9]]]\nxx', b'[["a", "<f4", [1]]]\n12345']
)
def test_bytes_that_are_no_weights_are_refused(data):
    with pytest.raises(weights.BadWeights):
        weights.unpack(data)

"""The weights' file: named arrays, one after another, behind a line of JSON that lists them.

Written the same way every time, so that training again gives the same bytes.
"""

import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


class BadWeights(Exception):
    """The bytes are no weights of ours."""


def pack(arrays: Arrays) -> bytes:
    """The arrays as bytes, in the order of their names."""
    ordered = [(name, np.ascontiguousarray(arrays[name])) for name in sorted(arrays)]
    head = [[name, array.dtype.str, list(array.shape)] for name, array in ordered]
    return json.dumps(head).encode() + b"\n" + b"".join(array.tobytes() for _, array in ordered)


def unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays again, not to be written to. Raises BadWeights."""
    head, line, body = data.partition(b"\n")
    try:
        described = json.loads(head)
        found, at = {}, 0
        for name, kind, shape in described:
            count = int(np.prod(shape, dtype=np.int64))
            found[name] = np.frombuffer(body, np.dtype(kind), count, at).reshape(shape)
            at += found[name].nbytes
    except (ValueError, TypeError) as error:
        raise BadWeights("damaged") from error
    if not line or at != len(body):
        raise BadWeights("of another length")
    return found


def path() -> Path:
    """Where the package has them."""
    return Path(str(files(__package__ or "").joinpath("weights.bin")))


def digest(data: bytes) -> str:
    """Their SHA-256, by which the model is known."""
    return hashlib.sha256(data).hexdigest()

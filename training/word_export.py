"""`python -m training.word_export WHEEL`: makes `words.tsv` from a wheel of alt-profanity-check.

The wheel keeps its model as joblib files, which are pickles with arrays in between. They are read
here without running anything they name: every class is an empty one, only numpy's dtype is real.
"""

import pickle
import sys
from pathlib import Path
from typing import IO, Any, ClassVar
from zipfile import ZipFile

import numpy as np

from training.words import FILE

_FOLDER = "profanity_check/data"
_LICENCE = "alt_profanity_check-1.9.1.dist-info/licenses/LICENSE"
_ABOUT = """\
Words, their rarity and their weight, from alt-profanity-check 1.9.1, a linear support vector
machine over tf-idf: of each weight the mean of its five folds. Made by training/word_export.py.
"""


class Inert:
    """Stands for any class that a pickle names; keeps its state and does nothing."""

    def __init__(self, *_: object) -> None:
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state


class Array(Inert):
    """Stands for joblib's wrapper, behind which an array's bytes come."""


class Reader(pickle._Unpickler):
    """As joblib reads its files, without its classes."""

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy", "dtype"):
            return np.dtype
        return Array if name == "NumpyArrayWrapper" else Inert

    def load_build(self) -> None:
        super().load_build()  # type: ignore[misc]  # typeshed leaves the methods out
        top = self.stack[-1]  # type: ignore[attr-defined]
        if isinstance(top, Array):
            self.stack[-1] = self._array(top.state)  # type: ignore[attr-defined]

    dispatch[pickle.BUILD[0]] = load_build

    def _array(self, described: dict[str, Any]) -> Any:
        read = self.read  # type: ignore[attr-defined]
        if described.get("numpy_array_alignment_bytes") is not None:
            read(read(1)[0])
        kind, shape = described["dtype"], described["shape"]
        if kind.hasobject:
            raise pickle.UnpicklingError("an array of objects")
        data = read(int(np.prod(shape, dtype=np.int64)) * kind.itemsize)
        return np.frombuffer(data, kind).reshape(shape, order=described["order"])


def read_inert(file: IO[bytes]) -> Any:
    """What a joblib file holds. Raises pickle.UnpicklingError."""
    return Reader(file).load()


def main(wheel: Path) -> None:
    """Writes the table."""
    with ZipFile(wheel) as archive:
        licence = archive.read(_LICENCE).decode()
        with archive.open(f"{_FOLDER}/vectorizer.joblib") as file:
            vectorizer = read_inert(file).state
        with archive.open(f"{_FOLDER}/model.joblib") as file:
            model = read_inert(file).state
    rarity = vectorizer["_tfidf"].state["idf_"]
    machines = [each.state["estimator"].state for each in model["calibrated_classifiers_"]]
    weights = np.mean([machine["coef_"].ravel() for machine in machines], axis=0)
    bias = np.mean([np.ravel(machine["intercept_"])[0] for machine in machines])
    lines = [f"# {line}".rstrip() for line in f"{_ABOUT}\n{licence}".splitlines()]
    lines.append(f"(bias)\t{bias:.6f}")
    for word, place in sorted(vectorizer["vocabulary_"].items()):
        lines.append(f"{word}\t{rarity[place]:.4f}\t{weights[place]:.5f}")
    FILE.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

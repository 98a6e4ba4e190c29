"""all-MiniLM-L6-v2, the one language model that looks at texts instead of writing them: a leaf that
the classifier and the documents share. Needs numpy, OpenVINO and tokenizers, and no torch."""

import os

# A product of small matrices takes twenty times longer when OpenBLAS has two threads for it that
# wait for each other on busy cores. It reads this once, when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from antiphon.minilm.model import WIDTH, DamagedModel, MiniLm, Vector

__all__ = ["WIDTH", "DamagedModel", "MiniLm", "Vector"]

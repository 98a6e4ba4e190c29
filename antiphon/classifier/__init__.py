"""The embedded classifier, a leaf: imported by the process that judges and by the command line.

Needs numpy, OpenVINO and tokenizers, and no torch; knows no rule, no actor and no server.
"""

import os

# A product of small matrices takes twenty times longer when OpenBLAS has two threads for it that
# wait for each other on busy cores. It reads this once, when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from antiphon.classifier.loading import load
from antiphon.classifier.model import Classifier

__all__ = ["Classifier", "load"]

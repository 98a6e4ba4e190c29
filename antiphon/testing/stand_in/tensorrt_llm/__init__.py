"""A strict stand-in for NVIDIA's `tensorrt_llm`, for tests of the host that drives it.

Same names, keywords, defaults and behaviours as far as that host meets them, written from the
public source of 1.2 and 1.3; it refuses what the real one refuses, and whatever is known to go
wrong with it is a switch (`switches.py`). It runs no model: answers repeat their prompt.
"""

import sys

from .llm import LLM
from .results import CompletionOutput, RequestOutput
from .sampling import GuidedDecodingParams, SamplingParams
from .switches import SWITCHES

__all__ = ["LLM", "CompletionOutput", "GuidedDecodingParams", "RequestOutput", "SamplingParams"]

__version__ = "1.3.0rc4" if SWITCHES.main else "1.2.0"

# As the real import does.
sys.excepthook = lambda *facts: sys.__excepthook__(*facts)

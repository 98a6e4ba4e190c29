"""Whether TensorRT-LLM is installed, found out without importing it, and what to do when it isn't.

For the server's process, which must never import the library.
"""

import importlib.util
import sys

from antiphon.errors import SettingsError

PACKAGE = "tensorrt-llm"
INSTALL = (
    "on a Linux machine with an NVIDIA GPU, its CUDA toolkit and libopenmpi-dev, run "
    f"{sys.executable} -m pip install 'antiphon[trt]'"
)


def is_installed() -> bool:
    return importlib.util.find_spec("tensorrt_llm") is not None


def require_installed() -> None:
    """Raises SettingsError, with what to install and where."""
    if not is_installed():
        raise SettingsError(
            "engine.kind", f"tensorrt-llm needs the package {PACKAGE}, which is missing: {INSTALL}"
        )

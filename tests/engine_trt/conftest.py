import sys
from collections.abc import Iterator

import pytest

from antiphon.engine_trt.library import Library, load_library
from antiphon.testing.trt import STAND_IN


@pytest.fixture(name="library")
def _library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """The stand-in, imported as `tensorrt_llm` for the time of the test."""
    monkeypatch.syspath_prepend(str(STAND_IN))
    yield load_library()
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorrt_llm"]:
        del sys.modules[name]

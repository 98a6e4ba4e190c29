"""An embedding process whose model is a few lines: as the real one in all but what it makes of a
text. `python -m antiphon.testing.embedder_process`, started by `embedders.Embedders`."""

import os
import time
from pathlib import Path

import numpy as np

from antiphon.documents.embedder_process import main
from antiphon.documents.rows import Floats, Halves
from antiphon.testing.embedding import vector

MODULE = "antiphon.testing.embedder_process"
CHOKES, SLOW = "chokes the model", "takes a while"
NICENESS, POLICY = "how nice are you", "by which policy are you scheduled"
SLOW_S = 0.5


class ToyVectors:
    """Counts letters. What the thread's niceness is it says by a vector's length, and so by which
    policy it is scheduled: 1 more than its number, since 0 is the usual one."""

    def question(self, text: str) -> Floats:
        if CHOKES in text:
            raise ValueError("a defect")
        return vector(text)

    def passage(self, text: str) -> Halves:
        if SLOW in text:
            time.sleep(SLOW_S)
        found = self.question(text).astype(np.float16)
        if text == NICENESS:
            thread = Path("/proc/thread-self").resolve().name
            found *= os.getpriority(os.PRIO_PROCESS, int(thread))
        if text == POLICY:
            found *= os.sched_getscheduler(0) + 1
        return found


if __name__ == "__main__":
    main(ToyVectors)

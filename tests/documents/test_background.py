"""The thread that embeds passages: how far it stands back, whatever these tests run at."""

import os
import select
import sys
import threading
from dataclasses import dataclass, field

import numpy as np
import pytest

from antiphon.documents.background import Background
from antiphon.documents.vectors import Halves
from antiphon.embedding_frames import DIMENSIONS, Embedded, Passages

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="a niceness is a whole process's elsewhere"
)

PATIENCE_S = 30.0


@dataclass(eq=False)
class Threads:
    """Vectors without a model; the threads that made them."""

    seen: list[int] = field(default_factory=list)

    def passage(self, text: str) -> Halves:
        self.seen.append(threading.get_native_id())
        return np.zeros(DIMENSIONS, dtype=np.float16)


@dataclass(eq=False)
class Kernel:
    """What was asked of it, by thread. A process at niceness 5."""

    niceness: list[tuple[int, int]] = field(default_factory=list)
    policies: list[tuple[int, int, int]] = field(default_factory=list)

    def take_the_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "getpriority", lambda which, who: 5)
        monkeypatch.setattr(
            os, "setpriority", lambda which, who, nice: self.niceness.append((who, nice))
        )
        monkeypatch.setattr(
            os,
            "sched_setscheduler",
            lambda who, policy, param: self.policies.append((who, policy, param.sched_priority)),
        )


def embedded(nice: int) -> int:
    """One passage is embedded; by which thread."""
    model = Threads()
    background = Background(lambda: model, nice=nice)
    background.add(Passages(number=1, texts=("a",)))
    assert select.select([background.descriptor], [], [], PATIENCE_S)[0]
    (answer,) = background.take()
    assert isinstance(answer, Embedded)
    (thread,) = model.seen
    return thread


@pytest.mark.parametrize("nice", [0, 7, 18])
def test_the_thread_is_as_much_nicer_as_the_settings_say(
    monkeypatch: pytest.MonkeyPatch, nice: int
):
    kernel = Kernel()
    kernel.take_the_place(monkeypatch)

    thread = embedded(nice)

    assert thread != threading.get_native_id()
    assert kernel.niceness == [(thread, min(19, 5 + nice))]
    assert kernel.policies == []


def test_at_the_last_niceness_it_has_only_the_time_of_idle_processors(
    monkeypatch: pytest.MonkeyPatch,
):
    kernel = Kernel()
    kernel.take_the_place(monkeypatch)

    thread = embedded(19)

    assert kernel.niceness == [(thread, 19)]
    assert kernel.policies == [(thread, os.SCHED_IDLE, 0)]

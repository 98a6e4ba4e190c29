"""The thread of an embedding process that embeds passages, behind everything else on the machine,
so that the other one is free for questions. It has a model of its own: neither waits for the other.
"""

import os
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from antiphon.documents.vectors import Halves
from antiphon.embedding_frames import Embedded, Passages, Refused

log = structlog.get_logger(__name__)

_IDLE = 19


class PassageVectors(Protocol):
    def passage(self, text: str) -> Halves: ...


class Background:
    """Made and asked by the process's main thread."""

    def __init__(self, load: Callable[[], PassageVectors], *, nice: int) -> None:
        self._load = load
        self._nice = nice
        self._wanted: queue.SimpleQueue[Passages] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Embedded | Refused] = queue.SimpleQueue()
        self._woken, self._waker = os.pipe()
        self._is_started = False

    @property
    def descriptor(self) -> int:
        """Readable when `take` has something."""
        return self._woken

    def add(self, passages: Passages) -> None:
        """Answered by what `take` returns, one by one and in order."""
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=self._run, name="passages", daemon=True).start()
        self._wanted.put(passages)

    def take(self) -> Sequence[Embedded | Refused]:
        """What is done since."""
        done: list[Embedded | Refused] = []
        while not self._done.empty():
            os.read(self._woken, 1)
            done.append(self._done.get())
        return done

    def _run(self) -> None:
        _stand_back(self._nice)
        model: PassageVectors | None = None
        while True:
            passages = self._wanted.get()
            answer: Embedded | Refused
            try:
                model = model or self._load()
                vectors = b"".join(model.passage(text).tobytes() for text in passages.texts)
                answer = Embedded(number=passages.number, vectors=vectors)
            except Exception as error:
                # A text that the model chokes on costs that text, and not the process. What it
                # says may be somebody's words.
                log.error("embedding_failed", error=type(error).__name__)
                answer = Refused(number=passages.number, problem=type(error).__name__)
            self._done.put(answer)
            os.write(self._waker, b".")


def _stand_back(nice: int) -> None:
    """On Linux a niceness is a thread's own; elsewhere it would be the whole process's. The last
    one stands for more: only processors with nothing else to do, given up at once when there is.
    A thread that is merely nicer keeps one for some milliseconds, and an engine's step, whose
    threads wait for one another, for as long."""
    if sys.platform != "linux":
        return
    own = threading.get_native_id()
    before = os.getpriority(os.PRIO_PROCESS, own)
    os.setpriority(os.PRIO_PROCESS, own, min(19, before + nice))
    if nice == _IDLE:
        os.sched_setscheduler(own, os.SCHED_IDLE, os.sched_param(0))

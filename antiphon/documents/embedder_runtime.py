"""What an embedding process does from ready to its end: questions at once, passages behind them,
and between the two whatever its index is told.

It says each second that it lives, when it has nothing else to say.
"""

import time
from collections.abc import Sequence
from typing import Protocol, assert_never

import structlog

from antiphon import faults
from antiphon.documents.background import Background
from antiphon.documents.embedder_wire import encode_frame
from antiphon.documents.index import TooLarge, VectorIndex
from antiphon.documents.vectors import Floats
from antiphon.embedding_frames import (
    Drop,
    EmbedderBeat,
    EmbedderCommand,
    EmbedderFrame,
    Found,
    HaltEmbedder,
    Missing,
    Nearest,
    Passages,
    Put,
    Refused,
    Settle,
)
from antiphon.errors import EmbedderLost
from antiphon.fault_plan import Site

log = structlog.get_logger(__name__)

BEAT_S = 1.0
_FOR_EVER_S = 10.0**6


class Connection(Protocol):
    """Where commands come from and frames go to; `processes.channel.Channel` is the real one."""

    def receive(self, timeout_s: float, also: Sequence[int] = ()) -> list[EmbedderCommand]: ...

    def send(self, frames: bytes | bytearray) -> None: ...


class QuestionVectors(Protocol):
    def question(self, text: str) -> Floats: ...


class EmbedderRuntime:
    """The loop of one process."""

    def __init__(
        self,
        connection: Connection,
        model: QuestionVectors,
        index: VectorIndex,
        background: Background,
    ) -> None:
        self._connection = connection
        self._model = model
        self._index = index
        self._background = background
        self._next_beat = time.monotonic() + BEAT_S

    def run(self) -> None:
        """Serve until told to halt. Raises ServerGone, EmbedderLost."""
        while self.turn():
            pass

    def turn(self) -> bool:
        """Commands that came, passages that are done, or the next beat; False after the halt."""
        wait_s = max(0.0, self._next_beat - time.monotonic())
        for command in self._connection.receive(wait_s, (self._background.descriptor,)):
            match command:
                case Passages():
                    faults.maybe(Site.EMBEDDER_BATCH)
                    self._background.add(command)
                case Nearest():
                    self._say(self._nearest(command))
                case Put() | Drop() | Settle():
                    self._change(command)
                case HaltEmbedder():
                    return False
                case _:
                    assert_never(command)
        for frame in self._background.take():
            self._say(frame)
        if time.monotonic() >= self._next_beat:
            self._say(EmbedderBeat())
        return True

    def _say(self, frame: EmbedderFrame) -> None:
        self._connection.send(encode_frame(frame))
        self._next_beat = time.monotonic() + BEAT_S

    def _nearest(self, asked: Nearest) -> Found | Missing | Refused:
        faults.maybe(Site.EMBEDDER_QUESTION)
        while faults.strikes(Site.EMBEDDER_HANG):
            time.sleep(_FOR_EVER_S)
        if missing := self._index.missing(asked.scopes):
            return Missing(number=asked.number, known=missing)
        try:
            vector = self._model.question(asked.question)
            found = self._index.nearest(asked.scopes, vector, asked.limit, asked.only)
        except TooLarge as error:
            return Refused(number=asked.number, problem=f"{error} is too large for the index")
        except Exception as error:
            # A text that the model chokes on costs its question, and not everybody's: they would be
            # lost with this process. What it says may be somebody's words.
            log.error("search_failed", error=type(error).__name__)
            return Refused(number=asked.number, problem=type(error).__name__)
        return Found(number=asked.number, neighbours=tuple(found))

    def _change(self, command: Put | Drop | Settle) -> None:
        try:
            match command:
                case Put(key=key, file=file, edition=edition, first=first, vectors=vectors):
                    self._index.put(key, file, edition, first, vectors, last=command.last)
                case Drop(key=key, files=files):
                    self._index.drop(key, files)
                case Settle(key=key, revision=revision):
                    self._index.settle(key, revision)
                case _:
                    assert_never(command)
        except ValueError as error:
            raise EmbedderLost(f"vectors that can't be used: {error}") from error

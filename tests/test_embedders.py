"""Real embedding processes, behind the service that owns them."""

import os
import sys
import time

import numpy as np
import pytest
import trio

from antiphon.embedders import Embedders, embedder_config
from antiphon.embedding import Scope
from antiphon.embedding_frames import DIMENSIONS
from antiphon.errors import EmbeddingUnavailable
from antiphon.settings import Settings
from antiphon.testing.embedder_process import CHOKES, MODULE, NICENESS, POLICY, SLOW, SLOW_S
from antiphon.testing.embedding import ScriptedSource, embedding, stored

ONE = Scope(key="vs_1", revision=1)


def toys(**settings) -> Embedders:
    return Embedders(lambda: Settings(**settings), module=MODULE)


async def test_a_process_embeds_and_finds():
    source = ScriptedSource({"vs_1": {"f1": ("aaa", "bbb"), "f2": ("ccc",)}})
    async with embedding(toys(), source) as service:
        assert await service.embed(["aaa"]) == (stored("aaa"),)
        (first, *_) = await service.nearest("bb", [ONE], 3)

    assert (first.file, first.number) == ("f1", 1)
    assert first.similarity == pytest.approx(1.0, abs=1e-3)


async def test_questions_are_answered_while_passages_are_embedded():
    source = ScriptedSource({"vs_1": {"f1": ("aaa",)}})
    async with embedding(toys(), source) as service:
        await service.nearest("a", [ONE], 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(service.embed, [SLOW] * 4)
            await trio.testing.wait_all_tasks_blocked()
            began = time.monotonic()
            await service.nearest("a", [ONE], 1)
            took_s = time.monotonic() - began
            is_still_embedding = service.view().waiting
            nursery.cancel_scope.cancel()

    assert is_still_embedding
    assert took_s < SLOW_S


@pytest.mark.skipif(sys.platform != "linux", reason="a niceness is a whole process's elsewhere")
@pytest.mark.skipif(
    sys.platform == "linux"
    and (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)) != (0, os.SCHED_OTHER),
    reason="these tests run behind everything else themselves, and so does all that they start; "
    "what a process asks of the system is seen in documents/test_background.py",
)
async def test_passages_are_embedded_behind_everything_else_and_questions_are_not():
    async with embedding(toys(), ScriptedSource()) as service:
        answers = await service.embed([NICENESS, POLICY])
        (pid,) = service.pids()
        main_thread = os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid)

    niceness, policy = map(said, answers)
    assert (niceness, policy - 1) == (Settings().files.embedding_nice, os.SCHED_IDLE)
    assert main_thread == (0, os.SCHED_OTHER)


def said(vector: bytes) -> int:
    """The number that is a vector's length."""
    length = np.linalg.norm(np.frombuffer(vector, dtype=np.float16).astype(np.float32))
    return round(float(length))


async def test_a_text_that_the_model_chokes_on_costs_neither_process_nor_log(
    capfd: pytest.CaptureFixture[str],
):
    source = ScriptedSource({"vs_1": {"f1": ("aaa",)}})
    async with embedding(toys(), source) as service:
        with pytest.raises(EmbeddingUnavailable, match="ValueError"):
            await service.embed([CHOKES])
        with pytest.raises(EmbeddingUnavailable, match="ValueError"):
            await service.nearest(CHOKES, [ONE], 1)

        assert await service.nearest("a", [ONE], 1)
        assert service.view().starts == 1
    assert CHOKES not in "".join(capfd.readouterr())


async def test_a_killed_process_is_replaced_and_its_index_filled_anew():
    source = ScriptedSource({"vs_1": {"f1": ("aaa",)}})
    async with embedding(toys(), source) as service:
        await service.nearest("a", [ONE], 1)
        (pid,) = service.pids()
        os.kill(pid, 9)
        with trio.fail_after(30):
            while True:
                try:
                    found = await service.nearest("a", [ONE], 1)
                    break
                except EmbeddingUnavailable:
                    continue

        assert [each.file for each in found] == ["f1"]
        assert list(service.pids()) != [pid]


async def test_a_process_that_cannot_load_its_model_says_so():
    async with embedding(toys(faults="embedder.start=raise#1"), ScriptedSource()) as service:
        with pytest.raises(EmbeddingUnavailable):
            await service.embed(["a"])

        assert "status" in (service.view().last_exit or "")


async def test_it_ends_with_the_server():
    async with embedding(toys(), ScriptedSource()) as service:
        await service.embed(["a"])
        (pid,) = service.pids()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_is_told_what_the_settings_say():
    config = embedder_config(Settings())

    assert config.index_bytes == 1024 * 2**20
    assert config.nice == 19


@pytest.mark.engine
async def test_the_real_model_knows_what_belongs_together():
    texts = ["The cat sat on the mat.", "Shares fell sharply on Monday.", "He plays the piano."]
    questions = ["a kitten on a rug", "the stock market", "musical instruments"]
    async with embedding(Embedders(Settings), ScriptedSource({"vs_1": {"f1": ("x",)}})) as service:
        vectors = np.stack(
            [np.frombuffer(each, dtype=np.float16) for each in await service.embed(texts)]
        ).astype(np.float32)
        asked = np.stack(
            [np.frombuffer(each, dtype=np.float16) for each in await service.embed(questions)]
        ).astype(np.float32)

    assert vectors.shape == (3, DIMENSIONS)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=2e-3)
    assert (asked @ vectors.T).argmax(axis=1).tolist() == [0, 1, 2]

"""The embedding service and its worker, around a scripted process."""

import pytest
import trio
from trio.testing import MockClock

from antiphon.actors.embedding.worker import BATCH_S, SILENCE_S
from antiphon.embedding import Scope
from antiphon.embedding_frames import Drop, Nearest, Passages, Put
from antiphon.errors import EmbeddingUnavailable
from antiphon.ids import FileId
from antiphon.testing.embedding import (
    ScriptedEmbedders,
    ScriptedSource,
    embedding,
    stored,
)

FIRST = Scope(key="vs_1", revision=1)
SECOND = Scope(key="vs_1", revision=2)


def found(neighbours) -> list[tuple[str, int]]:
    return [(each.file, each.number) for each in neighbours]


def sent(launcher: ScriptedEmbedders, kind: type) -> list:
    return [command for command in launcher.link.sent if isinstance(command, kind)]


async def test_no_process_runs_before_it_is_needed():
    launcher = ScriptedEmbedders()
    async with embedding(launcher, ScriptedSource()) as service:
        assert launcher.links == []
        assert service.view().state == "unused"

        await service.embed(["a"])

        assert len(launcher.links) == 1
        assert service.view().state == "ready"
        assert list(service.pids()) == [launcher.link.pid]


async def test_each_text_gets_its_vector_a_few_texts_at_a_time():
    launcher = ScriptedEmbedders()
    texts = [f"text {number}" for number in range(11)]
    async with embedding(launcher, ScriptedSource()) as service:
        assert await service.embed(texts) == tuple(stored(text) for text in texts)
        assert await service.embed([]) == ()

    assert max(len(each.texts) for each in sent(launcher, Passages)) <= 4


async def test_half_a_character_is_no_reason_to_lose_the_process():
    async with embedding(ScriptedEmbedders(), ScriptedSource()) as service:
        assert len(await service.embed(["a \ud83d b"])) == 1


async def test_a_set_is_fetched_when_it_is_first_searched_and_only_then():
    launcher = ScriptedEmbedders()
    source = ScriptedSource({"vs_1": {"f1": ("aaa", "bbb"), "f2": ("ccc",)}})
    async with embedding(launcher, source) as service:
        assert found(await service.nearest("bb", [FIRST], 1)) == [("f1", 1)]
        assert found(await service.nearest("cc", [FIRST], 1)) == [("f2", 0)]

    assert source.asked == ["f1", "f2"]


async def test_in_another_revision_only_what_has_changed_is_fetched():
    launcher = ScriptedEmbedders()
    source = ScriptedSource({"vs_1": {"f1": ("aaa",), "f2": ("bbb",), "f3": ("ccc",)}})
    async with embedding(launcher, source) as service:
        await service.nearest("a", [FIRST], 1)
        source.sets["vs_1"] = {"f1": ("aaa",), "f3": ("ddd", "eee"), "f4": ("fff",)}
        source.asked.clear()

        neighbours = await service.nearest("e", [SECOND], 10)

    assert source.asked == ["f3", "f4"]
    assert found(neighbours)[0] == ("f3", 1)
    assert {file for file, _ in found(neighbours)} == {"f1", "f3", "f4"}
    assert [each.files for each in sent(launcher, Drop)] == [("f2",)]


async def test_only_the_files_asked_for_are_searched():
    source = ScriptedSource({"vs_1": {"f1": ("aaa",), "f2": ("aab",)}})
    async with embedding(ScriptedEmbedders(), source) as service:
        neighbours = await service.nearest("aaa", [FIRST], 5, only={FileId("f2")})

    assert found(neighbours) == [("f2", 0)]


async def test_a_large_file_is_sent_in_parts():
    launcher = ScriptedEmbedders()
    source = ScriptedSource({"vs_1": {"f1": tuple("ab"[number % 2] for number in range(1200))}})
    async with embedding(launcher, source) as service:
        assert len(await service.nearest("b", [FIRST], 2000)) == 1200

    assert [each.first for each in sent(launcher, Put)] == [0, 512, 1024]


async def test_many_who_search_in_a_new_set_have_it_fetched_once(autojump_clock: MockClock):
    source = ScriptedSource({"vs_1": {"f1": ("aaa",)}}, pause_s=0.5)
    answers: list[list[tuple[str, int]]] = []
    async with embedding(ScriptedEmbedders(), source) as service:

        async def ask() -> None:
            answers.append(found(await service.nearest("a", [FIRST], 1)))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)

    assert answers == [[("f1", 0)]] * 5
    assert source.asked == ["f1"]


async def test_who_gives_up_while_a_set_is_fetched_leaves_it_to_the_next(
    autojump_clock: MockClock,
):
    source = ScriptedSource({"vs_1": {"f1": ("aaa",)}}, pause_s=2.0)
    async with embedding(ScriptedEmbedders(), source) as service:
        with trio.move_on_after(3.0) as scope:
            await service.nearest("a", [FIRST], 1)
        assert scope.cancelled_caught

        assert found(await service.nearest("a", [FIRST], 1)) == [("f1", 0)]


async def test_a_set_that_is_too_large_is_a_reason_and_no_loop():
    source = ScriptedSource({"vs_1": {"f1": ("a",) * 600}, "vs_2": {"f2": ("a",) * 600}})
    launcher = ScriptedEmbedders(index_bytes=800_000)
    async with embedding(launcher, source) as service:
        with pytest.raises(EmbeddingUnavailable, match="too large"):
            await service.nearest("a", [FIRST, Scope(key="vs_2", revision=1)], 1)


async def test_a_text_that_the_model_chokes_on_costs_no_other_one():
    launcher = ScriptedEmbedders()
    async with embedding(launcher, ScriptedSource()) as service:
        with pytest.raises(EmbeddingUnavailable, match="ValueError"):
            await service.embed(["poison"])

        assert await service.embed(["a"]) == (stored("a"),)
    assert len(launcher.links) == 1


async def test_a_process_that_dies_fails_who_waits_and_is_replaced(autojump_clock: MockClock):
    launcher = ScriptedEmbedders()
    source = ScriptedSource({"vs_1": {"f1": ("aaa",)}})
    async with embedding(launcher, source) as service:
        await service.nearest("a", [FIRST], 1)
        launcher.link.hold()
        reasons: list[str] = []

        async def wait() -> None:
            with pytest.raises(EmbeddingUnavailable) as raised:
                await service.embed(["a"])
            reasons.append(str(raised.value))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            launcher.link.die("killed by signal 11")
        assert reasons == ["embedding unavailable: killed by signal 11"]
        assert service.view().last_exit == "killed by signal 11"

        assert found(await service.nearest("a", [FIRST], 1)) == [("f1", 0)]
        assert len(launcher.links) == 2
        assert source.asked == ["f1", "f1"]


async def test_a_process_that_is_lost_while_a_set_is_fetched_is_not_half_filled(
    autojump_clock: MockClock,
):
    launcher = ScriptedEmbedders()
    source = ScriptedSource({"vs_1": {"f1": ("aaa",), "f2": ("bbb",)}}, pause_s=1.0)
    async with embedding(launcher, source) as service:
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(EmbeddingUnavailable, match=r"lost|signal"):
                    await service.nearest("a", [FIRST], 1)

            nursery.start_soon(ask)
            await trio.sleep(1.5)
            launcher.link.die()
        assert len(await service.nearest("a", [FIRST], 5)) == 2


async def test_what_one_process_was_to_get_is_not_given_to_the_next_one(
    autojump_clock: MockClock,
):
    launcher = ScriptedEmbedders()
    source = ScriptedSource({"vs_1": {"f1": ("aaa",), "f2": ("bbb",)}}, pause_s=10.0)
    async with embedding(launcher, source) as service:
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(EmbeddingUnavailable, match="lost"):
                    await service.nearest("a", [FIRST], 1)

            nursery.start_soon(ask)
            await trio.sleep(1)
            launcher.link.die()
            await trio.sleep(1)
            await service.embed(["a"])  # has the next one started while the set is fetched

        assert len(launcher.links) == 2
        assert sent(launcher, Put) == []


async def test_a_process_that_is_silent_is_killed(autojump_clock: MockClock):
    launcher = ScriptedEmbedders()
    async with embedding(launcher, ScriptedSource({"vs_1": {}})) as service:
        await service.embed(["a"])
        hung = launcher.link
        hung.hang()
        began = trio.current_time()

        with pytest.raises(EmbeddingUnavailable):
            await service.nearest("a", [FIRST], 1)

        assert trio.current_time() - began <= SILENCE_S + 1
        await trio.sleep(SILENCE_S)
        assert hung.killed
        assert await service.nearest("a", [FIRST], 1) == ()


async def test_a_process_that_lives_and_embeds_nothing_is_killed(autojump_clock: MockClock):
    launcher = ScriptedEmbedders()
    async with embedding(launcher, ScriptedSource()) as service:
        await service.embed(["a"])
        stuck = launcher.link
        stuck.hold()
        began = trio.current_time()

        with pytest.raises(EmbeddingUnavailable, match="no passage embedded"):
            await service.embed(["b"])

        assert trio.current_time() - began == pytest.approx(BATCH_S, abs=1)
        assert stuck.killed


async def test_a_process_that_cannot_be_started_is_a_clear_error(autojump_clock: MockClock):
    launcher = ScriptedEmbedders(broken="no memory")
    async with embedding(launcher, ScriptedSource()) as service:
        with pytest.raises(EmbeddingUnavailable):
            await service.embed(["a"])

        launcher.broken = None
        assert await service.embed(["a"]) == (stored("a"),)


async def test_who_no_longer_waits_costs_the_process_nothing_more(autojump_clock: MockClock):
    launcher = ScriptedEmbedders()
    async with embedding(launcher, ScriptedSource({"vs_1": {}})) as service:
        await service.embed(["a"])
        launcher.link.hold()
        with trio.move_on_after(1):
            await service.embed(["b"] * 100)

        await service.nearest("a", [FIRST], 1)

    assert len(sent(launcher, Passages)) == 2
    assert len(sent(launcher, Nearest)) >= 1

"""The ingestion: what files say comes into the store whole and once, whatever happens meanwhile."""

from pathlib import Path

import pytest
import trio

from antiphon.document_records import DocumentStatus, NewStoreFile
from antiphon.errors import ReaderUnavailable
from antiphon.ids import LOCAL_USER, FileId, NodeId
from antiphon.retrieval import FilesAsked
from antiphon.testing.filing import FileRig, ScriptedEmbedding, ScriptedReader, running_files
from antiphon.testing.stored_documents import a_vector_store
from antiphon.views import FileFate


async def in_a_store(rig: FileRig, *names: str) -> list[FileId]:
    files = [await rig.upload(name) for name in names]
    new = a_vector_store(LOCAL_USER)
    wanted = [NewStoreFile(file=file) for file in files]
    await rig.store.run(lambda store: store.create_vector_store(new, wanted))
    rig.service.files_added()
    return files


async def statuses(rig: FileRig, files: list[FileId]) -> list[DocumentStatus | None]:
    known = await rig.store.run(lambda store: store.documents(LOCAL_USER, files))
    return [known[file].status if file in known else None for file in files]


async def until_all(rig: FileRig, files: list[FileId], status: DocumentStatus) -> None:
    async def holds() -> bool:
        return await statuses(rig, files) == [status] * len(files)

    await rig.until(holds)


async def test_files_are_read_embedded_and_written(tmp_path: Path):
    async with running_files(tmp_path) as rig:
        files = await in_a_store(rig, "a.txt", "b.txt", "c.txt")
        await until_all(rig, files, DocumentStatus.READY)
        text = await rig.store.run(lambda store: store.document_text(LOCAL_USER, files[0]))

    assert sorted(rig.reader.read_names) == ["a.txt", "b.txt", "c.txt"]
    assert text is not None
    assert text.text == "What a.txt says.\n"
    assert text.document.model == "scripted"
    assert rig.telemetry.reports.count(("document_made", "ready")) == 3


async def test_a_file_at_fault_is_not_tried_again_and_says_why(tmp_path: Path):
    reader = ScriptedReader(unreadable={"bad.pdf": "It is cut short."})
    async with running_files(tmp_path, reader=reader) as rig:
        files = await in_a_store(rig, "bad.pdf")
        await until_all(rig, files, DocumentStatus.FAILED)
        known = await rig.store.run(lambda store: store.documents(LOCAL_USER, files))

    failure = known[files[0]].failure
    assert failure is not None
    assert (failure.code, failure.message) == ("damaged_file", "It is cut short.")
    assert reader.read_names == ["bad.pdf"]


async def test_no_more_are_worked_on_at_once_than_the_settings_say(tmp_path: Path):
    at_once = [0, 0]

    async def before(name: str) -> None:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await trio.sleep(0.02)
        at_once[0] -= 1

    async with running_files(tmp_path, reader=ScriptedReader(before=before), at_once=2) as rig:
        files = await in_a_store(rig, *(f"{number}.txt" for number in range(6)))
        await until_all(rig, files, DocumentStatus.READY)

    assert at_once[1] == 2


async def test_a_file_that_is_deleted_meanwhile_is_let_go_of(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("antiphon.actors.files.holding._TELL_S", 0.01)
    reading, ended = trio.Event(), trio.Event()

    async def before(name: str) -> None:
        reading.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async with running_files(tmp_path, reader=ScriptedReader(before=before)) as rig:
        [file] = await in_a_store(rig, "a.txt")
        with trio.fail_after(10):
            await reading.wait()
            await rig.store.run(lambda store: store.delete_file(LOCAL_USER, file, 1))
            await ended.wait()
        await rig.until(lambda: _is_idle(rig))

    assert ("document_made", "lost") in rig.telemetry.reports


async def _is_idle(rig: FileRig) -> bool:
    await trio.lowlevel.checkpoint()
    return rig.ingestion.in_hand == 0


@pytest.mark.parametrize("how", ["drain", "stop"])
async def test_what_is_at_hand_is_left_to_others_when_the_server_ends(tmp_path: Path, how: str):
    reading = trio.Event()

    async def before(name: str) -> None:
        reading.set()
        await trio.sleep_forever()

    async with running_files(tmp_path, reader=ScriptedReader(before=before)) as rig:
        await in_a_store(rig, "a.txt")
        with trio.fail_after(10):
            await reading.wait()
        if how == "drain":
            rig.ingestion.refuse_new_turns()
            await rig.until(lambda: _is_idle(rig))
    async with running_files(tmp_path, node=NodeId("node_next")) as rig:
        known = await rig.store.run(
            lambda store: store.take_documents(
                NodeId("node_other"),
                round(trio.current_time() * 1000) + 1000,
                lease_ms=round(trio.current_time() * 1000) + 2000,
            )
        )
        names = [*(work.filename for work in known), *rig.reader.read_names]

    assert names == ["a.txt"]
    assert all(work.attempts == 0 for work in known), "nobody was at fault"


async def test_what_can_not_be_read_now_is_tried_again_and_given_up_in_the_end(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr("antiphon.actors.files.holding._AGAIN_S", (0.0,))

    async def before(name: str) -> None:
        raise ReaderUnavailable("no process")

    async with running_files(tmp_path, reader=ScriptedReader(before=before), attempts=3) as rig:
        files = await in_a_store(rig, "a.txt")
        await until_all(rig, files, DocumentStatus.FAILED)
        known = await rig.store.run(lambda store: store.documents(LOCAL_USER, files))

    assert rig.reader.read_names == ["a.txt"] * 3
    failure = known[files[0]].failure
    assert failure is not None
    assert failure.code == "server_error"


async def test_a_document_that_crashes_its_reader_is_given_up_and_leaves_the_tree_alone(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr("antiphon.actors.files.holding._AGAIN_S", (0.0,))

    async def before(name: str) -> None:
        if name == "bad.txt":
            raise RuntimeError("a defect")

    async with running_files(
        tmp_path, reader=ScriptedReader(before=before), attempts=3, at_once=1
    ) as rig:
        bad, good = await in_a_store(rig, "bad.txt", "good.txt")
        await until_all(rig, [good], DocumentStatus.READY)
        await until_all(rig, [bad], DocumentStatus.FAILED)

    assert rig.outcomes[0].exit.__class__.__name__ == "Stopped"


async def test_without_vectors_a_document_is_ready_in_the_end_and_found_by_its_words(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr("antiphon.actors.files.holding._AGAIN_S", (0.0,))
    embedding = ScriptedEmbedding(is_away=True)
    async with running_files(tmp_path, embedding=embedding, attempts=2) as rig:
        files = await in_a_store(rig, "a.txt")
        await until_all(rig, files, DocumentStatus.READY)
        known = await rig.store.run(lambda store: store.documents(LOCAL_USER, files))

    assert known[files[0]].model is None
    assert ("document_made", "unembedded") in rig.telemetry.reports


async def test_what_a_killed_server_held_is_done_once_its_lease_is_over(tmp_path: Path):
    clock = [1_000_000]
    async with running_files(tmp_path, now_ms=lambda: clock[0], at_once=1) as rig:
        dead = NodeId("node_dead")
        file = await rig.upload("a.txt")
        await rig.store.run(lambda store: store.want_document(LOCAL_USER, file, clock[0]))
        taken = await rig.store.run(
            lambda store: store.take_documents(dead, clock[0], lease_ms=clock[0] + 30_000)
        )
        if taken:  # or this one was quicker
            assert await statuses(rig, [file]) != [DocumentStatus.READY]
            clock[0] += 30_001
        await until_all(rig, [file], DocumentStatus.READY)

    assert rig.reader.read_names == ["a.txt"]


async def test_whoever_waits_is_not_behind_what_nobody_waits_for(tmp_path: Path):
    busy = trio.Event()

    async def before(name: str) -> None:
        if name == "long.pdf":
            busy.set()
            await trio.sleep_forever()

    async with running_files(tmp_path, reader=ScriptedReader(before=before), at_once=1) as rig:
        await in_a_store(rig, "long.pdf")
        with trio.fail_after(10):
            await busy.wait()
        file = await rig.upload("asked.txt")

        gathered = await rig.service.gather(
            FilesAsked(user=LOCAL_USER, question="?", files={file: "asked.txt"}, room=1000)
        )

    assert [each.fate for each in gathered.files] == [FileFate.WHOLE]

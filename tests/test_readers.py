"""The real reader process, well and ill: killed, hung, greedy; confined, and gone afterwards."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import trio

from antiphon.errors import ReaderUnavailable, UnreadableFile
from antiphon.readers import ReaderProcess, Readers
from antiphon.reading_files import Chunking, Unreadable
from antiphon.reading_settings import ReadingSettings
from antiphon.settings import Settings
from antiphon.testing import pdfs
from antiphon.testing.reader_process import MODULE

PATIENCE_S = 60.0
READING = ReadingSettings(cpu_s=2, wall_s=30, memory_mib=256, nice=0)


class Watched(Readers):
    """Remembers its processes; kills each at once while `kills` is not 0."""

    def __init__(
        self,
        *,
        kills: int = 0,
        module: str = MODULE,
        faults: str | None = None,
        **reading: object,
    ) -> None:
        changed = msgspec.structs.replace(READING, **reading)
        settings = msgspec.structs.replace(Settings(), reading=changed, faults=faults)
        super().__init__(lambda: settings, module=module)
        self.kills = kills
        self.links: list[ReaderProcess] = []
        self.started = trio.Event()

    async def launch(self, *, waited_for: bool = False) -> ReaderProcess:
        link = await super().launch(waited_for=waited_for)
        self.links.append(link)
        if self.kills:
            self.kills -= 1
            link.kill()
        self.started.set()
        return link

    def all_gone(self) -> bool:
        for link in self.links:
            try:
                os.kill(link.pid, 0)
            except ProcessLookupError:
                continue
            return False
        return True


async def refusal(readers: Readers, path: Path) -> UnreadableFile:
    with trio.fail_after(PATIENCE_S), pytest.raises(UnreadableFile) as refused:
        await readers.read(path, path.name)
    return refused.value


def written(folder: Path, text: str) -> Path:
    path = folder / "file.txt"
    path.write_text(text)
    return path


async def test_a_file_is_read_by_a_process_that_is_gone_afterwards(tmp_path: Path):
    readers = Watched(module="antiphon.documents.process")
    path = tmp_path / "report.pdf"
    path.write_bytes(pdfs.report(30))
    told: list[float] = []

    document = await readers.read(path, "report.pdf", progress=told.append)

    assert document.media_type == "application/pdf"
    assert document.title == "Report of 30 pages"
    assert len(document.page_starts) == 30
    assert document.chunks[0].headings == ("Chapter 1: Findings of part 1",)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert readers.all_gone()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("spin", Unreadable.TOO_SLOW),
        ("eat", Unreadable.TOO_MUCH_MEMORY),
        ("dig", Unreadable.TOO_DEEP),
        ("die", Unreadable.CRASHED),
        ("fail", Unreadable.CRASHED),
    ],
)
async def test_what_a_file_does_to_its_reader_is_that_files_fault(
    word: str, expected: Unreadable, tmp_path: Path
):
    readers = Watched()

    refused = await refusal(readers, written(tmp_path, word))

    assert refused.code == expected
    assert len(readers.links) == 1
    if word == "spin":
        assert readers.links[0].status == -signal.SIGXCPU
    assert readers.all_gone()


async def test_a_reader_that_hangs_is_killed_when_its_time_is_up(tmp_path: Path):
    readers = Watched(wall_s=1.5)

    refused = await refusal(readers, written(tmp_path, "hang"))

    assert refused.code == Unreadable.TOO_SLOW
    assert readers.all_gone()


async def test_a_reader_that_is_stopped_is_killed_when_its_time_is_up(tmp_path: Path):
    readers = Watched(wall_s=1.5)
    path = written(tmp_path, "an ordinary file")

    async with trio.open_nursery() as nursery:

        async def stop() -> None:
            await readers.started.wait()
            os.kill(readers.links[0].pid, signal.SIGSTOP)

        nursery.start_soon(stop)
        refused = await refusal(readers, path)

    assert refused.code == Unreadable.TOO_SLOW
    assert readers.all_gone()


async def test_a_reader_that_is_killed_once_reads_the_file_again(tmp_path: Path):
    readers = Watched(kills=1)

    document = await readers.read(written(tmp_path, "ordinary"), "file.txt")

    assert document.text == "an ordinary file"
    assert len(readers.links) == 2
    assert readers.all_gone()


async def test_a_file_whose_readers_are_killed_twice_has_failed(tmp_path: Path):
    readers = Watched(kills=2)

    refused = await refusal(readers, written(tmp_path, "ordinary"))

    assert refused.code == Unreadable.CRASHED
    assert "killed twice" in refused.message


async def test_who_no_longer_waits_leaves_no_process(tmp_path: Path):
    readers = Watched()
    path = written(tmp_path, "hang")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(readers.read, path, "file.txt")
        await readers.started.wait()
        nursery.cancel_scope.cancel()

    assert readers.all_gone()


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ("reader.start=kill#1", Unreadable.CRASHED),
        ("reader.file=kill#1", Unreadable.CRASHED),
        ("reader.hang#1", Unreadable.TOO_SLOW),
        ("reader.file=slow:9#1", Unreadable.TOO_SLOW),
    ],
)
async def test_a_fault_plan_strikes_in_the_process(
    faults: str, expected: Unreadable, tmp_path: Path
):
    readers = Watched(faults=faults, wall_s=1.5)

    assert (await refusal(readers, written(tmp_path, "ordinary"))).code == expected
    assert readers.all_gone()


@pytest.mark.parametrize("faults", ["reader.start=raise#1", "reader.file=raise#1"])
async def test_a_defect_around_the_parsers_is_not_the_files_fault(faults: str, tmp_path: Path):
    with pytest.raises(ReaderUnavailable):
        await Watched(faults=faults).read(written(tmp_path, "ordinary"), "file.txt")


async def test_a_file_that_is_not_there_is_not_the_files_fault(tmp_path: Path):
    readers = Watched()

    with pytest.raises(ReaderUnavailable):
        await readers.read(tmp_path / "gone", "gone.txt")


async def test_a_process_that_cannot_start_is_not_the_files_fault(tmp_path: Path):
    readers = Watched(module="antiphon.no_such_module")

    with pytest.raises(ReaderUnavailable):
        await readers.read(written(tmp_path, "ordinary"), "file.txt")


async def test_who_waits_does_not_queue_behind_who_does_not(tmp_path: Path):
    readers = Watched(processes=1)
    hung = tmp_path / "hung"
    hung.write_text("hang")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(readers.read, hung, "hung.txt")
        await readers.started.wait()
        with trio.fail_after(PATIENCE_S):
            document = await readers.read(
                written(tmp_path, "ordinary"), "file.txt", waited_for=True
            )
        nursery.cancel_scope.cancel()

    assert document.text == "an ordinary file"


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
async def test_a_reader_finds_no_way_out(tmp_path: Path):
    document = await Watched().read(written(tmp_path, "look around"), "file.txt")

    tried = dict(line.split(": ") for line in document.text.split("\n\n"))
    assert len(tried) == 8
    assert set(tried.values()) == {"PermissionError"}


async def test_the_largest_chunk_is_as_asked(tmp_path: Path):
    readers = Watched(module="antiphon.documents.process")
    path = tmp_path / "report.pdf"
    path.write_bytes(pdfs.report(10))

    small = await readers.read(
        path, "report.pdf", chunking=Chunking(max_tokens=100, overlap_tokens=0)
    )
    large = await readers.read(path, "report.pdf")

    assert len(small.chunks) > 3 * len(large.chunks)
    assert [chunk.number for chunk in small.chunks] == list(range(len(small.chunks)))


def test_a_reader_imports_no_event_loop_and_no_web():
    """They would cost each process a quarter of a second and 30 MB."""
    program = """
import sys
import antiphon.documents.process
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    loaded = set(done.stdout.split())
    assert "pypdfium2" in loaded
    assert not loaded & {"trio", "quart", "hypercorn", "httpx2", "urllib.request", "openvino"}

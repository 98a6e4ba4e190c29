"""`make chaos-ingestion`: a real server that is killed again and again while it reads files.

    python -m chaos.ingestion --kills 40 --database sqlite

Programs upload files, each of many parts in which one says something that nobody else says, and put
them into vector stores. Every other life of the server kills itself at one of the steps of that:
before a file is read, before it is embedded, before it is written, after that; the others are
killed at any moment. In the end one server works in peace: then every file is there, whole and
once, and what it says is found. Ends with status 1 when that isn't so.
"""

import random
import sys
import threading
import time
from dataclasses import dataclass

import httpx2
import trio

from antiphon.document_records import DocumentStatus, FoundChunk
from antiphon.ids import LOCAL_USER, FileId, VectorStoreId
from antiphon.persistence.bridge import open_store
from antiphon.testing.process import ServerProcess
from chaos.lives import Client, Lives, Report, attack

_SETTINGS = """
[context]
titles = false
summaries = false
[files]
chunk_tokens = 100
chunk_overlap_tokens = 0
at_once = 2
"""
"""Many pieces for each file, and nothing else to do."""
_SITES = ("ingest.read", "ingest.embed", "ingest.write", "ingest.written")
_LIFE_S = (1.0, 6.0)
_LONGEST_LIFE_S = 40.0
"""Of one that is to kill itself, and may never come to where it would."""
_PROGRAMS = 2
_PARTS = 40
_AT_MOST = 3
"""Files of a program that are still to be read."""
_WAIT_S = 0.2
_PEACE_S = 180.0
"""For all that is left to be done: leases of the last one that was killed pass first."""
_FILLER = "Nothing of note is said in this part, and it goes on for a while all the same. " * 5


@dataclass(frozen=True, slots=True)
class Added:
    """A file in a vector store, and what it alone says."""

    store: str
    file: str
    fact: str


class Program:
    """Adds files until told to finish. One thread's own."""

    def __init__(self, number: int) -> None:
        self.client = Client()
        self.added: list[Added] = []
        self._number = number
        self._finished = threading.Event()

    def run(self) -> None:
        """A thread's work."""
        store = self.client.ask("/vector_stores", json={"name": f"of program {self._number}"})["id"]
        while not self._finished.is_set():
            while self._in_progress(store) >= _AT_MOST and not self._finished.is_set():
                time.sleep(_WAIT_S)
            fact = f"The password of vault {self._number}x{len(self.added)} is zorblax."
            parts = [f"# Part {number}\n\n{_FILLER}" for number in range(_PARTS)]
            parts[len(self.added) % _PARTS] += fact
            content = ("parts.md", "\n\n".join(parts).encode(), "text/markdown")
            uploaded = self.client.ask(
                "/files", files={"file": content}, data={"purpose": "assistants"}
            )
            file = uploaded["id"]
            self.client.ask(f"/vector_stores/{store}/files", json={"file_id": file})
            self.added.append(Added(store, file, fact))

    def finish(self) -> None:
        """After the file at hand."""
        self._finished.set()

    def _in_progress(self, store: str) -> int:
        return int(self.client.ask(f"/vector_stores/{store}")["file_counts"]["in_progress"])


def main() -> int:
    return attack(__doc__, _SETTINGS, _run, life_s=_LIFE_S, longest_s=_LONGEST_LIFE_S)


def _run(lives: Lives, kills: int, dice: random.Random) -> Report:
    report = Report()
    programs = [Program(number) for number in range(_PROGRAMS)]
    with lives.attacked(programs, report, kills, dice, _SITES) as server:
        added = [each for program in programs for each in program.added]
        report.problems += _wait_for_all(server, added)
        report.problems += _unfound(server, added)
    chunks = trio.run(_look_into, lives, added, report)
    report.facts.append(f"{len(added)} files, {chunks} chunks")
    return report


def _wait_for_all(server: ServerProcess, added: list[Added]) -> list[str]:
    """What isn't completed in the end."""
    left = list(added)
    deadline = time.monotonic() + _PEACE_S
    with httpx2.Client(base_url=server.base_url, timeout=30) as client:
        while left and time.monotonic() < deadline:
            left = [each for each in left if _status(client, each) != "completed"]
            time.sleep(1.0)
        return [f"{each.file} is {_status(client, each)} in the end" for each in left]


def _status(client: httpx2.Client, added: Added) -> str:
    shown = client.get(f"/vector_stores/{added.store}/files/{added.file}").json()
    return str(shown.get("status", shown))


def _unfound(server: ServerProcess, added: list[Added]) -> list[str]:
    """Files whose own sentence isn't what a search for it finds first."""
    problems = []
    with httpx2.Client(base_url=server.base_url, timeout=30) as client:
        for each in added:
            body = {"query": each.fact.removesuffix(" is zorblax."), "max_num_results": 50}
            found = client.post(f"/vector_stores/{each.store}/search", json=body).json()["data"]
            texts = [hit["content"][0]["text"] for hit in found if each.fact in str(hit)]
            if len(texts) != 1:
                problems.append(f"{each.file}: {each.fact!r} is found {len(texts)} times")
    return problems


async def _look_into(lives: Lives, added: list[Added], report: Report) -> int:
    """Whether each file is there once, and whole; how many chunks they have."""
    total = 0
    async with open_store(url=lives.url, data_dir=lives.data, migrated=False) as store:
        for each in added:
            file = FileId(each.file)
            known = (await store.documents(LOCAL_USER, [file])).get(file)
            text = await store.document_text(LOCAL_USER, file)
            chunks = await store.file_chunks(LOCAL_USER, VectorStoreId(each.store), file)
            if known is None or text is None or chunks is None:
                report.problems.append(f"{each.file} has no document")
                continue
            total += len(chunks)
            report.problems += [f"{each.file}: {problem}" for problem in _faults(chunks)]
            if known.status is not DocumentStatus.READY or known.chunks != len(chunks):
                report.problems.append(f"{each.file}: {known.status}, {known.chunks} chunks")
            if text.text.count(_FILLER.strip()) != _PARTS or text.text.count(each.fact) != 1:
                report.problems.append(f"{each.file}: its text isn't what was uploaded")
            vectors = await store.vectors(
                LOCAL_USER, [VectorStoreId(each.store)], [file], known.model or ""
            )
            size = len(vectors.get(file, b""))
            if not size or size % len(chunks):
                report.problems.append(f"{each.file}: {size} bytes of vectors")
    return total


def _faults(chunks: tuple[FoundChunk, ...]) -> list[str]:
    numbers = [each.chunk.number for each in chunks]
    if numbers == list(range(len(chunks))):
        return []
    return [f"its chunks are numbered {numbers}"]


if __name__ == "__main__":
    sys.exit(main())

"""`make chaos-ingestion`: a real server that is killed again and again while it reads files.

    python -m chaos.ingestion --kills 40 --database sqlite

Programs upload files, each of many parts in which one says something that nobody else says, and put
them into vector stores. Every other life of the server kills itself at one of the steps of that:
before a file is read, before it is embedded, before it is written, after that; the others are
killed at any moment. In the end one server works in peace: then every file is there, whole and
once, and what it says is found. Ends with status 1 when that isn't so.
"""

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import trio

from antiphon.document_records import DocumentStatus, FoundChunk
from antiphon.ids import LOCAL_USER, FileId, VectorStoreId
from antiphon.persistence.bridge import open_store
from antiphon.testing.process import ServerProcess, running_server
from chaos.workers import checked, database

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
_TRY_FOR_S = 240.0
_WAIT_S = 0.2
_PEACE_S = 180.0
"""For all that is left to be done: leases of the last one that was killed pass first."""
_FILLER = "Nothing of note is said in this part, and it goes on for a while all the same. " * 5


@dataclass(slots=True)
class Report:
    kills: Counter[str] = field(default_factory=Counter)
    files: int = 0
    chunks: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Added:
    """A file in a vector store, and what it alone says."""

    store: str
    file: str
    fact: str


class Program:
    """Adds files until told to finish. One thread's own, but for `base_url`."""

    def __init__(self, number: int) -> None:
        self.base_url: str | None = None
        self.added: list[Added] = []
        self._number = number
        self._finished = threading.Event()

    def run(self) -> None:
        """A thread's work."""
        store = self._ask("/vector_stores", json={"name": f"of program {self._number}"})["id"]
        while not self._finished.is_set():
            while self._in_progress(store) >= _AT_MOST and not self._finished.is_set():
                time.sleep(_WAIT_S)
            fact = f"The password of vault {self._number}x{len(self.added)} is zorblax."
            parts = [f"# Part {number}\n\n{_FILLER}" for number in range(_PARTS)]
            parts[len(self.added) % _PARTS] += fact
            content = ("parts.md", "\n\n".join(parts).encode(), "text/markdown")
            uploaded = self._ask("/files", files={"file": content}, data={"purpose": "assistants"})
            file = uploaded["id"]
            self._ask(f"/vector_stores/{store}/files", json={"file_id": file})
            self.added.append(Added(store, file, fact))

    def finish(self) -> None:
        """After the file at hand."""
        self._finished.set()

    def _in_progress(self, store: str) -> int:
        return int(self._ask(f"/vector_stores/{store}")["file_counts"]["in_progress"])

    def _ask(self, path: str, **body: Any) -> dict[str, Any]:
        """A POST of a body, or else a GET."""
        method = "POST" if body else "GET"
        deadline = time.monotonic() + _TRY_FOR_S
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx2.HTTPError, TypeError, ValueError):
                url = f"{self.base_url}{path}"
                answer = httpx2.request(method, url, timeout=30, **body)
                if answer.status_code == 200:
                    told: dict[str, Any] = answer.json()
                    return told
            time.sleep(_WAIT_S)
        raise RuntimeError(f"no answer from {path} in {_TRY_FOR_S:.0f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, database(options.database, folder) as url:
        config = Path(folder) / "antiphon.toml"
        config.write_text(_SETTINGS, encoding="utf-8")
        report = _run(config, url, options.kills, random.Random(options.seed))
        report.problems += checked(config, url)
    _print(report)
    return 1 if report.problems else 0


def _run(config: Path, url: str, kills: int, dice: random.Random) -> Report:
    report = Report()
    programs = [Program(number) for number in range(_PROGRAMS)]
    threads = [threading.Thread(target=program.run, daemon=True) for program in programs]
    for number in range(kills):
        _one_life(config, url, programs, report, dice, by_itself=number % 2 == 1)
        if number == 0:
            for thread in threads:
                thread.start()
    for program in programs:
        program.finish()
    with _server(config, url) as server:
        _lead(programs, server)
        for thread in threads:
            thread.join(_TRY_FOR_S)
            if thread.is_alive():
                report.problems.append(f"{thread.name} hangs")
        added = [each for program in programs for each in program.added]
        report.files = len(added)
        report.problems += _wait_for_all(server, added)
        report.problems += _unfound(server, added)
    trio.run(_look_into, url, config.parent, added, report)
    return report


def _one_life(
    config: Path,
    url: str,
    programs: list[Program],
    report: Report,
    dice: random.Random,
    *,
    by_itself: bool,
) -> None:
    site, nth = dice.choice(_SITES), dice.randint(1, 4)
    faults = {"ANTIPHON_FAULTS": f"{site}=kill#{nth}"} if by_itself else {}
    how = f"at {site}" if by_itself else "at any moment"
    try:
        with _server(config, url, **faults) as server:
            _lead(programs, server)
            if by_itself:
                try:
                    server.process.wait(_LONGEST_LIFE_S)
                except subprocess.TimeoutExpired:
                    how = "where it would not have come to it"
            else:
                time.sleep(dice.uniform(*_LIFE_S))
            server.process.kill()
            server.process.wait()
    except RuntimeError:
        if not by_itself:
            raise
        how += ", before it was ready"
    report.kills[how] += 1


def _server(config: Path, url: str, **environment: str) -> Any:
    """All of them have their contents in one folder."""
    return running_server(
        config,
        ANTIPHON_DATABASE_URL=url,
        ANTIPHON_DATA_DIR=str(config.parent / "data"),
        **environment,
    )


def _lead(programs: list[Program], server: ServerProcess) -> None:
    for program in programs:
        program.base_url = server.base_url


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


async def _look_into(url: str, folder: Path, added: list[Added], report: Report) -> None:
    """Whether each file is there once, and whole."""
    async with open_store(url=url, data_dir=folder / "data", migrated=False) as store:
        for each in added:
            file = FileId(each.file)
            known = (await store.documents(LOCAL_USER, [file])).get(file)
            text = await store.document_text(LOCAL_USER, file)
            chunks = await store.file_chunks(LOCAL_USER, VectorStoreId(each.store), file)
            if known is None or text is None or chunks is None:
                report.problems.append(f"{each.file} has no document")
                continue
            report.chunks += len(chunks)
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


def _faults(chunks: tuple[FoundChunk, ...]) -> list[str]:
    numbers = [each.chunk.number for each in chunks]
    if numbers == list(range(len(chunks))):
        return []
    return [f"its chunks are numbered {numbers}"]


def _print(report: Report) -> None:
    for how, count in sorted(report.kills.items()):
        print(f"killed {how}: {count}")
    print(f"{report.files} files, {report.chunks} chunks")
    for problem in report.problems:
        print("PROBLEM", problem)


if __name__ == "__main__":
    sys.exit(main())

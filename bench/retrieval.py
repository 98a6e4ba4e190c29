"""`python -m bench.retrieval DATA`: how much of what answers a question is found, and how quickly.

DATA has `questions.csv` and the texts that it is about, as the data of brandonstarxel's
chunking_evaluation are laid out: each question has references, the exact spans that answer it. All
texts are in one vector store, read, cut, embedded, stored and searched by the server's own parts.
The share that is found of a question is that of its references' characters which are in the first
five chunks (spaces don't count); recall@5 is its mean. Exits with 1 when a figure does not hold.
"""

import argparse
import gc
import json
import math
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog
import trio

from antiphon.actors.files.asking import searched_for
from antiphon.files_settings import FilesSettings
from antiphon.ids import FileId, VectorStoreId
from antiphon.reading_files import Chunking, ReadDocument
from antiphon.sources import Found
from bench.figure import Figure, at_least, at_most, explains, quantile, table
from bench.follow_ups import follow_ups, interrupted
from bench.library import Library, library, scattered, shuffled
from bench.neighbours import Neighbours
from bench.questions import Question, dense, questions_of

RECALL = 0.88
QUERY_MS = 15.0
RESULTS = 5
_MANY = 100_000
_CHUNKS_PER_FILE = 250
_QUIET = 0.10
"""Of the cores: more of that by others, and the times say little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """What was found of a question's references."""

    share: float
    all: bool


Asked = tuple[Question, tuple[str, ...]]
"""A question, and the ways in which it is asked."""


class Places:
    """Where each chunk of a document stands in its text without spaces."""

    def __init__(self, document: ReadDocument) -> None:
        self.text = dense(document.text)
        before = 0
        counts = []
        for character in document.text:
            counts.append(before)
            before += not character.isspace()
        counts.append(before)
        self._chunks = {
            each.number: (counts[each.start], counts[each.end]) for each in document.chunks
        }

    def chunk(self, number: int) -> tuple[int, int]:
        return self._chunks[number]


def covered(question: Question, found: Sequence[Found], places: Mapping[FileId, Places]) -> Covered:
    """A reference that the reader has changed or lost counts as not found."""
    (file,) = (id for id in places if id.endswith(question.corpus))
    text = places[file].text
    chunks = [places[file].chunk(each.number) for each in found if each.file == file]
    total = hit = 0
    for span in question.spans:
        total += len(span)
        if (start := text.find(span)) >= 0:
            hit += sum(
                any(first <= at < last for first, last in chunks)
                for at in range(start, start + len(span))
            )
    return Covered(share=hit / total, all=hit == total)


async def recall(
    shelf: Library, id: VectorStoreId, asked: Sequence[Asked], places: Mapping[FileId, Places]
) -> list[Covered]:
    """`asked` are questions, each with what is searched for."""
    return [
        covered(question, await shelf.search(id, *queries, most=RESULTS), places)
        for question, queries in asked
    ]


async def recall_in_conversations(
    shelf: Library,
    id: VectorStoreId,
    questions: Sequence[Question],
    places: Mapping[FileId, Places],
) -> list[Figure]:
    """Of second questions, by what is searched for: of those that follow up the first one, and of
    those that have nothing to do with it."""
    figures = []
    for what, conversations in (
        ("follow-ups", follow_ups(questions)),
        ("of something else", interrupted(questions)),
    ):
        figures.append(explains(f"second questions, {what}", len(conversations)))
        ways: dict[str, list[Asked]] = {
            "in full": [(each.second, (each.second.text,)) for each in conversations],
            "as said": [(each.second, (each.said,)) for each in conversations],
            "with the first": [
                (each.second, (f"{each.said}\n{each.first}",)) for each in conversations
            ],
            "both": [
                (each.second, (each.said, f"{each.said}\n{each.first}")) for each in conversations
            ],
            "as the server does": [
                (each.second, searched_for(each.said, (each.first,))) for each in conversations
            ],
        }
        for way, asked in ways.items():
            found = await recall(shelf, id, asked, places)
            name = f"recall@{RESULTS}, {what}, {way}"
            figures.append(explains(name, _mean([each.share for each in found])))
    return figures


async def times_ms(
    shelf: Library, documents: Sequence[ReadDocument], questions: Sequence[Question], many: int
) -> tuple[float, list[float]]:
    """Of the first search in so many chunks, and of each after it."""
    id = VectorStoreId("vs_many")
    chunks = [each.text for document in documents for each in document.chunks]
    known = b"".join(await shelf.embedding.embed(chunks))
    count = min(_CHUNKS_PER_FILE, many)
    made = {
        FileId(f"file-{number:04}"): document
        for number, document in enumerate(
            shuffled(documents, files=math.ceil(many / count), chunks=count)
        )
    }
    vectors = {file: scattered(known, count, seed=at) for at, file in enumerate(made)}
    await shelf.fill(id, made, vectors, Chunking())
    del made, vectors
    gc.collect()
    took: list[float] = []
    for question in (questions[0], *questions):
        began = time.perf_counter()
        await shelf.search(id, question.text, most=RESULTS)
        took.append((time.perf_counter() - began) * 1000)
    return took[0], took[1:]


async def measured(
    questions: Sequence[Question],
    texts: Sequence[Path],
    chunking: Chunking,
    many: int,
    in_conversations: bool,
) -> list[Figure]:
    id = VectorStoreId(f"vs_{chunking.max_tokens}")
    second: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as folder:
        async with library(Path(folder)) as shelf:
            documents = await shelf.add(id, texts, chunking)
            places = {file: Places(document) for file, document in documents.items()}
            asked: list[Asked] = [(each, (each.text,)) for each in questions]
            found = await recall(shelf, id, asked, places)
            _told(f"recall of {len(questions)} questions")
            if in_conversations:
                second = await recall_in_conversations(shelf, id, questions, places)
                _told("recall of second questions")
            first, took = math.nan, list[float]()
            if many:
                first, took = await times_ms(shelf, list(documents.values()), questions, many)
                _told(f"times with {many} chunks")
    chunks = [each for document in documents.values() for each in document.chunks]
    length = sum(len(each.text) for each in chunks) / len(chunks)
    every = [each.share for each in found]
    return [
        at_least(f"recall@{RESULTS}", _mean(every), RECALL),
        explains(f"recall@{RESULTS}, even questions", _mean(every[::2])),
        explains(f"recall@{RESULTS}, odd questions", _mean(every[1::2])),
        explains("questions of which everything is found", _mean([each.all for each in found])),
        *(
            explains(
                f"recall@{RESULTS}, {corpus}",
                _mean([s for s, q in zip(every, questions, strict=True) if q.corpus == corpus]),
            )
            for corpus in sorted({each.corpus for each in questions})
        ),
        *second,
        explains("chunks", len(chunks)),
        explains("characters of a chunk, mean", length),
        *(
            (
                at_most(f"a search in {many} chunks, p50", quantile(took, 0.5), QUERY_MS, "ms"),
                explains(f"a search in {many} chunks, p99", quantile(took, 0.99), "ms"),
                explains("the first search, which loads the vectors", first, "ms"),
            )
            if many
            else ()
        ),
    ]


def main() -> int:
    defaults = FilesSettings().chunking
    parser = argparse.ArgumentParser(prog="bench.retrieval", description=__doc__)
    parser.add_argument("data", type=Path, help="a folder with questions.csv and texts")
    parser.add_argument("--tokens", type=int, default=defaults.max_tokens, help="of a chunk")
    parser.add_argument("--overlap", type=int, default=defaults.overlap_tokens)
    parser.add_argument("--many", type=int, default=_MANY, help="chunks to search in; 0 for none")
    parser.add_argument(
        "--conversations", action="store_true", help="also ask the questions as follow-ups"
    )
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    chunking = Chunking(max_tokens=options.tokens, overlap_tokens=options.overlap)
    neighbours = Neighbours()
    texts = sorted(options.data.glob("*.md"))
    questions = questions_of(options.data)
    figures = trio.run(measured, questions, texts, chunking, options.many, options.conversations)
    others = neighbours.share()
    figures.append(explains("used by others", others * 100, "% of all cores"))
    print(table(figures))
    if others > _QUIET:
        print("the machine was busy with something else: measure again", file=sys.stderr)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / f"retrieval-{at.replace(':', '')}.json"
    results = {"at": at, "figures": [figure.as_json() for figure in figures]}
    file.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"saved as {file}")
    return 0 if all(figure.holds is not False for figure in figures) else 1


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _told(part: str) -> None:
    print(f"{part}: measured", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

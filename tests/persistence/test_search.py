"""Chunks are found by their words, the same in both databases, and by nobody else."""

import math

import pytest

from antiphon.document_records import NewStoreFile
from antiphon.ids import FileId, NodeId, UserId, VectorStoreId, new_node_id
from antiphon.persistence import candidates
from antiphon.persistence.store import SqlStore
from antiphon.persistence.words import EVERY, owner
from antiphon.testing.specimens import Writer
from antiphon.testing.stored_documents import (
    MODEL,
    a_filled_store,
    a_reading,
    a_stored_file,
    a_vector_store,
    made,
)

ME: NodeId = new_node_id()
TEXTS = [
    "The Brown Fox jumps over the lazy dog.",
    "A fox, a fox, a fox: nothing but foxes in this one.",
    "Müller wohnt in der Straße 5; das Auto ist grün.",
    "机器学习是人工智能的一个分支。",
    "Прайс-лист: всё включено.",
    "Nothing of interest here, and no animals; only a long sentence that goes on and on.",
]


async def numbers(
    store: SqlStore, user: UserId, vectors: VectorStoreId, *terms: str, limit: int = 9
) -> list[int]:
    found = await store.search_text(user, [vectors], terms, limit)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    return [each.chunk.number for each in found]


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        (["fox"], [1, 0]),
        (["FOXES"], [1, 0]),
        (["fox", "lazy"], [0, 1]),
        (["brown fox"], [0, 1]),
        (["muller"], [2]),
        (["STRASSE"], [2]),
        (["gru\u0308n"], [2]),
        (["学习"], [3]),
        (["人工智能"], [3]),
        (["прайс"], [4]),
        (["все"], [4]),
        (["nowhere"], []),
        ([], []),
        (["", " ", "...", "🦊"], []),
        (["nowhere", "5"], [2]),
    ],
)
async def test_a_chunk_is_found_by_its_words(
    store: SqlStore, writer: Writer, terms: list[str], expected: list[int]
):
    vectors, _ = await a_filled_store(store, writer.user, ME, TEXTS)

    assert await numbers(store, writer.user, vectors, *terms) == expected


@pytest.mark.parametrize(
    "term",
    [
        'fox" OR "dog',
        "fo*",
        "NOT zebra",
        "words:fox",
        "NEAR(fox dog)",
        "fox & !dog",
        "fox:*",
        "'; DROP TABLE chunks; --",
        "\0",
        "$1 %s {}",
        EVERY,
        "\ue000",
    ],
)
async def test_no_word_is_an_operator(store: SqlStore, writer: Writer, term: str):
    vectors, _ = await a_filled_store(store, writer.user, ME, ["zebra", "fo"])

    found = await numbers(store, writer.user, vectors, term)

    assert found in ([], [0], [1])
    assert (found == [0]) is ("zebra" in term)
    assert (found == [1]) is (term == "fo*")


async def test_what_says_whose_a_chunk_is_can_not_be_asked_for(store: SqlStore, writer: Writer):
    vectors, _ = await a_filled_store(store, writer.user, ME, [f"{owner('x')} plain"])

    assert await numbers(store, writer.user, vectors, owner(writer.user)) == []


async def test_a_found_chunk_says_where_it_stands(store: SqlStore, writer: Writer):
    file = await a_stored_file(store, writer.user, filename="notes.md")
    new = NewStoreFile(file=file, attributes={"year": 2024.0})
    vectors = await store.create_vector_store(a_vector_store(writer.user), [new])
    await made(store, ME, TEXTS)

    (first, *_) = await store.search_text(writer.user, [vectors.id], ["lazy"], 1)

    assert (first.file, first.filename, first.store) == (file, "notes.md", vectors.id)
    assert first.attributes == {"year": 2024.0}
    assert first.chunk == a_reading(TEXTS).read.chunks[0]
    assert await store.file_chunks(writer.user, vectors.id, FileId("file-none")) is None
    everything = await store.file_chunks(writer.user, vectors.id, file)
    assert tuple(each.chunk for each in everything or ()) == a_reading(TEXTS).read.chunks


async def test_a_search_stays_in_the_stores_and_files_that_it_names(
    store: SqlStore, writer: Writer
):
    one, first = await a_filled_store(store, writer.user, ME, ["fox one"], sha256="1")
    two, second = await a_filled_store(store, writer.user, ME, ["fox two"], sha256="2")
    three, _ = await a_filled_store(store, writer.user, ME, ["fox three"], sha256="3")
    alone = await a_stored_file(store, writer.user, "4")
    await store.want_document(writer.user, alone, 1)
    await made(store, ME, ["fox four"])
    user = writer.user

    async def texts(stores: list[VectorStoreId], files: list[FileId] | None = None) -> set[str]:
        found = await store.search_text(user, stores, ["fox"], 9, files=files)
        return {each.chunk.text for each in found}

    assert await texts([one]) == {"fox one"}
    assert await texts([three, one]) == {"fox one", "fox three"}
    assert await texts([one, two, three], [second]) == {"fox two"}
    assert await texts([one], [second]) == set()
    assert await texts([], [alone, first]) == {"fox four"}
    assert await texts([]) == set()
    assert await texts([VectorStoreId("vs_none")]) == set()


async def test_a_file_in_two_stores_and_a_text_in_two_files_are_found_once(
    store: SqlStore, writer: Writer
):
    one, file = await a_filled_store(store, writer.user, ME, ["fox"])
    twin = await a_stored_file(store, writer.user)
    put = [NewStoreFile(file=file), NewStoreFile(file=twin)]
    two = await store.create_vector_store(a_vector_store(writer.user), put)

    found = await store.search_text(writer.user, [two.id, one], ["fox"], 9)
    files = await store.search_files(writer.user, [two.id, one])

    assert len(found) == 1
    assert found[0].store == two.id
    assert {each.file for each in files} == {file, twin}
    assert len({each.document for each in files}) == 1


async def test_only_what_is_ready_is_searched(store: SqlStore, writer: Writer):
    vectors, file = await a_filled_store(store, writer.user, ME, ["fox"])
    waiting = await a_stored_file(store, writer.user, "b")
    await store.add_vector_store_files(writer.user, vectors, [NewStoreFile(file=waiting)], 5)

    files = await store.search_files(writer.user, [vectors])

    assert [(each.file, each.chunks, each.model) for each in files] == [(file, 1, MODEL)]
    assert await store.search_files(writer.user, [vectors], [waiting]) == ()


async def test_no_score_depends_on_what_others_have_stored(store: SqlStore, writer: Writer):
    vectors, _ = await a_filled_store(store, writer.user, ME, TEXTS)
    before = await store.search_text(writer.user, [vectors], ["fox", "nothing"], 9)
    other = await Writer.new(store)

    await a_filled_store(store, other.user, ME, ["fox nothing"] * 50)
    await a_filled_store(store, writer.user, ME, ["fox fox"] * 50, sha256="b")

    assert await store.search_text(writer.user, [vectors], ["fox", "nothing"], 9) == before


async def test_both_databases_find_the_same_in_the_same_order(store: SqlStore, writer: Writer):
    """The figures are BM25's, worked out by hand from its definition."""
    texts = ["a b", "a a a", "b c d e", "x y z"]
    vectors, _ = await a_filled_store(store, writer.user, ME, texts)

    found = await store.search_text(writer.user, [vectors], ["a", "c"], 9)

    def worth(have: int) -> float:
        return math.log(1 + (4 - have + 0.5) / (have + 0.5))

    def damped(times: int, length: int) -> float:
        return times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / 3))

    possible = worth(2) + worth(1)
    assert {each.chunk.number: each.score * possible for each in found} == pytest.approx(
        {0: worth(2) * damped(1, 2), 1: worth(2) * damped(3, 3), 2: worth(1) * damped(1, 4)}
    )
    assert [each.chunk.number for each in found] == [1, 2, 0]


async def test_only_so_many_are_returned_and_the_best_first(store: SqlStore, writer: Writer):
    texts = [f"fox {'fox ' * number}and some other words" for number in range(30)]
    vectors, _ = await a_filled_store(store, writer.user, ME, texts)

    assert await numbers(store, writer.user, vectors, "fox", limit=3) == [29, 28, 27]
    assert await numbers(store, writer.user, vectors, "fox", limit=0) == []


async def test_a_word_that_is_everywhere_gives_way_to_others(
    store: SqlStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(candidates, "ROWS", 5)
    texts = [f"the {word}" for word in ("ant", "bee", "cat", "dog", "elk", "fly")]
    vectors, _ = await a_filled_store(store, writer.user, ME, texts)

    assert await numbers(store, writer.user, vectors, "the", "cat") == [2]
    assert len(await numbers(store, writer.user, vectors, "the")) == 5


async def test_chunks_are_found_by_their_numbers_in_the_order_asked_for(
    store: SqlStore, writer: Writer
):
    vectors, file = await a_filled_store(store, writer.user, ME, TEXTS)
    wanted = [(file, 3), (file, 0), (file, 99), (file, -1), (FileId("file-none"), 0)]

    found = await store.chunks(writer.user, [vectors], wanted)

    assert [each.chunk.number for each in found] == [3, 0]
    assert [each.chunk.text for each in found] == [TEXTS[3], TEXTS[0]]


async def test_vectors_are_those_of_one_model(store: SqlStore, writer: Writer):
    vectors, file = await a_filled_store(store, writer.user, ME, TEXTS)
    twin = await a_stored_file(store, writer.user)
    await store.add_vector_store_files(writer.user, vectors, [NewStoreFile(file=twin)], 5)
    expected = a_reading(TEXTS).vectors

    found = await store.vectors(writer.user, [vectors], None, MODEL)

    assert found == {file: expected, twin: expected}
    assert await store.vectors(writer.user, [vectors], [twin], MODEL) == {twin: expected}
    assert await store.vectors(writer.user, [vectors], None, "another") == {}

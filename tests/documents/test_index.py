"""The sets of vectors that are at hand, and what is found in them."""

import numpy as np
import pytest

from antiphon.documents import rows
from antiphon.documents.index import TooLarge, VectorIndex
from antiphon.documents.rows import VectorRows
from antiphon.embedding_frames import BYTES_PER_VECTOR, DIMENSIONS


def some(count: int, seed: int = 0) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found


def stored(vectors: np.ndarray) -> bytes:
    return vectors.astype(np.float16).tobytes()


def put(found: VectorRows, file: str, vectors: np.ndarray, edition: str = "1") -> None:
    found.put(file, edition, 0, stored(vectors), last=True)


def names(found: list[tuple[str, int, float]]) -> list[tuple[str, int]]:
    return [(file, number) for file, number, _ in found]


def test_the_nearest_come_first_with_their_similarity():
    vectors = some(20)
    found = VectorRows()
    put(found, "a", vectors[:12])
    put(found, "b", vectors[12:])

    best = found.nearest(vectors[15], 3)

    exact = np.argsort(-(vectors @ vectors[15]))[:3]
    assert names(best) == [("a", at) if at < 12 else ("b", at - 12) for at in exact]
    assert best[0][2] == pytest.approx(1.0, abs=1e-3)


def test_of_many_the_signs_lose_none_of_the_nearest(monkeypatch: pytest.MonkeyPatch):
    vectors = some(5000)
    found = VectorRows()
    put(found, "a", vectors)
    asked = vectors[77] + 0.5 * some(1, seed=9)[0]
    exact = found.nearest(asked, 10)

    monkeypatch.setattr(rows, "_EXACT", 1000)  # of 5000, every tenth is compared

    assert found.nearest(asked, 3) == exact[:3]
    assert exact[0][1] == 77


def test_only_the_files_asked_for_are_searched(monkeypatch: pytest.MonkeyPatch):
    vectors = some(300)
    found = VectorRows()
    for number in range(30):
        put(found, f"f{number}", vectors[number * 10 : number * 10 + 10])
    among = {"f3", "f9", "f-unknown"}
    exact = found.nearest(vectors[95], 5, among)

    monkeypatch.setattr(rows, "_EXACT", 16)

    assert names(exact)[0] == ("f9", 5)
    assert {file for file, _ in names(exact)} <= among
    assert found.nearest(vectors[95], 1, among) == exact[:1]
    assert found.nearest(vectors[95], 5, set()) == []


def test_a_file_that_is_dropped_is_found_no_more_and_the_others_keep_their_numbers():
    vectors = some(30)
    found = VectorRows()
    for number, file in enumerate("abc"):
        put(found, file, vectors[number * 10 : number * 10 + 10])

    found.drop(["b", "none"])

    assert found.editions.keys() == {"a", "c"}
    assert names(found.nearest(vectors[27], 1)) == [("c", 7)]
    assert "b" not in {file for file, _ in names(found.nearest(vectors[15], 30))}
    put(found, "b", vectors[10:20], edition="2")
    assert names(found.nearest(vectors[15], 1)) == [("b", 5)]


def test_a_file_that_is_put_in_anew_takes_the_place_of_what_was_there():
    vectors = some(20)
    found = VectorRows()
    put(found, "a", vectors[:10])
    put(found, "a", vectors[10:], edition="2")

    assert found.editions == {"a": "2"}
    assert len(found.nearest(vectors[0], 50)) == 10


def test_vectors_come_in_parts_and_count_only_when_all_have_come():
    vectors = some(10)
    found = VectorRows()
    found.put("a", "1", 0, stored(vectors[:6]), last=False)

    assert found.editions == {}
    found.put("a", "1", 6, stored(vectors[6:]), last=True)
    assert found.editions == {"a": "1"}
    assert names(found.nearest(vectors[8], 1)) == [("a", 8)]


def test_a_part_that_is_not_the_next_one_is_refused():
    found = VectorRows()
    found.put("a", "1", 0, stored(some(2)), last=False)

    with pytest.raises(ValueError, match="not the next"):
        found.put("a", "1", 3, stored(some(2)), last=True)


@pytest.mark.parametrize("garbage", [b"x", b"\xff" * BYTES_PER_VECTOR])
def test_what_are_no_vectors_is_refused(garbage: bytes):
    with pytest.raises(ValueError, match=r"vectors|numbers"):
        VectorRows().put("a", "1", 0, garbage, last=True)


def test_a_file_without_chunks_is_there_and_finds_nothing():
    found = VectorRows()
    found.put("a", "1", 0, b"", last=True)

    assert found.editions == {"a": "1"}
    assert found.nearest(some(1)[0], 5) == []


# ── several sets ─────────────────────────────────────────────────────────────────────────────────

MUCH = 2**30


def fill(index: VectorIndex, key: str, revision: int, **files: np.ndarray) -> None:
    for file, vectors in files.items():
        index.put(key, file, "1", 0, stored(vectors), last=True)
    index.settle(key, revision)


def test_a_set_is_missing_until_it_is_settled_in_that_very_revision():
    index = VectorIndex(MUCH)
    assert index.missing([("s", 1)]) == {"s": {}}

    index.put("s", "a", "1", 0, stored(some(2)), last=True)
    assert index.missing([("s", 1)]) == {"s": {"a": "1"}}

    index.settle("s", 1)
    assert index.missing([("s", 1)]) == {}
    assert index.missing([("s", 2)]) == {"s": {"a": "1"}}

    index.drop("s", ["a"])
    assert index.missing([("s", 1)]) == {"s": {}}


def test_a_file_whose_last_part_never_came_is_not_searched():
    vectors = some(4)
    index = VectorIndex(MUCH)
    index.put("s", "torn", "1", 0, stored(vectors[:2]), last=False)
    fill(index, "s", 1, whole=vectors[2:])

    found = index.nearest([("s", 1)], vectors[0], 10)

    assert {file for file, _ in names(found)} == {"whole"}


def test_a_file_in_two_sets_is_found_once():
    vectors = some(3)
    index = VectorIndex(MUCH)
    fill(index, "s", 1, a=vectors[:2])
    fill(index, "t", 1, a=vectors[:2], b=vectors[2:])

    found = index.nearest([("s", 1), ("t", 1)], vectors[2], 10)

    assert names(found)[0] == ("b", 0)
    assert sorted(names(found)) == [("a", 0), ("a", 1), ("b", 0)]


def test_sets_that_were_not_searched_for_the_longest_time_make_room():
    vectors = some(256)
    index = VectorIndex(500_000)
    for key in "stu":
        fill(index, key, 1, a=vectors)
        if key == "t":
            index.nearest([("s", 1)], vectors[0], 1)

    assert index.taken_bytes <= 500_000
    assert set(index.missing([(key, 1) for key in "stu"])) == {"t"}


def test_a_set_that_does_not_fit_says_so_and_keeps_nothing():
    index = VectorIndex(300_000)
    fill(index, "s", 1, a=some(256), b=some(256), c=some(256))

    assert index.taken_bytes < 300_000
    with pytest.raises(TooLarge, match="s"):
        index.nearest([("s", 1)], some(1)[0], 1)


def test_a_set_that_was_too_large_is_searched_when_it_has_become_smaller():
    vectors = some(512)
    index = VectorIndex(300_000)
    fill(index, "s", 1, a=vectors[:256], b=vectors[256:])
    assert index.missing([("s", 2)]) == {"s": {}}

    fill(index, "s", 2, a=vectors[:100])

    assert names(index.nearest([("s", 2)], vectors[7], 1)) == [("a", 7)]

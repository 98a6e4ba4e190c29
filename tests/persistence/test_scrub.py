"""Text that SQLite itself would leave between the rows of a page is gone with its row."""

import random
from pathlib import Path

import pytest

from antiphon.errors import StoreFailed
from antiphon.ids import new_conversation_id
from antiphon.persistence.bridge import TrioDatabase, open_store
from antiphon.persistence.check import check_database
from antiphon.persistence.scrub import PageScrubber, page_size, residue
from antiphon.persistence.sqlite import SqliteDatabase
from antiphon.records import Conversation
from antiphon.testing.specimens import Writer, an_item


def leaf(cells: int, start: int, *, head: int = 0, kind: int = 13) -> bytearray:
    page = bytearray(4096)
    page[head] = kind
    page[head + 3 : head + 7] = cells.to_bytes(2, "big") + start.to_bytes(2, "big")
    return page


def test_what_stands_between_the_list_of_cells_and_the_cells_is_residue():
    page = leaf(cells=3, start=4000)
    page[8:14] = b"cells!"
    page[4000:] = b"x" * 96

    assert residue(bytes(page), 4096, is_first=False) is None
    page[14] = 1
    assert residue(bytes(page), 4096, is_first=False) == (14, 4000)
    page[14], page[3999] = 0, 1
    assert residue(bytes(page), 4096, is_first=False) == (14, 4000)


@pytest.mark.parametrize(
    "page",
    [
        leaf(cells=0, start=0, kind=0),
        leaf(cells=0, start=4000, kind=1),
        leaf(cells=2000, start=4000),
        leaf(cells=1, start=4097),
        leaf(cells=1, start=4090),
    ],
    ids=["empty", "text that goes on", "too many cells", "beyond the page", "in the reserve"],
)
def test_what_is_not_understood_is_left_alone(page: bytearray):
    page[100:200] = b"x" * 100

    assert residue(bytes(page), 4080, is_first=False) is None


def test_files_whose_pages_cant_be_told_apart_are_left_alone():
    head = bytearray(100)
    head[16:18] = (4096).to_bytes(2, "big")

    assert page_size(bytes(head), 4096) == 4096
    assert page_size(bytes(head[:50]), 50) is None
    assert page_size(bytes(head), 4096 * 0x02000000) is None
    head[55] = 1
    assert page_size(bytes(head), 4096) is None
    head[16:18], head[55] = b"\0\1", 0
    assert page_size(bytes(head), 65536) == 65536


def test_every_page_is_looked_at_once_text_was_deleted_wherever_the_round_stands(tmp_path: Path):
    path = tmp_path / "x.db"
    page = leaf(cells=0, start=4096)
    page[2000] = 1
    first = leaf(cells=0, start=4096, head=100)
    first[16:18] = (4096).to_bytes(2, "big")
    path.write_bytes(bytes(first) + bytes(page) * 1023)
    scrubber = PageScrubber(path)

    assert scrubber.some(1024 * 1024)
    path.write_bytes(bytes(first) + bytes(page) * 1023)
    scrubber.begin()
    rounds = 0
    while not scrubber.done:
        scrubber.some(1024 * 1024)
        rounds += 1
    scrubber.close()

    assert path.read_bytes() == bytes(first) + bytes(leaf(cells=0, start=4096)) * 1023
    assert rounds == 4


async def test_no_deleted_text_stays_anywhere_in_the_file_however_pages_were_divided(
    tmp_path: Path,
):
    """Without scrubbing, about one deletion in a hundred leaves text behind."""
    dice = random.Random(7)
    path = tmp_path / "x.db"
    gone: list[bytes] = []
    async with open_store(url=f"sqlite:///{path}", data_dir=tmp_path) as store:
        writer = await Writer.new(store)
        there: list[tuple[str, bytes]] = []
        for number in range(500):
            mark = f"mark{dice.getrandbits(96):024x}"
            texts = [mark * dice.choice((1, 1, 3, 20, 300)) for _ in range(dice.randrange(1, 7))]
            id = new_conversation_id()
            conversation = Conversation(
                id=id,
                user=writer.user,
                created_ms=number,
                updated_ms=number,
                title=mark,
                metadata={"m": mark * dice.choice((1, 10))},
            )
            await store.create_conversation(conversation, [an_item(text) for text in texts])
            there.append((id, mark.encode()))
            if dice.random() < 0.5:
                id, mark = there.pop(dice.randrange(len(there)))
                assert await store.delete_conversation(writer.user, id, number) is not None
                gone.append(mark)
                file = path.read_bytes()
                assert file.count(mark) == 0, number
        assert isinstance(store.database, TrioDatabase)
        assert isinstance(store.database.native, SqliteDatabase)
        assert not store.database.native.untidy
        assert (await check_database(store.database)).sound
        # Pages that are remembered as they were before must not bring anything back.
        for _ in range(200):
            await writer.conversation(an_item("x" * dice.choice((1, 30, 900))), title="new")
    whole = path.read_bytes()
    assert [mark for mark in gone if mark in whole] == []
    assert all(mark in whole for _, mark in there)


async def test_a_disk_that_refuses_is_told_as_the_stores_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with open_store(data_dir=tmp_path) as store:

        def refuse(self: PageScrubber, most_bytes: int) -> bool:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(PageScrubber, "some", refuse)
        with pytest.raises(StoreFailed, match="Input/output error"):
            await store.database.tidy()
        monkeypatch.undo()
        await store.database.tidy()

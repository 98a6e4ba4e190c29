import os

import pytest
import trio

from antiphon.actors.workers.disposal import SWEEP_AFTER_MS, discard, sweep
from antiphon.errors import StoreFailed
from antiphon.ids import LOCAL_USER, new_file_id
from antiphon.persistence.contents import FolderContents
from antiphon.records import File
from antiphon.testing.open_store import direct_store

NOW_MS = 10 * SWEEP_AFTER_MS


@pytest.fixture
async def store(tmp_path):
    async with direct_store(tmp_path) as store:
        yield store


@pytest.fixture
async def contents(tmp_path):
    contents = FolderContents(tmp_path / "contents")
    await contents.prepare()
    return contents


async def put(contents, data, *, age_ms=0):
    draft = await contents.draft()
    await draft.write(data)
    stored = await draft.commit()
    draft.close()
    second = (NOW_MS - age_ms) / 1000
    os.utime(contents.path(stored.sha256), (second, second))
    return stored.sha256


async def record(store, sha256):
    file = File(
        id=new_file_id(),
        user=LOCAL_USER,
        filename="a",
        purpose="user_data",
        media_type="text/plain",
        bytes=1,
        sha256=sha256,
        created_ms=1,
    )
    await store.run(lambda store: store.add_file(file))


async def test_the_sweep_takes_what_is_old_and_has_no_record(store, contents):
    recorded = await put(contents, b"recorded", age_ms=2 * SWEEP_AFTER_MS)
    await record(store, recorded)
    young = await put(contents, b"young", age_ms=SWEEP_AFTER_MS // 2)
    forgotten = await put(contents, b"forgotten", age_ms=2 * SWEEP_AFTER_MS)

    assert await sweep(store, contents, NOW_MS) == (forgotten,)

    assert contents.path(recorded).exists()
    assert contents.path(young).exists()
    assert not contents.path(forgotten).exists()
    assert await sweep(store, contents, NOW_MS) == ()


async def test_a_sweep_asks_for_many_at_once(store, contents):
    for number in range(250):
        await put(contents, b"%d" % number, age_ms=2 * SWEEP_AFTER_MS)
    before = store.runs

    removed = await sweep(store, contents, NOW_MS)

    assert len(removed) == 250
    assert store.runs - before == 2 + 2 * 250, "two questions for all, two at each removal"


async def test_what_can_not_be_removed_is_left_and_the_others_are_not(store, contents):
    good, bad = await put(contents, b"good"), await put(contents, b"bad")
    real = contents.remove

    async def remove(sha256, is_unused):
        if sha256 == bad:
            raise StoreFailed("Input/output error")
        return await real(sha256, is_unused)

    contents.remove = remove
    assert await discard(store, contents, [bad, good]) == (good,)


async def test_what_has_a_record_again_is_not_discarded(store, contents):
    sha256 = await put(contents, b"again")
    await record(store, sha256)

    assert await discard(store, contents, [sha256]) == ()
    await trio.lowlevel.checkpoint()
    assert contents.path(sha256).exists()

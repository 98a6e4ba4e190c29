import errno
import fcntl
import hashlib
import os

import pytest
import trio

from antiphon.errors import StorageFull, StoreFailed
from antiphon.persistence.contents import FolderContents

HELLO = hashlib.sha256(b"hello").hexdigest()


@pytest.fixture
async def contents(tmp_path) -> FolderContents:
    contents = FolderContents(tmp_path / "contents")
    await contents.prepare()
    return contents


async def put(contents, data=b"hello"):
    draft = await contents.draft()
    try:
        await draft.write(data)
        stored = await draft.commit()
        await draft.confirm()
    finally:
        draft.close()
    return stored


async def read(contents, sha256):
    reader = await contents.open(sha256)
    if reader is None:
        return None
    try:
        return b"".join([piece async for piece in _pieces(reader)])
    finally:
        reader.close()


async def _pieces(reader):
    while piece := await reader.read():
        yield piece


async def unused():
    await trio.lowlevel.checkpoint()
    return True


async def used():
    await trio.lowlevel.checkpoint()
    return False


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def test_a_content_lies_under_its_hash_and_nothing_else_remains(contents, tmp_path):
    stored = await put(contents)

    assert (stored.sha256, stored.size) == (HELLO, 5)
    assert files(tmp_path / "contents") == [f"{HELLO[:2]}/{HELLO}"]
    assert await read(contents, HELLO) == b"hello"


async def test_nobody_else_may_read_the_files(contents, tmp_path):
    await put(contents)

    assert contents.path(HELLO).stat().st_mode & 0o077 == 0


async def test_a_long_content_comes_back_byte_for_byte(contents):
    data = os.urandom(3 * 1024 * 1024 + 17)
    draft = await contents.draft()
    for start in range(0, len(data), 65_536):
        await draft.write(data[start : start + 65_536])
    stored = await draft.commit()
    draft.close()

    assert stored.sha256 == hashlib.sha256(data).hexdigest()
    assert await read(contents, stored.sha256) == data


async def test_two_uploads_of_the_same_bytes_at_once_are_kept_once(contents, tmp_path):
    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(put, contents)

    assert files(tmp_path / "contents") == [f"{HELLO[:2]}/{HELLO}"]


async def test_a_draft_that_is_given_up_leaves_nothing(contents, tmp_path):
    draft = await contents.draft()
    await draft.write(b"x" * 2_000_000)
    draft.close()
    draft.close()

    assert files(tmp_path / "contents") == []


async def test_an_empty_file_is_a_content_too(contents):
    stored = await put(contents, b"")

    assert stored.size == 0
    assert await read(contents, stored.sha256) == b""


async def test_what_was_never_there_is_none(contents):
    assert await contents.open(HELLO) is None


@pytest.mark.parametrize("name", ["../secret", "a" * 63, "A" * 64, "", f"{'a' * 64}/x"])
async def test_what_is_no_hash_names_no_file(contents, name):
    with pytest.raises(ValueError, match="not a SHA-256"):
        await contents.open(name)


async def test_a_content_without_a_record_is_removed(contents, tmp_path):
    await put(contents)

    assert await contents.remove(HELLO, unused)
    assert files(tmp_path / "contents") == []


async def test_a_content_with_a_record_stays(contents):
    await put(contents)

    assert not await contents.remove(HELLO, used)
    assert await read(contents, HELLO) == b"hello"


async def test_removing_what_is_gone_already_succeeds(contents):
    assert await contents.remove(HELLO, unused)


async def test_a_record_written_during_a_removal_brings_the_content_back(contents, tmp_path):
    await put(contents)
    answers = iter([True, False])

    async def is_unused():
        await trio.lowlevel.checkpoint()
        return next(answers)

    assert not await contents.remove(HELLO, is_unused)
    assert await read(contents, HELLO) == b"hello"
    assert files(tmp_path / "contents") == [f"{HELLO[:2]}/{HELLO}"]


async def test_an_upload_confirms_a_content_that_was_removed_before_its_record(contents):
    await put(contents)
    draft = await contents.draft()
    await draft.write(b"hello")
    await draft.commit()

    await contents.remove(HELLO, unused)
    await draft.confirm()
    draft.close()

    assert await read(contents, HELLO) == b"hello"


async def test_an_upload_that_confirms_in_the_midst_of_a_removal_keeps_its_content(contents):
    await put(contents)
    draft = await contents.draft()
    await draft.write(b"hello")
    await draft.commit()
    asked = 0

    async def is_unused():
        nonlocal asked
        asked += 1
        if asked == 2:  # the content is aside; the record is written after this look
            await draft.confirm()
        return True

    assert await contents.remove(HELLO, is_unused)
    draft.close()

    assert await read(contents, HELLO) == b"hello"


async def test_a_database_that_fails_during_a_removal_brings_the_content_back(contents):
    await put(contents)
    answers = iter([True])

    async def is_unused():
        await trio.lowlevel.checkpoint()
        for answer in answers:
            return answer
        raise StoreFailed("no")

    with pytest.raises(StoreFailed):
        await contents.remove(HELLO, is_unused)
    assert await read(contents, HELLO) == b"hello"


async def test_a_download_outlives_the_removal(contents):
    await put(contents)
    reader = await contents.open(HELLO)

    await contents.remove(HELLO, unused)

    assert await reader.read() == b"hello"
    assert await reader.read() == b""
    reader.close()


async def test_a_reader_that_is_forgotten_is_closed(contents):
    await put(contents)
    reader = await contents.open(HELLO)
    closer = reader._closer

    del reader
    await trio.lowlevel.checkpoint()  # until then Trio holds the answer of the last wait

    assert not closer.alive


async def test_a_start_clears_the_drafts_of_dead_servers_and_no_others(contents, tmp_path):
    dead = tmp_path / "contents" / "drafts" / "dead"
    dead.write_bytes(b"x")
    living = await contents.draft()
    await living.write(b"hello")

    assert await FolderContents(tmp_path / "contents").prepare() == 1
    assert not dead.exists()
    assert (await living.commit()).sha256 == HELLO
    living.close()


async def test_a_start_puts_back_what_a_dead_server_was_removing(contents, tmp_path, monkeypatch):
    await put(contents)
    aside = tmp_path / "contents" / "removed" / f"{HELLO}-00"
    contents.path(HELLO).rename(aside)

    assert await contents.prepare() == 0, "it may be a living server's"
    monkeypatch.setattr("antiphon.persistence.contents._ABANDONED_S", -1)
    assert await contents.prepare() == 1
    assert await read(contents, HELLO) == b"hello"
    assert not aside.exists()


async def test_only_old_contents_are_offered_to_the_sweep_and_a_new_upload_makes_them_new(contents):
    await put(contents)
    os.utime(contents.path(HELLO), (1000, 1000))
    assert await contents.older_than(2_000_000) == (HELLO,)

    await put(contents)

    assert await contents.older_than(2_000_000) == ()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
async def test_a_full_disk_has_an_error_of_its_own(contents, tmp_path, monkeypatch, number):
    draft = await contents.draft()

    def full(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageFull):
        await draft.commit()
    draft.close()
    assert files(tmp_path / "contents") == []


async def test_other_troubles_of_the_disk_are_told_apart(contents, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    draft = await contents.draft()
    monkeypatch.setattr("os.fsync", broken)
    with pytest.raises(StoreFailed) as caught:
        await draft.commit()
    draft.close()

    assert not isinstance(caught.value, StorageFull)


async def test_a_draft_taken_for_abandoned_before_it_was_locked_is_made_again(
    contents, tmp_path, monkeypatch
):
    real, stolen = fcntl.flock, []

    def steal_first(file, operation):
        if not stolen:
            stolen.append(file.name)
            os.unlink(file.name)
        real(file, operation)

    monkeypatch.setattr("fcntl.flock", steal_first)
    draft = await contents.draft()
    await draft.write(b"hello")

    assert (await draft.commit()).sha256 == HELLO
    draft.close()

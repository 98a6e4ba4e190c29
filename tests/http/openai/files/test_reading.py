"""What the API says of the reading of a file."""

from collections.abc import AsyncIterator

import pytest
import trio

from antiphon.document_records import DocumentFailure
from antiphon.errors import StoreUnavailable
from antiphon.ids import new_node_id
from antiphon.testing.stateful import StatefulApi, stateful_api
from antiphon.testing.stored_documents import LEASE_MS, made

NODE = new_node_id()
FAR_MS = 10**15


class Readers:
    """Hears that there is something to be read; a test does the reading."""

    def __init__(self) -> None:
        self.told = 0

    def files_added(self) -> None:
        self.told += 1


@pytest.fixture
def readers() -> Readers:
    return Readers()


@pytest.fixture
async def api(tmp_path, http_settings, readers) -> AsyncIterator[StatefulApi]:
    async with stateful_api(tmp_path, http_settings, searching=readers) as api:
        yield api


async def upload(api, purpose="user_data"):
    answer = await api.client.post(
        "/v1/files", files={"file": ("a.txt", b"hello")}, data={"purpose": purpose}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


async def shown(api, file):
    return (await api.client.get(f"/v1/files/{file['id']}")).json()


async def test_what_is_for_messages_is_read_at_once(api, readers):
    file = await upload(api)

    assert readers.told == 1
    assert file["status"] == "processed"
    assert file["reading"] == {
        "status": "pending",
        "progress": 0.0,
        "pages": None,
        "notices": [],
        "error": None,
    }
    assert await shown(api, file) == file


async def test_what_is_for_something_else_is_not_read_before_somebody_wants_it(api, readers):
    file = await upload(api, "assistants")

    assert readers.told == 0
    assert "reading" not in file
    assert "reading" not in await shown(api, file)


async def test_what_was_left_out_is_told_also_in_the_list(api):
    file = await upload(api)
    await api.store.run(lambda store: made(store, NODE, ["one", "two"], FAR_MS))

    reading = (await shown(api, file))["reading"]

    assert (reading["status"], reading["progress"]) == ("ready", 1.0)
    assert reading["notices"] == ["2 pages"]
    assert (await api.client.get("/v1/files")).json()["data"][0]["reading"] == reading


async def test_a_file_that_can_not_be_read_says_why(api):
    file = await upload(api)

    async def fail(store):
        (work,) = await store.take_documents(NODE, FAR_MS, lease_ms=FAR_MS + LEASE_MS)
        failure = DocumentFailure(code="encrypted", message="It has a password.")
        await store.fail_document(work.document.id, NODE, failure)

    await api.store.run(fail)

    reading = (await shown(api, file))["reading"]
    assert reading["status"] == "failed"
    assert reading["error"] == {"code": "encrypted", "message": "It has a password."}


async def test_an_upload_succeeds_where_its_reading_can_not_begin(api, readers):
    before = api.store.runs

    async def fail():
        await trio.lowlevel.checkpoint()
        if api.store.runs == before + 2:  # the first one wrote the record
            raise StoreUnavailable("busy")

    api.store.before = fail
    file = await upload(api)

    assert "reading" not in file
    assert readers.told == 0
    assert await shown(api, file) == file

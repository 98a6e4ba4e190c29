import hashlib
import os
import time

import pytest
import trio

from antiphon.errors import StorageFull, StoreUnavailable
from antiphon.settings import HttpSettings

BOUNDARY = "frontier"


def form(*parts, end=True):
    """A multipart body of (headers, content) pairs, as raw as a test wants it."""
    lines = [
        b"--%b\r\n%b\r\n\r\n%b\r\n" % (BOUNDARY.encode(), head.encode(), content)
        for head, content in parts
    ]
    return b"".join(lines) + (f"--{BOUNDARY}--\r\n".encode() if end else b"")


def named(name, extra=""):
    return f'Content-Disposition: form-data; name="{name}"{extra}'


PURPOSE = (named("purpose"), b"user_data")
FILE = (named("file", '; filename="a.txt"'), b"hello")


async def post_raw(api, body, boundary=BOUNDARY):
    kind = f"multipart/form-data; boundary={boundary}"
    return await api.client.post("/v1/files", content=body, headers={"content-type": kind})


async def upload(api, content=b"hello", name="a.txt", **fields):
    answer = await api.client.post(
        "/v1/files", files={"file": (name, content)}, data={"purpose": "user_data"} | fields
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_file_comes_back_as_it_went(api):
    content = os.urandom(5_000_000)

    made = await upload(api, content, "ducks.bin")
    answer = await api.client.get(f"/v1/files/{made['id']}/content")

    assert made["id"].startswith("file-")
    assert answer.content == content
    assert answer.headers["content-length"] == "5000000"


async def test_a_file_has_the_keys_of_the_api(api):
    made = await upload(api)

    assert abs(made.pop("created_at") - time.time()) < 60
    assert made.pop("id")
    assert made == {
        "object": "file",
        "bytes": 5,
        "filename": "a.txt",
        "purpose": "user_data",
        "status": "processed",
    }


async def test_a_file_is_read_back_as_it_was_made(api):
    made = await upload(api)

    assert (await api.client.get(f"/v1/files/{made['id']}")).json() == made


async def test_a_content_leaves_as_bytes_to_be_saved_whatever_it_is(api):
    made = await upload(api, b"<script>alert(1)</script>", "é.html")

    headers = (await api.client.get(f"/v1/files/{made['id']}/content")).headers

    assert headers["content-type"] == "application/octet-stream"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-disposition"] == (
        "attachment; filename=\"_.html\"; filename*=UTF-8''%C3%A9.html"
    )


async def test_head_of_a_content_is_its_headers_alone(api):
    made = await upload(api)

    answer = await api.client.head(f"/v1/files/{made['id']}/content")

    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == "5"


async def test_an_expiry_counts_from_the_upload(api):
    made = await upload(
        api, **{"expires_after[anchor]": "created_at", "expires_after[seconds]": "3600"}
    )

    assert made["expires_at"] == made["created_at"] + 3600


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"purpose": "world_domination"}, "purpose"),
        ({"expires_after[anchor]": "created_at"}, "expires_after.seconds"),
        ({"expires_after[seconds]": "3600"}, "expires_after.anchor"),
        (
            {"expires_after[anchor]": "now", "expires_after[seconds]": "3600"},
            "expires_after.anchor",
        ),
        *(
            (
                {"expires_after[anchor]": "created_at", "expires_after[seconds]": seconds},
                "expires_after.seconds",
            )
            for seconds in ("3599", "2592001", "soon", "")
        ),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_a_wrong_field_is_named_and_the_file_is_not_kept(api, fields, param):
    answer = await api.client.post(
        "/v1/files", files={"file": ("a.txt", b"x")}, data={"purpose": "user_data"} | fields
    )

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param
    assert api.files() == []


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (form(FILE), "purpose"),
        (form(PURPOSE), "file"),
        (form(PURPOSE, (named("file"), b"hello")), "file"),
        (form(PURPOSE, FILE, FILE), "file"),
        (form(PURPOSE, PURPOSE, FILE), "purpose"),
        (form(FILE, (named("purpose"), b"\xff")), "purpose"),
        (form(FILE, (named("purpose"), b"x" * 5000)), "purpose"),
        (form(FILE, ("Content-Disposition: form-data", b"x")), None),
        (form(FILE, ("X-Nothing: x", b"x")), None),
        (form(FILE, ("x" * 400_000, b"x")), None),
        (form(FILE, *[(named("purpose"), b"")] * 20), "purpose"),
        (form(PURPOSE, FILE, end=False), None),
        (b"", None),
        (b"not a form at all", None),
        (b"x" * 600_000, None),
        (b"--frontier\r\n\xff\xfe: \r\n\r\n", None),
    ],
)
async def test_a_form_that_can_not_be_read_is_refused_and_nothing_is_kept(api, body, param):
    answer = await post_raw(api, body)

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param
    assert api.files() == []


@pytest.mark.parametrize("boundary", ["", "é", "x" * 201])
async def test_a_boundary_that_is_none_is_refused(api, boundary):
    kind = f"multipart/form-data; boundary={boundary}".encode()
    answer = await api.client.post("/v1/files", content=b"x", headers={"content-type": kind})

    assert answer.status_code == 400


async def test_another_kind_of_body_is_a_415(api):
    answer = await api.client.post("/v1/files", json={"purpose": "user_data"})

    assert answer.status_code == 415
    assert answer.json()["error"]["code"] == "unsupported_media_type"


async def test_a_form_in_bytes_one_at_a_time_is_read_like_any(api):
    async def trickle():
        for byte in form(PURPOSE, FILE):
            yield bytes([byte])

    answer = await post_raw(api, trickle())

    assert answer.status_code == 200
    assert answer.json()["bytes"] == 5


async def test_a_content_full_of_line_ends_and_almost_boundaries_is_kept(api):
    content = b"\r\n--frontie\r\n\r\r\n--frontierx" + b"\r" * 300_000 + b"\r\n--front"

    made = (await post_raw(api, form(PURPOSE, (FILE[0], content)))).json()

    assert (await api.client.get(f"/v1/files/{made['id']}/content")).content == content


class TestBounds:
    @pytest.fixture
    def http_settings(self):
        return HttpSettings(max_file_bytes=1_000_000, max_body_bytes=100_000, body_timeout_s=0.5)

    async def test_a_file_may_be_longer_than_other_bodies(self, api):
        assert (await upload(api, b"x" * 1_000_000))["bytes"] == 1_000_000

    async def test_one_byte_more_than_the_bound_is_a_413(self, api):
        answer = await api.client.post(
            "/v1/files",
            files={"file": ("a", b"x" * 1_000_001)},
            data={"purpose": "user_data"},
        )

        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "request_too_large"
        assert api.files() == []

    async def test_a_body_that_announces_too_much_is_refused_before_it_is_read(self, api):
        client = await api.served.connect()
        await client.send(
            b"POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\nExpect: 100-continue\r\n\r\n"
        )

        assert (await client.read_head()).startswith(b"HTTP/1.1 413 ")

    async def test_an_upload_that_waits_for_100_continue_is_asked_for(self, api):
        client = await api.served.connect()
        await client.send(
            b"POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\nExpect: 100-continue\r\n\r\n"
        )

        assert (await client.read_head()).startswith(b"HTTP/1.1 100 ")

    async def test_a_chunked_body_without_end_is_cut_off(self, api):
        async def endless():
            yield form(PURPOSE, end=False)
            yield f"--{BOUNDARY}\r\n{FILE[0]}\r\n\r\n".encode()
            for _ in range(100):
                yield b"x" * 65_536

        answer = await post_raw(api, endless())

        assert answer.status_code == 413
        assert api.files() == []

    async def test_an_upload_that_stalls_is_given_up(self, api):
        client = await api.served.connect()
        await client.send(
            b"POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n"
            b"Content-Type: multipart/form-data; boundary=frontier\r\n\r\n"
            + form(PURPOSE, FILE, end=False)
        )

        assert (await client.read_head()).startswith(b"HTTP/1.1 408 ")
        assert api.files() == []


async def test_an_upload_whose_client_leaves_is_not_kept(api):
    client = await api.served.connect()
    head = (
        "POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n"
    )
    await client.send(head.encode() + form(PURPOSE, end=False))
    await client.send(f"--{BOUNDARY}\r\n{FILE[0]}\r\n\r\n".encode() + b"x" * 3_000_000)
    client.close()
    await api.served.end()

    assert api.files() == []


async def test_an_upload_that_nobody_reads_fills_no_memory(api):
    """The disk is slow; meanwhile the client can't send for ever."""
    accepted = 0
    gate = trio.Event()

    class Slow:
        async def write(self, data):
            await gate.wait()

        def close(self):
            pass

    async def draft():
        await trio.lowlevel.checkpoint()
        return Slow()

    api.contents.draft = draft
    client = await api.served.connect()
    head = (
        "POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n"
    )
    await client.send(head.encode() + f"--{BOUNDARY}\r\n{FILE[0]}\r\n\r\n".encode())
    with trio.move_on_after(0.5):  # a send that isn't taken is what is waited for
        while accepted < 60_000_000:
            await client.send(b"x" * 65_536)
            accepted += 65_536
    gate.set()

    assert accepted < 16_000_000, "what sockets and a few pieces hold, and not the file"


async def test_a_full_disk_is_a_507_that_is_not_to_be_retried(api, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("antiphon.persistence.contents.os.fsync", full)
    answer = await api.client.post(
        "/v1/files", files={"file": ("a", b"x")}, data={"purpose": "user_data"}
    )

    assert answer.status_code == 507
    assert answer.json()["error"]["code"] == "storage_full"
    assert answer.headers["x-should-retry"] == "false"
    assert api.files() == []


async def test_a_full_database_is_a_507_too(api):
    async def full():
        raise StorageFull("database or disk is full")

    api.store.before = full
    answer = await api.client.get("/v1/files")

    assert answer.status_code == 507


async def test_a_store_that_is_away_is_a_503_and_leaves_the_content_to_the_sweep(api):
    async def away():
        raise StoreUnavailable("down")

    api.store.before = away
    answer = await api.client.post(
        "/v1/files", files={"file": ("a", b"hello")}, data={"purpose": "user_data"}
    )

    assert answer.status_code == 503
    digest = hashlib.sha256(b"hello").hexdigest()
    assert api.files() == [f"{digest[:2]}/{digest}"], "its record may have been written"


async def test_equal_files_are_one_content_until_the_last_is_deleted(api):
    first, second = await upload(api), await upload(api, name="b.txt")

    kept = (await api.client.delete(f"/v1/files/{first['id']}")).json()
    assert (kept["id"], kept["object"], kept["deleted"]) == (first["id"], "file", True)
    assert kept["receipt"]["contents"] == []
    assert (await api.client.get(f"/v1/files/{second['id']}/content")).content == b"hello"

    gone = (await api.client.delete(f"/v1/files/{second['id']}")).json()
    assert gone["receipt"]["contents"] == [hashlib.sha256(b"hello").hexdigest()]
    assert gone["receipt"]["rows"]["files"] == 1
    assert api.files() == []


async def test_uploads_and_deletions_of_the_same_content_at_once_lose_nothing(api):
    kept = []

    async def come_and_go(stays):
        for _ in range(6):
            made = await upload(api)
            answer = await api.client.get(f"/v1/files/{made['id']}/content")
            assert answer.content == b"hello"
            if stays:
                kept.append(made["id"])
            else:
                await api.client.delete(f"/v1/files/{made['id']}")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come_and_go, True)
        for _ in range(4):
            nursery.start_soon(come_and_go, False)

    for file in kept:
        assert (await api.client.get(f"/v1/files/{file}/content")).content == b"hello"
    for file in kept:
        await api.client.delete(f"/v1/files/{file}")
    assert api.files() == []


async def test_a_deletion_during_a_download_lets_it_end(api):
    content = os.urandom(20_000_000)
    made = await upload(api, content)

    async with api.client.stream("GET", f"/v1/files/{made['id']}/content") as answer:
        pieces = answer.aiter_raw()
        got = [await anext(pieces)]
        assert (await api.client.delete(f"/v1/files/{made['id']}")).status_code == 200
        got += [piece async for piece in pieces]

    assert b"".join(got) == content


async def test_a_record_whose_content_is_lost_is_a_500_and_no_empty_file(api):
    made = await upload(api)
    api.contents.path(hashlib.sha256(b"hello").hexdigest()).unlink()

    answer = await api.client.get(f"/v1/files/{made['id']}/content")

    assert answer.status_code == 500


async def test_a_content_that_can_not_be_removed_is_postponed_and_says_so(api, monkeypatch):
    made = await upload(api)

    def stuck(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("antiphon.persistence.contents._move", stuck)
    receipt = (await api.client.delete(f"/v1/files/{made['id']}")).json()["receipt"]

    assert receipt["contents"] == []
    assert receipt["postponed"] == [hashlib.sha256(b"hello").hexdigest()]
    assert (await api.client.get(f"/v1/files/{made['id']}")).status_code == 404


async def test_files_are_listed_newest_first_by_purpose_and_page(api):
    made = [(await upload(api, name=f"{n}"))["id"] for n in range(3)]
    made.append((await upload(api, purpose="batch"))["id"])

    everything = (await api.client.get("/v1/files")).json()
    batch = (await api.client.get("/v1/files", params={"purpose": "batch"})).json()
    first = (await api.client.get("/v1/files", params={"limit": 2, "order": "asc"})).json()
    rest = (
        await api.client.get("/v1/files", params={"order": "asc", "after": first["last_id"]})
    ).json()

    assert [each["id"] for each in everything["data"]] == made[::-1]
    assert [each["id"] for each in batch["data"]] == made[3:]
    assert [each["id"] for each in first["data"] + rest["data"]] == made
    assert (first["has_more"], rest["has_more"]) == (True, False)


async def test_another_users_file_is_not_found(api, mallory):
    made = await upload(api, b"secret")
    api.accounts.principal = mallory

    for method, path in [("GET", ""), ("GET", "/content"), ("DELETE", "")]:
        answer = await api.client.request(method, f"/v1/files/{made['id']}{path}")
        assert answer.status_code == 404
        assert answer.json()["error"]["param"] == "file_id"
    assert (await api.client.get("/v1/files")).json()["data"] == []


@pytest.mark.parametrize("id_", ["file-none", "%00", "..", "..%2f..%2fetc%2fpasswd"])
async def test_what_is_no_file_is_not_found(api, id_):
    for path in ("", "/content"):
        assert (await api.client.get(f"/v1/files/{id_}{path}")).status_code == 404

"""Files for the next message: found, sent, listed, let go of."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from rich.console import Console

from antiphon.errors import ApiRefused
from antiphon.terminal.attached import Attached, check_seen
from antiphon.terminal.client import ApiClient
from antiphon.terminal.screen import Screen
from antiphon.terminal.wire import Part
from antiphon.testing.images import GIF, WEBP, jpeg, png


@dataclass
class Server(httpx2.BaseTransport):
    """Takes files. `models` are those that it has."""

    models: list[dict[str, Any]] = field(default_factory=list)
    uploads: list[bytes] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = request.read()
        if request.method == "DELETE":
            self.deleted.append(request.url.path)
            return httpx2.Response(200, json={})
        if request.url.path == "/v1/models":
            return httpx2.Response(200, json={"data": self.models})
        self.uploads.append(body)
        assert int(request.headers["content-length"]) == len(body)
        number = len(self.uploads)
        name = body.partition(b'filename="')[2].partition(b'"')[0].decode()
        purpose = "vision" if b"\r\nvision\r\n" in body else "user_data"
        answer = {"id": f"file-{number}", "filename": name, "bytes": 5, "purpose": purpose}
        return httpx2.Response(200, json=answer)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def shown() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def attached(server: Server, shown: io.StringIO) -> Iterator[Attached]:
    client = ApiClient("http://127.0.0.1:8000", None, transport=server)
    console = Console(file=shown, soft_wrap=True)
    yield Attached(client, Screen(console, aside=console, is_rich=False))
    client.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a.txt", "b.txt", "my file.txt"):
        (tmp_path / name).write_text("12345")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "count"),
    [
        ("a.txt", 1),
        ("~/a.txt", 1),
        ("my file.txt", 1),
        (r"my\ file.txt", 1),
        ("'my file.txt' b.txt", 2),
    ],
)
def test_a_file_is_found_however_its_name_is_written(
    attached: Attached, server: Server, folder: Path, typed: str, count: int
):
    attached.add(typed, "m")

    assert len(attached.parts) == count
    assert b"user_data" in server.uploads[0]
    assert b"12345" in server.uploads[0]


@pytest.mark.parametrize("typed", ["none.txt", ".", "'open"])
def test_what_can_not_be_read_is_refused(
    attached: Attached, server: Server, folder: Path, typed: str
):
    with pytest.raises(ApiRefused):
        attached.add(typed, "m")

    assert server.uploads == []


def test_a_file_goes_with_one_message(attached: Attached, folder: Path, shown: io.StringIO):
    attached.add("a.txt b.txt", "m")
    attached.show()
    attached.note_tried()
    attached.note_sent(attached.parts)

    assert attached.parts == ()
    assert "a.txt" in shown.getvalue()
    assert "5 bytes" in shown.getvalue()


@pytest.mark.parametrize("data", [png(), jpeg(), GIF, WEBP], ids=["png", "jpeg", "gif", "webp"])
def test_a_picture_is_for_a_model_to_see_whatever_it_is_called(
    attached: Attached, server: Server, tmp_path: Path, data: bytes
):
    server.models = [{"id": "m", "vision": True}]
    file = tmp_path / "cat.dat"
    file.write_bytes(data)

    attached.add(str(file), "m")

    [part] = attached.parts
    assert (part.type, part.file_id) == ("input_image", "file-1")


def test_what_only_its_name_calls_a_picture_is_read(
    attached: Attached, server: Server, tmp_path: Path
):
    (tmp_path / "cat.png").write_text("no picture")

    attached.add(str(tmp_path / "cat.png"), "m")

    assert [part.type for part in attached.parts] == ["input_file"]


def test_nothing_of_a_picture_is_sent_for_a_model_that_sees_none(
    attached: Attached, server: Server, tmp_path: Path
):
    server.models = [{"id": "blind"}, {"id": "eyes", "vision": True}]
    (tmp_path / "cat.png").write_bytes(png())

    with pytest.raises(ApiRefused) as refused:
        attached.add(str(tmp_path / "cat.png"), "blind")

    assert "cat.png is a picture, and blind can't see any. These can: eyes." in str(refused.value)
    assert (server.uploads, attached.parts) == ([], ())


def test_who_is_left_with_models_that_see_none_is_told_so(server: Server):
    server.models = [{"id": "blind"}]
    client = ApiClient("http://127.0.0.1:8000", None, transport=server)
    parts = [Part(type="input_image", filename=name) for name in ("a.png", "b.png")]

    with pytest.raises(ApiRefused) as refused:
        check_seen(client, "blind", parts)
    client.close()

    assert "a.png, b.png are pictures" in str(refused.value)
    assert "No model of this server can" in str(refused.value)


def test_only_what_was_never_sent_is_deleted(attached: Attached, server: Server, folder: Path):
    attached.add("a.txt", "m")
    attached.note_tried()
    attached.add("b.txt", "m")
    attached.leave()

    assert server.deleted == ["/v1/files/file-2"]


def test_what_is_detached_is_deleted(attached: Attached, server: Server, folder: Path):
    attached.add("a.txt", "m")
    attached.drop()

    assert attached.parts == ()
    assert server.deleted == ["/v1/files/file-1"]


def test_progress_counts_every_byte(server: Server, tmp_path: Path):
    file = tmp_path / "large.bin"
    file.write_bytes(bytes(200_000))
    sent: list[int] = []

    client = ApiClient("http://127.0.0.1:8000", None, transport=server)
    client.upload(file, sent.append, purpose="user_data")
    client.close()

    assert sum(sent) == 200_000
    assert len(sent) > 2

"""Files for the next message: found, sent, listed, let go of."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from rich.console import Console

from antiphon.errors import ApiRefused
from antiphon.terminal.attached import Attached
from antiphon.terminal.client import ApiClient
from antiphon.terminal.screen import Screen


@dataclass
class Server(httpx2.BaseTransport):
    """Takes files."""

    uploads: list[bytes] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = request.read()
        if request.method == "DELETE":
            self.deleted.append(request.url.path)
            return httpx2.Response(200, json={})
        self.uploads.append(body)
        assert int(request.headers["content-length"]) == len(body)
        number = len(self.uploads)
        name = body.partition(b'filename="')[2].partition(b'"')[0].decode()
        return httpx2.Response(200, json={"id": f"file-{number}", "filename": name, "bytes": 5})


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
    attached.add(typed)

    assert len(attached.ids) == count
    assert b"user_data" in server.uploads[0]
    assert b"12345" in server.uploads[0]


@pytest.mark.parametrize("typed", ["none.txt", ".", "'open"])
def test_what_can_not_be_read_is_refused(
    attached: Attached, server: Server, folder: Path, typed: str
):
    with pytest.raises(ApiRefused):
        attached.add(typed)

    assert server.uploads == []


def test_a_file_goes_with_one_message(attached: Attached, folder: Path, shown: io.StringIO):
    attached.add("a.txt b.txt")
    attached.show()
    attached.note_tried()
    attached.note_sent(attached.ids)

    assert attached.ids == ()
    assert "a.txt" in shown.getvalue()
    assert "5 bytes" in shown.getvalue()


def test_only_what_was_never_sent_is_deleted(attached: Attached, server: Server, folder: Path):
    attached.add("a.txt")
    attached.note_tried()
    attached.add("b.txt")
    attached.leave()

    assert server.deleted == ["/v1/files/file-2"]


def test_what_is_detached_is_deleted(attached: Attached, server: Server, folder: Path):
    attached.add("a.txt")
    attached.drop()

    assert attached.ids == ()
    assert server.deleted == ["/v1/files/file-1"]


def test_progress_counts_every_byte(server: Server, tmp_path: Path):
    file = tmp_path / "large.bin"
    file.write_bytes(bytes(200_000))
    sent: list[int] = []

    client = ApiClient("http://127.0.0.1:8000", None, transport=server)
    client.upload(file, sent.append)
    client.close()

    assert sum(sent) == 200_000
    assert len(sent) > 2

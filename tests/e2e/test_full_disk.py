"""A disk without space, for real: a file system of a few megabytes, filled while answers run."""

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from antiphon.testing.corpus import answered
from antiphon.testing.dialogue import ENDLESS
from antiphon.testing.models import models_folder
from antiphon.testing.process import running_server
from antiphon.testing.tenants import antiphon

pytestmark = pytest.mark.engine


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Of 8 MiB. Without the right to mount one, this can't be tried at all."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast


def test_a_full_disk_refuses_clearly_loses_nothing_and_is_over_when_there_is_space(
    model_dir: Path, disk: Path
):
    (disk / "models").symlink_to(models_folder())
    database = {
        "ANTIPHON_DATA_DIR": str(disk),
        "ANTIPHON_DATABASE_URL": f"sqlite:///{disk}/antiphon.db",
    }
    with running_server(**database) as server, httpx2.Client(base_url=server.base_url) as client:
        client.timeout = httpx2.Timeout(60)
        conversation = answered(client.post("/conversations", json={}))["id"]
        turn = {"conversation": conversation, "max_output_tokens": 16}
        kept = answered(client.post("/responses", json=turn | {"input": "Before."}))
        running = answered(client.post("/responses", json=ENDLESS | {"background": True}))["id"]
        lines: list[str] = []
        begun = threading.Event()

        def read() -> None:
            body = ENDLESS | {"stream": True, "max_output_tokens": 250}
            with client.stream("POST", "/responses", json=body) as reply:
                for line in reply.iter_lines():
                    lines.append(line)
                    if "output_text.delta" in line:
                        begun.set()

        reader = threading.Thread(target=read)
        reader.start()
        assert begun.wait(60)
        ballast = fill(disk)

        refusals = [
            client.post("/responses", json=turn | {"input": "Long words. " * 500}),
            client.post("/responses", json=turn | {"input": "Streamed.", "stream": True}),
            client.post("/conversations", json={"title": "another"}),
            client.post("/files", files={"file": ("x", bytes(9000))}, data={"purpose": "vision"}),
        ]
        full = json.loads(server.get("/health/ready")[1])
        full_metric = server.metric("antiphon_store_full")
        forgotten = client.post(
            "/responses", json={"input": "Hi.", "store": False, "max_output_tokens": 16}
        )
        items = answered(client.get(f"/conversations/{conversation}/items"))["data"]
        reader.join(60)
        refused_delete = client.delete(f"/conversations/{conversation}")

        ballast.unlink()
        again = answered(client.post("/responses", json=turn | {"input": "After."}))
        ready = server.get("/health/ready")
        answered(client.post(f"/responses/{running}/cancel"))
        server.log.wait_for("response_ended_late", within_s=60)
        listed = answered(client.get("/responses"))["data"]
        after = answered(client.get(f"/conversations/{conversation}/items"))["data"]

    for refusal in (*refusals, refused_delete):
        assert refusal.status_code == 507, refusal.text
        assert refusal.json()["error"]["code"] == "storage_full"
        assert refusal.headers["x-should-retry"] == "false"
    assert full["status"] == "ready", "what is stored can be read"
    assert full["reasons"] == ["store: no space left: what must be stored is refused"]
    assert full_metric == 1
    assert forgotten.status_code == 200
    assert len(items) == 2
    assert items[0]["content"] == kept["output"][0]["content"]
    last = json.loads(lines[-2].removeprefix("data: "))
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed"), lines[-3:]
    assert ready == (200, b'{"status":"ready","reasons":[]}')
    assert [item["content"][0]["text"] for item in after][1::2] == ["After.", "Before."]
    assert after[0]["content"] == again["output"][0]["content"]
    statuses = {each["id"]: each["status"] for each in listed}
    assert statuses.pop(running) in {"cancelled", "failed"}
    assert statuses.pop(kept["id"]) == kept["status"]
    assert statuses.pop(again["id"]) == again["status"]
    assert list(statuses.values()) == ["failed"]
    assert "problem" not in antiphon("db", "check", **database)

"""What docs/operating.md and docs/storage.md show an operator type is typed, beside a whole server
with a scripted engine: backups and what becomes of them, plans, keys, a reload."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from antiphon.settings import (
    DatabaseSettings,
    EngineSettings,
    QueueSettings,
    RetentionSettings,
)
from antiphon.testing.databases import PrivatePostgres
from antiphon.testing.examples import Block, blocks, play
from antiphon.testing.scripted_server import ScriptedServer, scripted_server
from antiphon.testing.tenants import antiphon

OPERATING, STORAGE = "docs/operating.md", "docs/storage.md"
TOKEN = "a-token-nobody-guesses"
URL, EMPTY = "postgresql://user:password@host/name", "postgresql://user:password@host/empty"
DATA, BACKUP = "/var/lib/antiphon", "/backup"
COPIES = (DATA, BACKUP)
"""Sessions with these folders in them are about backups."""
SESSIONS = blocks(OPERATING, "console")
PLANS = next(block for block in blocks(OPERATING, "toml") if "[plans.free]" in block.text)


def session(*words: str) -> Block:
    """The one that has all of these in it."""
    [found] = [block for block in SESSIONS if all(word in block.text for word in words)]
    return found


def environment(folder: Path, **others: str) -> dict[str, str]:
    return os.environ | {"ANTIPHON_DATA_DIR": str(folder), "ANTIPHON_OPS_TOKEN": TOKEN} | others


@pytest.mark.parametrize(
    "block",
    [block for block in SESSIONS if not any(copied in block.text for copied in COPIES)],
    ids=str,
)
def test_what_an_operator_types_does_what_is_shown(block: Block, tmp_path: Path):
    config, folder = tmp_path / "antiphon.toml", tmp_path / "data"
    config.write_text(PLANS.text, encoding="utf-8")
    own = {"ANTIPHON_DATA_DIR": str(folder)}
    secret = antiphon("keys", "create", "--user", "alice", **own)
    [_, prefix, *_] = antiphon("keys", "list", **own).split("\t")

    with scripted_server(folder, ops_token=TOKEN) as server:
        server.changed |= {
            "queue": QueueSettings(max_requests=64),
            "engine": EngineSettings(slots=16),
            "retention": RetentionSettings(traces_days=30),
        }
        play(
            block,
            tmp_path,
            environment(
                folder,
                ANTIPHON_CONFIG=str(config),
                ANTIPHON_OPS_BIND=server.ops.removeprefix("http://"),
            ),
            {"sk-antiphon-AbC123": prefix.removesuffix("…")},
        )
    assert secret.startswith(prefix.removesuffix("…"))


@contextlib.contextmanager
def using(server: ScriptedServer) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=f"{server.api}/v1", timeout=30) as client:
        yield client


def remembered(client: httpx2.Client) -> tuple[str, str]:
    """A conversation and a file, to be found again."""
    item = {"role": "user", "content": "What is kept?"}
    conversation = client.post("/conversations", json={"items": [item]}).json()["id"]
    upload = {"file": ("note.txt", b"kept")}
    file = client.post("/files", data={"purpose": "user_data"}, files=upload).json()["id"]
    return conversation, file


@pytest.mark.parametrize(
    ("backing_up", "restoring"),
    [
        (session("sqlite3"), session("antiphon.db*")),
        (session("pg_dump"), session("pg_restore")),
    ],
    ids=["sqlite", "postgresql"],
)
def test_what_was_lost_after_a_backup_is_there_once_it_is_restored(
    backing_up: Block, restoring: Block, tmp_path: Path, request: pytest.FixtureRequest
):
    folder, backup = tmp_path / "data", tmp_path / "copies"
    backup.mkdir()
    settings: dict[str, Any] = {}
    given = {DATA: str(folder), BACKUP: str(backup)}
    around = environment(folder)
    if "sqlite3" in backing_up.text:
        if shutil.which("sqlite3") is None:
            pytest.skip("no sqlite3 here to type")
    else:
        postgres: PrivatePostgres = request.getfixturevalue("postgres")
        url = postgres.another()
        settings["database"] = DatabaseSettings(url=url)
        given[URL] = url
        around |= {
            "ANTIPHON_DATABASE_URL": url,
            "PATH": f"{postgres.programs}:{os.environ['PATH']}",
        }

    with scripted_server(folder, **settings) as server, using(server) as client:
        conversation, file = remembered(client)
        play(backing_up, tmp_path, around, given)
        client.delete(f"/conversations/{conversation}").raise_for_status()
        client.delete(f"/files/{file}").raise_for_status()
    play(restoring, tmp_path, around, given)

    with scripted_server(folder, **settings) as server, using(server) as client:
        items = client.get(f"/conversations/{conversation}/items").json()["data"]
        assert [item["content"][0]["text"] for item in items] == ["What is kept?"]
        assert client.get(f"/files/{file}/content").content == b"kept"


def test_an_export_of_one_database_fills_another_of_the_other_kind(
    postgres: PrivatePostgres, tmp_path: Path
):
    folder, backup, empty = tmp_path / "data", tmp_path / "copies", postgres.another()
    backup.mkdir()
    given = {DATA: str(folder), BACKUP: str(backup), EMPTY: empty}

    with scripted_server(folder) as server, using(server) as client:
        conversation, _ = remembered(client)
        play(session("db export"), tmp_path, environment(folder), given)
    play(session("db import"), tmp_path, environment(folder), given)

    found = postgres.sql("SELECT id FROM conversations", database=empty.split("/")[3].split("?")[0])
    assert found == conversation


@pytest.mark.parametrize("block", blocks(STORAGE, "console"), ids=str)
def test_what_storage_shows_is_typed_too(block: Block, postgres: PrivatePostgres, tmp_path: Path):
    antiphon("db", "migrate", ANTIPHON_DATA_DIR=str(tmp_path))

    play(block, tmp_path, environment(tmp_path), {URL: postgres.another()})

"""Who can reach the API without a key: this machine, and nobody else."""

import sqlite3
from pathlib import Path

import msgspec
import pytest

from antiphon import admin
from antiphon.database import opener
from antiphon.errors import SettingsError
from antiphon.exposure import check_exposure, is_local
from antiphon.settings import DatabaseSettings, Settings


def settings(folder: Path, **fields: object) -> Settings:
    return msgspec.structs.replace(Settings(), data_dir=folder, **fields)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_a_loopback_address_is_local(host: str):
    assert is_local(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "10.0.0.1", "::ffff:10.0.0.1"])
def test_any_other_address_is_not(host: str):
    assert not is_local(host)


def test_a_local_address_needs_no_look_at_the_database(tmp_path: Path):
    check_exposure(settings(tmp_path), None)  # type: ignore[arg-type]  # never opened


@pytest.mark.parametrize("bind", ["0.0.0.0:0", "[::]:0"])
def test_without_a_key_the_api_is_bound_to_no_other_address(tmp_path: Path, bind: str):
    open_to_all = settings(tmp_path, bind=bind)

    with pytest.raises(SettingsError, match="antiphon keys create") as caught:
        check_exposure(open_to_all, opener(open_to_all))

    assert caught.value.key == "bind"


def test_with_a_key_it_is_also_once_that_is_revoked(tmp_path: Path):
    open_to_all = settings(tmp_path, bind="0.0.0.0:0")
    made = admin.with_store(
        open_to_all,
        lambda store: admin.create_key(
            store, user=None, tenant=None, name="", scopes=(), lifetime_s=None
        ),
    )
    check_exposure(open_to_all, opener(open_to_all))
    admin.with_store(open_to_all, lambda store: admin.revoke_key(store, made.key.id))

    check_exposure(open_to_all, opener(open_to_all))


def test_a_database_that_cannot_be_read_closes_the_door(tmp_path: Path):
    (tmp_path / "antiphon.db").write_bytes(b"no database at all" * 100)
    open_to_all = settings(tmp_path, bind="0.0.0.0:0")

    with pytest.raises(SettingsError, match="whether there is an API key can't be told"):
        check_exposure(open_to_all, opener(open_to_all))


def test_a_database_of_another_program_closes_the_door(tmp_path: Path):
    with sqlite3.connect(tmp_path / "antiphon.db") as theirs:
        theirs.execute("CREATE TABLE users (id TEXT)")
    theirs.close()
    open_to_all = settings(tmp_path, bind="0.0.0.0:0")

    with pytest.raises(SettingsError, match="whether there is an API key can't be told"):
        check_exposure(open_to_all, opener(open_to_all))


def test_a_database_server_that_never_answers_closes_the_door_after_the_wait(tmp_path: Path):
    open_to_all = settings(
        tmp_path,
        bind="0.0.0.0:0",
        database=DatabaseSettings(url="postgresql://u:p@127.0.0.1:1/d", start_wait_s=0.1),
    )

    with pytest.raises(SettingsError, match="can't be told") as caught:
        check_exposure(open_to_all, opener(open_to_all))

    assert "u:p" not in str(caught.value)

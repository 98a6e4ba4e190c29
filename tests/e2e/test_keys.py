"""Keys on a whole server in a process of its own, made and revoked beside it by the command."""

import os
import subprocess
import sys
import time
from pathlib import Path

import openai
import pytest

from antiphon.actors.accounts.accounts import FOUND_S, MISSING_S
from antiphon.testing.process import running_server

pytestmark = pytest.mark.engine


def antiphon(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "antiphon", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | environment,
    )


def test_keys_made_and_revoked_beside_a_running_server_count_within_seconds(tmp_path: Path):
    database = {"ANTIPHON_DATABASE_URL": f"sqlite:///{tmp_path}/antiphon.db"}
    with running_server(ANTIPHON_POLICY_ENABLED="false", **database) as server:

        def models(key: str) -> int:
            client = openai.OpenAI(base_url=server.base_url, api_key=key, max_retries=0)
            return len(client.models.list().data)

        without_keys = models("unused")
        secret = antiphon("keys", "create", **database).stdout.strip()
        time.sleep(MISSING_S + 0.5)
        with_key = models(secret)
        with pytest.raises(openai.AuthenticationError) as wrong:
            models("unused")
        revoked = antiphon("keys", "revoke", secret[:18], **database)
        time.sleep(FOUND_S + 0.5)
        with pytest.raises(openai.AuthenticationError):
            models(secret)
        metrics = server.get("/metrics")[1].decode()
        ready = server.get("/health/ready")[0]
        breakers = server.get("/ops/breakers")[1].decode()
        key = antiphon("keys", "list", **database).stdout.split("\t")[0]

    assert (without_keys, with_key, ready) == (1, 1, 200)
    assert wrong.value.code == "invalid_api_key"
    assert revoked.returncode == 0, revoked.stderr
    assert "antiphon_store_up 1.0" in metrics
    assert 'antiphon_store_units_total{kind="read",outcome="ok"}' in metrics
    assert '"name":"store"' in breakers
    with_keys = [line for line in server.log.events("request_finished") if "key" in line]
    assert {line["key"] for line in with_keys} == {key}
    assert secret not in server.log.end()
    assert "used " in antiphon("keys", "list", **database).stdout, "written at the stop"


def test_an_address_that_others_reach_is_not_bound_without_a_key(tmp_path: Path):
    refused = antiphon(
        "serve",
        ANTIPHON_BIND="0.0.0.0:0",
        ANTIPHON_OPS_BIND="127.0.0.1:0",
        ANTIPHON_DATABASE_URL=f"sqlite:///{tmp_path}/antiphon.db",
    )

    assert refused.returncode == 2
    assert "antiphon keys create" in refused.stderr.splitlines()[-1]


def test_a_damaged_database_stops_the_start_with_its_reason(tmp_path: Path):
    (tmp_path / "antiphon.db").write_bytes(b"this is no database" * 1000)

    failed = antiphon(
        "serve",
        ANTIPHON_BIND="127.0.0.1:0",
        ANTIPHON_OPS_BIND="127.0.0.1:0",
        ANTIPHON_LOG_FORMAT="json",
        ANTIPHON_DATABASE_URL=f"sqlite:///{tmp_path}/antiphon.db",
    )

    assert failed.returncode == 1
    assert "root/store did not start" in failed.stderr.splitlines()[-1]

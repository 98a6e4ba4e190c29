"""The commands about keys, users and the database, on a real SQLite file."""

import json
import logging
from pathlib import Path

import msgspec
import pytest
import structlog
from click.testing import CliRunner, Result

from antiphon import admin
from antiphon.actors.accounts.keys import hash_secret
from antiphon.cli import main
from antiphon.errors import AdminError
from antiphon.ids import new_conversation_id
from antiphon.records import Conversation
from antiphon.settings import Settings
from antiphon.testing.specimens import an_item


@pytest.fixture(autouse=True)
def _as_before(monkeypatch, tmp_path):
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setenv("ANTIPHON_DATA_DIR", str(tmp_path / "data"))
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def run(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == status, result.output
    return result


def find_key(tmp_path: Path, secret: str):
    settings = msgspec.structs.replace(Settings(), data_dir=tmp_path / "data")
    return admin.with_store(settings, lambda store: store.find_key(hash_secret(secret)))


def test_a_secret_is_alone_on_standard_output_and_never_seen_again(tmp_path):
    made = run("keys", "create", "--name", "laptop")

    secret = made.stdout.removesuffix("\n")
    key, user = find_key(tmp_path, secret)
    assert secret not in made.stderr
    assert "first key" in made.stderr
    assert (user.id, key.name, key.scopes) == ("user_local", "laptop", {"user"})
    listed = run("keys", "list").output
    assert key.prefix in listed
    assert secret not in listed
    assert not any(secret.encode() in file.read_bytes() for file in (tmp_path / "data").iterdir())


def test_a_key_is_for_the_user_that_is_named_and_made_where_new(tmp_path):
    first = run("keys", "create", "--user", "alice", "--tenant", "acme", "--scope", "operator")
    again = run("keys", "create", "--user", "alice", "--expires", "30d")

    one, other = (find_key(tmp_path, made.stdout.strip()) for made in (first, again))
    assert one[1] == other[1]
    assert (one[1].name, one[1].tenant) == ("alice", "acme")
    assert one[0].scopes == {"operator"}
    assert other[0].expires_ms - other[0].created_ms == 30 * 86_400_000
    assert "first key" not in again.stderr


def test_a_name_that_two_tenants_have_must_be_told_apart():
    run("keys", "create", "--user", "alice", "--tenant", "acme")
    run("keys", "create", "--user", "alice", "--tenant", "umbrella")

    assert "2 users" in run("keys", "create", "--user", "alice", status=1).stderr
    run("keys", "create", "--user", "alice", "--tenant", "acme")


def test_a_key_is_revoked_by_what_the_list_shows(tmp_path):
    secret = run("keys", "create").stdout.strip()
    prefix = run("keys", "list").stdout.split("\t")[1]

    run("keys", "revoke", prefix)

    assert find_key(tmp_path, secret)[0].revoked_ms is not None
    assert "\trevoked\t" in run("keys", "list").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("keys", "revoke", "key_x"), "antiphon keys list"),
        (("keys", "create", "--expires", "soon"), "30d"),
        (("users", "export", "nobody"), "antiphon users list"),
        (("users", "erase", "nobody", "--yes"), "antiphon users list"),
        (("db", "import", "/nowhere.jsonl"), "No such file"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(arguments, words):
    stderr = run(*arguments, status=1).stderr

    assert stderr.startswith("antiphon: ")
    assert stderr.count("\n") == 1
    assert words in stderr


def test_a_database_that_does_not_answer_is_one_line_without_the_password(monkeypatch):
    monkeypatch.setenv("ANTIPHON_DATABASE_URL", "postgresql://me:hunter2@127.0.0.1:1/db")

    stderr = run("keys", "list", status=1).stderr

    assert stderr.startswith("antiphon: store unavailable")
    assert "start the database" in stderr
    assert "hunter2" not in stderr


def test_an_address_of_no_database_names_its_setting(monkeypatch):
    monkeypatch.setenv("ANTIPHON_DATABASE_URL", "mysql://x")

    assert "setting database.url" in run("db", "status", status=2).stderr


def test_an_erased_user_leaves_a_receipt_and_no_key():
    run("keys", "create", "--user", "alice")

    receipt = json.loads(run("users", "erase", "alice", "--yes").stdout)

    assert receipt["rows"]["api_keys"] == 1
    assert "alice" not in run("users", "list").output
    assert run("keys", "list").stdout == ""


def test_nobody_is_erased_without_a_yes():
    run("keys", "create", "--user", "alice")

    CliRunner().invoke(main, ["users", "erase", "alice"], input="n\n")

    assert "alice" in run("users", "list").output


def test_a_users_data_is_json_and_training_can_be_refused():
    run("keys", "create", "--user", "alice")
    run("users", "training", "alice", "off")

    exported = json.loads(run("users", "export", "alice").stdout)

    assert exported["user"]["training"] is False


def test_a_database_moves_by_export_and_import(monkeypatch, tmp_path):
    secret = run("keys", "create", "--user", "alice").stdout.strip()
    file = str(tmp_path / "all.jsonl")
    run("db", "export", file)
    monkeypatch.setenv("ANTIPHON_DATA_DIR", str(tmp_path / "other"))

    run("db", "import", file)

    settings = msgspec.structs.replace(Settings(), data_dir=tmp_path / "other")
    found = admin.with_store(settings, lambda store: store.find_key(hash_secret(secret)))
    assert found is not None
    assert found[1].name == "alice"


def test_the_state_of_a_schema_is_told_before_and_after_it_is_made():
    assert "missing: antiphon db migrate" in run("db", "status").output
    assert "applied" in run("db", "migrate").output
    assert "up to date" in run("db", "status").output
    assert "up to date" in run("db", "migrate").output
    assert "users\t0" in run("db", "check").output


@pytest.mark.parametrize(
    ("text", "seconds"), [("90m", 5400), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600)]
)
def test_a_span_of_time_has_a_unit(text, seconds):
    assert admin.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "0d", "-1d", "1y", "d", "1.5h", "999999d"])
def test_what_is_no_span_is_refused(text):
    with pytest.raises(AdminError):
        admin.seconds(text)


def test_a_training_export_has_what_its_users_allow(tmp_path):
    secret = run("keys", "create", "--user", "alice").stdout.strip()
    _, user = find_key(tmp_path, secret)
    settings = msgspec.structs.replace(Settings(), data_dir=tmp_path / "data")

    async def talk(store):
        await store.create_conversation(
            Conversation(id=new_conversation_id(), user=user.id, created_ms=1, updated_ms=1),
            [an_item("Hi"), an_item("Hello!", role="assistant")],
        )

    admin.with_store(settings, talk)
    allowed = run("db", "export", "--training", str(tmp_path / "yes.jsonl")).stdout
    run("users", "training", "alice", "off")
    refused = run("db", "export", "--training", str(tmp_path / "no.jsonl")).stdout

    assert allowed.startswith("1 conversations")
    assert json.loads((tmp_path / "yes.jsonl").read_text())["messages"][1]["role"] == "assistant"
    assert refused.startswith("0 conversations")
    assert (tmp_path / "no.jsonl").read_bytes() == b""


def test_a_user_is_given_a_plan_that_the_settings_define(tmp_path):
    run("keys", "create", "--user", "alice")
    config = tmp_path / "settings.toml"
    config.write_text("[plans.paid]\nrequests_per_minute = 5\n")

    run("users", "set-plan", "alice", "paid", "--config", str(config))
    assert "\tplan paid\t" in run("users", "list").stdout

    unknown = run("users", "set-plan", "alice", "gold", "--config", str(config), status=1).stderr
    assert "gold" in unknown
    assert "paid" in unknown
    run("users", "set-plan", "alice", "--default")
    assert "\tdefault plan\t" in run("users", "list").stdout
    run("users", "set-plan", "alice", status=2)


def test_a_user_and_a_key_are_suspended_with_a_reason_and_resumed(tmp_path):
    secret = run("keys", "create", "--user", "alice").stdout.strip()

    run("users", "suspend", "alice", "--reason", "unpaid bill")
    run("keys", "suspend", find_key(tmp_path, secret)[0].id, "--reason", "leaked")
    key, user = find_key(tmp_path, secret)
    assert (key.suspended, user.suspended) == ("leaked", "unpaid bill")
    assert "suspended: unpaid bill" in run("users", "list").stdout
    assert "\tsuspended\t" in run("keys", "list").stdout

    run("users", "resume", "alice")
    run("keys", "resume", key.prefix)
    key, user = find_key(tmp_path, secret)
    assert (key.suspended, user.suspended) == (None, None)
    run("users", "suspend", "alice", status=2)

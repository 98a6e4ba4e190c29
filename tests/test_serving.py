"""One server process around a tree of one child: sockets, signals, banner, exit status."""

import fcntl
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.errors import SettingsError
from antiphon.serving import listening
from antiphon.settings import Settings
from antiphon.testing.logtail import LogTail

PATIENCE_S = 30.0

SERVER = """
import sys
from pathlib import Path

import structlog
import trio

from antiphon import serving
from antiphon.logs import configure_logging
from antiphon.reloading import Reload
from antiphon.settings import load_settings
from antiphon.supervision.root import run_tree
from antiphon.supervision.spec import ChildSpec, Grace, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor

async def polite(context):
    context.ready()
    await context.stopping.wait()
    structlog.get_logger("c").debug("leaving")

async def slow(context):
    context.ready()
    await trio.sleep_forever()

async def stuck(context):
    context.ready()
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()

async def crashing(context):
    context.ready()
    await trio.sleep(0.01)
    raise ValueError("a bug")

async def unready(context):
    await trio.sleep_forever()

class Server:
    names = ("one-child",)

    def __init__(self, live, models, listeners):
        grace = Grace(60.0 if sys.argv[1] == "slow" else 0.1)
        child = ChildSpec(id="c", start=globals()[sys.argv[1]], shutdown=grace, kill_grace_s=0.1)
        self.tree = Supervisor(SupervisorSpec(intensity=0), [child])
        self.reload = Reload(live, None)

    def pids(self):
        return ()

    async def run(self, stop, on_ready):
        if sys.argv[1] == "unready":
            print("{\\"event\\": \\"booting\\"}", file=sys.stderr, flush=True)
        return await run_tree(self.tree, stop=stop, budget_s=60.0, on_ready=on_ready)

serving.Server = Server
configure_logging("info", "json", sys.stderr)
config = Path(sys.argv[2]) if len(sys.argv) > 2 else None
free = {"ANTIPHON_BIND": "127.0.0.1:0", "ANTIPHON_OPS_BIND": "127.0.0.1:0"}

def read():
    return load_settings(config, free)

sys.exit(serving.serve(read(), {}, read, reload_first=lambda: sys.argv[3:] == ["reload"]))
"""


@contextmanager
def serving(
    child: str, *arguments: object, **options: Any
) -> Iterator[tuple["subprocess.Popen[str]", LogTail]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, child, *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        **{"stdout": subprocess.DEVNULL, **options},
    )
    assert process.stderr is not None
    log = LogTail(process.stderr)
    try:
        yield process, log
    finally:
        process.kill()
        process.wait()
        log.join()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 0)])
def test_a_signal_stops_in_order_and_exits_zero(number: signal.Signals, status: int):
    with serving("polite") as (process, log):
        log.wait_for("server_ready", within_s=PATIENCE_S)
        process.send_signal(number)

        assert process.wait(PATIENCE_S) == status


def test_a_signal_before_the_server_is_ready_stops_it_at_once():
    with serving("unready") as (process, log):
        log.wait_for("booting", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == 0
        assert log.events("server_ready") == []


def test_a_second_signal_ends_the_process_now():
    with serving("slow") as (process, log):
        log.wait_for("server_ready", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)
        log.wait_for("stop_requested", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == 130


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "antiphon.toml"
    file.write_text("")
    return file


def test_a_hangup_reloads_the_settings_and_the_server_goes_on(config: Path):
    with serving("polite", config) as (process, log):
        log.wait_for("server_ready", within_s=PATIENCE_S)
        config.write_text('log_level = "debug"\nbind = "127.0.0.1:1"\n[engine]\nslots = 4\n')
        process.send_signal(signal.SIGHUP)
        line = log.wait_for("settings_reloaded", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == 0
        assert (line["source"], line["applied"]) == ("SIGHUP", ["log_level"])
        assert line["needs_engine_restart"] == ["engine.slots"]
        # The environment wins over the file, as it did at the start.
        assert line["needs_process_restart"] == []
        log.join()
        assert log.events("leaving"), "a line at debug level"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[engine]\nslots = 0\n", "engine.slots"),
        ("[engine]\nslot = 1\n", "engine.slot"),
        ("[engine", "--config"),
        ("a = " + "[" * 9999, "--config"),
        ("a = " + "9" * 9999, "--config"),
        (None, "--config"),
    ],
)
def test_settings_that_are_wrong_or_gone_change_nothing(config: Path, text: str | None, key: str):
    with serving("polite", config) as (process, log):
        log.wait_for("server_ready", within_s=PATIENCE_S)
        config.unlink() if text is None else config.write_text(text)
        process.send_signal(signal.SIGHUP)
        line = log.wait_for("reload_refused", within_s=PATIENCE_S)
        config.write_text("[queue]\nmax_requests = 7\n")
        process.send_signal(signal.SIGHUP)
        after = log.wait_for("settings_reloaded", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == 0
        assert f"setting {key}: " in line["reason"]
        assert "\n" not in line["reason"]
        assert after["applied"] == ["queue.max_requests"]


def test_a_hangup_during_the_boot_and_during_the_drain_reloads_too(config: Path):
    with serving("unready", config) as (process, log):
        log.wait_for("booting", within_s=PATIENCE_S)
        process.send_signal(signal.SIGHUP)
        log.wait_for("settings_reloaded", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == 0
    with serving("slow", config) as (process, log):
        log.wait_for("server_ready", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)
        log.wait_for("stop_requested", within_s=PATIENCE_S)
        process.send_signal(signal.SIGHUP)
        log.wait_for("settings_reloaded", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == 130


def test_a_hangup_that_came_before_the_server_ran_is_seen_to_first(config: Path):
    with serving("polite", config, "reload") as (process, log):
        log.wait_for("settings_reloaded", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == 0


def test_a_server_outlives_its_terminal(config: Path):
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with serving(
        "polite",
        config,
        stdin=theirs,
        stdout=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,
    ) as (process, log):
        os.close(theirs)
        log.wait_for("server_ready", within_s=PATIENCE_S)
        os.close(ours)
        log.wait_for("settings_reloaded", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == 0


def test_a_child_that_ignores_its_cancellation_does_not_keep_the_process_alive():
    with serving("stuck") as (process, log):
        log.wait_for("server_ready", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == 70
        assert log.wait_for("stuck_at_exit", within_s=1)["paths"] == ["root/c"]


def test_a_tree_that_gives_up_is_a_failure_and_says_why():
    with serving("crashing") as (process, log):
        assert process.wait(PATIENCE_S) == 1
        assert "gave up" in log.wait_for("server_failed", within_s=1)["reason"]


def test_a_server_does_not_depend_on_a_reader_of_its_banner():
    with socket.socket() as nobody, serving("polite", stdout=nobody.fileno()) as (process, log):
        log.wait_for("server_ready", within_s=PATIENCE_S)
        log.wait_for("banner_unread", within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == 0
        log.join()
        assert "Exception" not in log.end()


@pytest.mark.parametrize("key", ["bind", "ops_bind"])
def test_an_address_in_use_names_its_setting_and_leaves_no_socket_open(key: str):
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("", 0)) as probe:
        free = probe.getsockname()[1]
        probe.close()
        other = {"bind": "ops_bind", "ops_bind": "bind"}[key]
        settings = msgspec.structs.replace(
            Settings(),
            **{key: f"127.0.0.1:{taken.getsockname()[1]}", other: f"127.0.0.1:{free}"},
        )

        with pytest.raises(SettingsError) as caught, listening(settings):
            pass

        assert caught.value.key == key
        assert caught.value.problem.endswith(f"ANTIPHON_{key.upper()}"), "what to do about it"
        socket.create_server(("127.0.0.1", free)).close()


@pytest.mark.parametrize("host", ["no.such.host.invalid", f"{'a' * 64}.invalid", "203.0.113.1"])
def test_an_address_that_is_not_ours_names_its_setting(host: str):
    settings = msgspec.structs.replace(Settings(), bind=f"{host}:0")

    with pytest.raises(SettingsError, match="setting bind: cannot listen on"), listening(settings):
        pass

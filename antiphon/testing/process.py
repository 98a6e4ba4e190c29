"""A whole server in a process of its own, as an operator would run it: started on free ports, its
log kept, ended in order. For end-to-end tests and for measurements."""

import contextlib
import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from antiphon.testing.logtail import LogTail
from antiphon.testing.models import models_folder

_ADDRESS = re.compile(r"https?://([0-9.]+):(\d+)")
_START_S = 180.0
_STOP_S = 60.0

Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProcess:
    """A running server. `banner` what it printed when ready."""

    process: subprocess.Popen[str]
    api: Address
    ops: Address
    banner: str
    log: LogTail

    @property
    def base_url(self) -> str:
        return f"http://{self.api[0]}:{self.api[1]}/v1"

    def get(self, path: str) -> tuple[int, bytes]:
        """One GET on the operations listener: status and body."""
        connection = http.client.HTTPConnection(*self.ops, timeout=10)
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def command(self, name: str, path: str, token: str) -> tuple[int, dict[str, Any]]:
        """One operator command: status and body."""
        connection = http.client.HTTPConnection(*self.ops, timeout=60)
        try:
            body = json.dumps({"path": path})
            headers = {"authorization": f"Bearer {token}"}
            connection.request("POST", f"/ops/{name}", body, headers)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()

    def slots(self) -> list[dict[str, Any]]:
        slots: list[dict[str, Any]] = json.loads(self.get("/ops/slots")[1])
        return slots

    def tree(self) -> dict[str, dict[str, Any]]:
        """Every node of the supervision tree by its path."""
        nodes = {}
        waiting = [json.loads(self.get("/ops/tree")[1])]
        while waiting:
            node = waiting.pop()
            nodes[node["path"]] = node
            waiting.extend(node["children"])
        return nodes

    def metric(self, name: str) -> float:
        """The sum of a metric's samples over its labels."""
        lines = self.get("/metrics")[1].decode().splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith((f"{name} ", f"{name}{{"))
        )


@contextlib.contextmanager
def starting_server(
    config: Path | None = None, **environment: str
) -> Iterator[tuple["subprocess.Popen[str]", LogTail]]:
    """Start a server and don't wait for it; it is ended with SIGTERM. Its database and its files
    are its own unless the environment names others; models are shared."""
    with tempfile.TemporaryDirectory(prefix="antiphon-") as folder:
        (Path(folder) / "models").symlink_to(models_folder())
        own = {
            "ANTIPHON_DATABASE_URL": f"sqlite:///{folder}/antiphon.db",
            "ANTIPHON_DATA_DIR": folder,
        }
        options = () if config is None else ("--config", str(config))
        with _process(options, own | environment) as started:
            yield started


@contextlib.contextmanager
def _process(
    options: tuple[str, ...],
    environment: dict[str, str],
) -> Iterator[tuple["subprocess.Popen[str]", LogTail]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "antiphon", *options, "serve"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ
        | {
            "ANTIPHON_BIND": "127.0.0.1:0",
            "ANTIPHON_OPS_BIND": "127.0.0.1:0",
            "ANTIPHON_LOG_FORMAT": "json",
        }
        | environment,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    log = LogTail(process.stderr)
    with process.stdout:
        try:
            yield process, log
        finally:
            end(process)
            log.join()


@contextlib.contextmanager
def running_server(config: Path | None = None, **environment: str) -> Iterator[ServerProcess]:
    """Start a server, wait for its banner, and end it with SIGTERM.

    Raises RuntimeError with the end of its log if it never becomes ready.
    """
    with starting_server(config, **environment) as (process, log):
        assert process.stdout is not None
        banner = _banner(process, process.stdout, log)
        log.wait_for("server_ready", within_s=_START_S)
        api, ops = ((host, int(port)) for host, port in _ADDRESS.findall(banner)[:2])
        yield ServerProcess(process=process, api=api, ops=ops, banner=banner, log=log)


def end(process: "subprocess.Popen[str]") -> int:
    """SIGTERM, then SIGKILL when that takes too long; the exit status."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


@contextlib.contextmanager
def watched(pid: int) -> Iterator[Callable[[float], bool]]:
    """Keep hold of a process that is not ours to reap; call what is yielded with the seconds to
    wait for its end, and it says whether it has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        yield lambda within_s: bool(select.select([descriptor], [], [], within_s)[0])
    finally:
        os.close(descriptor)


def _banner(process: "subprocess.Popen[str]", stdout: IO[str], log: LogTail) -> str:
    """Everything printed up to the curl line. A server that hangs is killed, which ends the
    read."""
    timer = threading.Timer(_START_S, process.kill)
    timer.start()
    try:
        lines = []
        for line in stdout:
            lines.append(line)
            if line.strip().startswith("curl"):
                return "".join(lines)
    finally:
        timer.cancel()
    raise RuntimeError(f"the server did not become ready:\n{log.end()}")

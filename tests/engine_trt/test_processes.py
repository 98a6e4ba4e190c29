"""Marks and the warden, on real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from antiphon.engine_trt.processes import VARIABLE, command_line, kill_marked, marked, new_mark
from antiphon.engine_trt.warden import start_warden

PATIENCE_S = 20.0
SLEEP = "import signal; print(flush=True); signal.pause()"
"""Its line says that it is there: in the midst of an exec a process has no environment."""


@pytest.fixture(name="mark")
def _mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(VARIABLE, "")
    mark = new_mark()
    yield mark
    kill_marked(mark)


def sleeper(*, mark: str) -> "subprocess.Popen[bytes]":
    """In a session of its own, as MPI's workers are."""
    return begun(env=os.environ | {VARIABLE: mark}, start_new_session=True)


def begun(**options: Any) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", SLEEP, "a worker"], stdout=subprocess.PIPE, **options
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"\n"
    return process


def has_ended(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def test_only_what_carries_the_mark_is_killed(mark: str):
    ours, others = sleeper(mark=mark), sleeper(mark=f"{mark}0")
    try:
        assert list(marked(mark)) == [ours.pid]
        assert kill_marked(mark) == 1
        assert has_ended(ours)
        assert others.poll() is None
    finally:
        others.kill()
        others.wait()


def test_a_new_mark_is_for_what_is_started_from_then_on(mark: str):
    with begun(start_new_session=True) as child:
        assert child.pid in marked(mark)
        child.send_signal(signal.SIGKILL)
    assert list(marked(mark)) == []


def test_a_command_line_is_known_while_the_process_is():
    with begun() as child:
        found = command_line(child.pid)
        child.kill()
    assert found.endswith("a worker ")
    assert command_line(child.pid) == ""


def test_the_warden_takes_the_workers_along_when_its_host_is_gone(mark: str):
    warden = start_warden(mark, dict(os.environ))
    worker = sleeper(mark=mark)
    assert warden.stdin is not None

    assert worker.poll() is None
    warden.stdin.close()

    assert has_ended(worker)
    assert has_ended(warden)


def test_the_warden_is_none_of_those_it_kills(mark: str):
    warden = start_warden(mark, os.environ | {VARIABLE: mark})
    try:
        assert list(marked(mark)) == []
    finally:
        assert warden.stdin is not None
        warden.stdin.close()
        warden.wait()

"""How many processors this process may use."""

import os
from pathlib import Path

import pytest

from antiphon.engine import cores
from antiphon.engine.cores import inference_threads, usable_cores


@pytest.fixture(autouse=True)
def _no_quota(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cores, "_CGROUP", tmp_path)


@pytest.fixture(name="eight_cores")
def _eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def test_it_is_as_many_as_the_process_may_run_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)

    assert usable_cores() == 3


def test_where_the_system_does_not_tell_it_is_all_of_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 10)

    assert usable_cores() == 10


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("limit", "usable"),
    [
        ("200000 100000\n", 2),
        ("250000 100000\n", 2),
        ("50000 100000\n", 1),
        ("6400000 100000\n", 8),
        ("max 100000\n", 8),
        ("", 8),
    ],
)
def test_a_share_of_a_container_counts_as_that_many(tmp_path: Path, limit: str, usable: int):
    (tmp_path / "cpu.max").write_text(limit)

    assert usable_cores() == usable


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(("quota", "usable"), [("300000\n", 3), ("-1\n", 8)])
def test_the_older_form_of_a_share_counts_too(tmp_path: Path, quota: str, usable: int):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota)
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")

    assert usable_cores() == usable


@pytest.mark.usefixtures("eight_cores")
def test_the_engine_is_told_of_a_share_and_else_of_what_was_asked_for(tmp_path: Path):
    assert inference_threads(0) == 0
    assert inference_threads(3) == 3

    (tmp_path / "cpu.max").write_text("200000 100000\n")

    assert inference_threads(0) == 2
    assert inference_threads(3) == 3

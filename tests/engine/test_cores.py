"""How many processors this process may use."""

import os

import pytest

from antiphon.engine.cores import usable_cores


def test_it_is_as_many_as_the_process_may_run_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)

    assert usable_cores() == 3


def test_where_the_system_does_not_tell_it_is_all_of_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 10)

    assert usable_cores() == 10

"""What a reload takes, what it refuses, and what it says."""

import fnmatch
import re
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import structlog.testing
import trio
import trio.testing

from antiphon.errors import SettingsError
from antiphon.live_settings import EFFECTS, Change, Effect, LiveSettings, value_of
from antiphon.settings import Settings

DOC = (Path(__file__).parents[1] / "docs" / "operating.md").read_text()
BEFORE = Settings()
NOW = {"applied": True, "needs": None}


def with_(key: str, value: object, settings: Settings = BEFORE) -> Settings:
    section, _, field = key.rpartition(".")
    if not section:
        return msgspec.structs.replace(settings, **{key: value})
    changed = msgspec.structs.replace(getattr(settings, section), **{field: value})
    return msgspec.structs.replace(settings, **{section: changed})


class Disk:
    """What is read next."""

    def __init__(self) -> None:
        self.holds: Settings | SettingsError = BEFORE

    def read(self) -> Settings:
        if isinstance(self.holds, SettingsError):
            raise self.holds
        return self.holds


def live(disk: Disk, on_change: Callable[[Settings], None] = lambda _: None) -> LiveSettings:
    return LiveSettings(Settings(), disk.read, on_change)


def keys(kind: type[msgspec.Struct], prefix: str = "") -> set[str]:
    found = set()
    for field in msgspec.structs.fields(kind):
        nested = isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
        key = f"{prefix}{field.name}"
        found |= keys(field.type, f"{key}.") if nested else {key}
    return found


def test_of_every_setting_it_is_known_when_a_new_value_counts():
    assert set(EFFECTS) == keys(Settings)


@pytest.mark.parametrize(
    ("key", "value", "change"),
    [
        ("queue.max_requests", 7, NOW),
        ("ops_token", "another-long-secret", NOW),
        ("log_level", "debug", NOW),
        ("shutdown.drain_s", 1.0, NOW),
        ("engine.slots", 4, {"applied": False, "needs": Effect.ENGINE}),
        ("bind", "127.0.0.1:1", {"applied": False, "needs": Effect.PROCESS}),
    ],
)
async def test_a_changed_key_is_in_force_or_says_what_it_needs(key, value, change):
    disk = Disk()
    settings = live(disk)
    disk.holds = with_(key, value)

    assert await settings.reload("SIGHUP") == (Change(key=key, **change),)
    in_force = value if change["needs"] is not Effect.PROCESS else value_of(Settings(), key)
    assert value_of(settings.current, key) == in_force


async def test_what_needs_a_restart_is_told_again_until_it_had_one():
    disk = Disk()
    settings = live(disk)
    disk.holds = with_("engine.slots", 4, with_("bind", "127.0.0.1:1"))

    first, second = await settings.reload("a"), await settings.reload("b")
    launched = settings.for_engine()
    third = await settings.reload("c")

    assert first == second
    assert {change.key for change in first} == {"engine.slots", "bind"}
    assert launched.engine.slots == 4
    assert [change.key for change in third] == ["bind"]


async def test_a_key_that_is_taken_back_before_its_restart_is_no_change():
    disk = Disk()
    settings = live(disk)
    disk.holds = with_("engine.slots", 4)
    await settings.reload("a")
    disk.holds = Settings()

    assert await settings.reload("b") == ()
    assert settings.for_engine() == Settings()


async def test_wrong_settings_change_nothing_and_are_one_line_with_the_key():
    disk = Disk()
    told: list[Settings] = []
    settings = live(disk, told.append)
    disk.holds = SettingsError("engine.slots", "must be greater than 0")

    with structlog.testing.capture_logs() as logs, pytest.raises(SettingsError):
        await settings.reload("SIGHUP")

    assert settings.current == Settings()
    assert told == []
    assert logs == [
        {
            "event": "reload_refused",
            "log_level": "error",
            "source": "SIGHUP",
            "reason": "setting engine.slots: must be greater than 0",
        }
    ]


async def test_what_may_be_taken_must_not_contradict_what_is_kept(monkeypatch):
    monkeypatch.setitem(EFFECTS, "shutdown.budget_s", Effect.PROCESS)
    disk = Disk()
    settings = live(disk)
    disk.holds = with_("shutdown.drain_s", 40.0, with_("shutdown.budget_s", 50.0))

    with pytest.raises(SettingsError, match=r"shutdown\.drain_s"):
        await settings.reload("SIGHUP")

    assert settings.current == Settings()


async def test_the_log_names_the_keys_and_no_value():
    disk = Disk()
    settings = live(disk)
    changed = with_("engine.slots", 4, with_("bind", "127.0.0.1:1"))
    disk.holds = with_("ops_token", "another-long-secret", changed)

    with structlog.testing.capture_logs() as logs:
        await settings.reload("operator")

    [line] = logs
    assert (line["event"], line["source"]) == ("settings_reloaded", "operator")
    assert line["applied"] == ["ops_token"]
    assert line["needs_engine_restart"] == ["engine.slots"]
    assert line["needs_process_restart"] == ["bind"]
    assert "secret" not in str(logs)


async def test_who_can_only_be_told_is_told_when_something_changed():
    disk = Disk()
    told: list[Settings] = []
    settings = live(disk, told.append)
    await settings.reload("a")
    disk.holds = with_("log_level", "debug")
    await settings.reload("b")

    assert [each.log_level for each in told] == ["debug"]


async def test_a_slow_disk_does_not_hold_up_the_loop_and_reloads_follow_each_other(nursery):
    release = threading.Event()
    reads = 0

    def read() -> Settings:
        nonlocal reads
        reads += 1
        release.wait(10)
        return Settings()

    settings = LiveSettings(Settings(), read)
    nursery.start_soon(settings.reload, "a")
    nursery.start_soon(settings.reload, "b")
    await trio.testing.wait_all_tasks_blocked()
    before = reads
    release.set()
    await settings.reload("c")

    assert before <= 1
    assert reads == 3


def test_the_documents_table_says_the_same_of_every_key():
    rows = re.findall(r"^\| (nothing|an engine restart|a process restart) \| (.+?) \|", DOC, re.M)
    told = {
        key: effect
        for effect, (_, keys) in zip(Effect, rows, strict=True)
        for pattern in re.findall(r"`([^`]+)`", keys)
        for key in fnmatch.filter(EFFECTS, pattern)
    }

    assert told == EFFECTS

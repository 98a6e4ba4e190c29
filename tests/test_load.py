"""What the load on a server does by rule. Locust itself is kept out of this process, which it would
patch for gevent."""

import importlib.util
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def part(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "load" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


patience, moment, keys, words = part("patience"), part("moment"), part("keys"), part("words")


@pytest.mark.parametrize(
    ("status", "headers", "is_shed"),
    [
        (503, {"retry-after": "7"}, True),
        (503, {}, False),
        (503, {"retry-after": "soon"}, False),
        (503, {"x-should-retry": "false"}, False),
        (429, {"retry-after-ms": "1500"}, True),
        (429, {"x-should-retry": "false"}, True),
        (429, {}, False),
        (500, {"retry-after": "7"}, False),
    ],
)
def test_only_a_refusal_with_advice_is_honest(status, headers, is_shed):
    assert patience.Refusal(status, headers).is_shed is is_shed


@pytest.mark.parametrize(
    ("status", "headers", "pause_s"),
    [
        (503, {"retry-after": "7"}, 7.0),
        (429, {"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        (429, {"retry-after": "3600"}, None),
        (503, {"retry-after": "7", "x-should-retry": "false"}, None),
        (400, {}, None),
    ],
)
def test_a_retry_waits_as_long_as_it_is_told(status, headers, pause_s):
    assert patience.Refusal(status, headers).pause_s(0, random.Random(1)) == pause_s


@pytest.mark.parametrize("status", [0, 500, 503])
def test_without_advice_each_pause_is_twice_the_last_and_the_third_refusal_is_the_end(status):
    refusal, dice = patience.Refusal(status, {}), random.Random(1)

    pauses = [refusal.pause_s(retries, dice) for retries in range(3)]

    assert 0.375 <= pauses[0] <= 0.5
    assert 0.75 <= pauses[1] <= 1.0
    assert pauses[2] is None


def test_a_viral_moment_comes_at_once_stays_and_goes_back_to_what_is_usual():
    viral = moment.Moment(usual=10, factor=8, length_s=100)

    users = [viral.users(second) for second in range(101)]

    assert users[:20] == [10] * 20
    assert users[20:60] == [80] * 40
    assert all(later <= before for before, later in pairwise(users[60:85]))
    assert 10 < users[75] < 40
    assert users[85:100] == [10] * 15
    assert users[100] is None
    assert viral.spawn_rate * moment.RAMP_S == 70


def test_each_line_of_a_key_file_is_a_caller(tmp_path):
    file = tmp_path / "keys"
    file.write_text("# of the test server\nfree sk-1\n\npaid sk-2\n")

    free, paid = keys.callers(file)

    assert (free.plan, free.headers) == ("free", {"Authorization": "Bearer sk-1"})
    assert (paid.plan, paid.headers) == ("paid", {"Authorization": "Bearer sk-2"})
    assert [caller.headers for caller in keys.callers(None)] == [{}]


@pytest.mark.parametrize("text", ["", "sk-1\n", "free sk-1 more\n"])
def test_a_file_without_keys_is_refused(tmp_path, text):
    file = tmp_path / "keys"
    file.write_text(text)

    with pytest.raises(ValueError, match="keys"):
        keys.callers(file)


def test_documents_are_about_as_long_as_asked_for_and_differ():
    dice = random.Random(1)
    one, other = words.document(dice, 1200), words.document(dice, 1200)

    assert one[:80] != other[:80]
    assert 60 * 12 <= len(one.split()) <= 60 * 20


def test_the_locustfile_has_every_kind_of_caller():
    done = subprocess.run(
        [sys.executable, "-m", "locust", "-f", "load/locustfile.py", "--list"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    names = {line.strip() for line in done.stdout.splitlines()}
    assert {"ChatUser", "Reader", "Program", "Worker", "Crowd"} <= names

import ast
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from antiphon import logs
from antiphon.logs import configure_logging

PACKAGE = Path(logs.__file__).parent


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _as_before():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def _lines(out):
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_off_a_terminal_a_line_is_json_with_a_utc_time():
    out = io.StringIO()
    configure_logging("info", "auto", out)

    structlog.get_logger("antiphon.x").info("model_prepared", model="tiny")

    (line,) = _lines(out)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "model_prepared",
        "model": "tiny",
        "level": "info",
        "logger": "antiphon.x",
    }


def test_on_a_terminal_a_line_is_text():
    out = Terminal()
    configure_logging("info", "auto", out)

    structlog.get_logger("antiphon.x").info("model_prepared", model="tiny")

    assert "model_prepared" in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_a_library_that_logs_the_standard_way_comes_out_alike():
    out = io.StringIO()
    configure_logging("info", "json", out)

    logging.getLogger("hypercorn.error").warning("Running on %s", "x")

    (line,) = _lines(out)
    assert (line["event"], line["level"]) == ("Running on x", "warning")
    assert line["logger"] == "hypercorn.error"


def test_lines_below_the_level_are_dropped_wherever_they_come_from():
    out = io.StringIO()
    configure_logging("warning", "json", out)

    structlog.get_logger("antiphon.x").info("a")
    logging.getLogger("quart.app").info("b")
    structlog.get_logger("antiphon.x").warning("c")

    assert [line["event"] for line in _lines(out)] == ["c"]


def test_a_traceback_is_a_field_of_its_line():
    out = io.StringIO()
    configure_logging("info", "json", out)

    try:
        raise ValueError("because")
    except ValueError:
        structlog.get_logger("antiphon.x").exception("child_crashed")

    (line,) = _lines(out)
    assert "ValueError: because" in line["exception"]


def test_configuring_twice_writes_each_line_once():
    first, second = io.StringIO(), io.StringIO()
    configure_logging("info", "json", first)
    configure_logging("info", "json", second)

    structlog.get_logger("antiphon.y").info("once")

    assert first.getvalue() == ""
    assert len(_lines(second)) == 1


def test_bytes_and_odd_values_do_not_stop_a_line():
    out = io.StringIO()
    configure_logging("info", "json", out)

    structlog.get_logger("antiphon.x").info("odd", value=object(), data=b"\xff", text="\ud800")

    assert _lines(out)[0]["event"] == "odd"


def test_the_table_lists_its_events_once():
    rows = [line.split("|")[1].strip() for line in (logs.__doc__ or "").splitlines() if "|" in line]

    assert len(rows) == len(set(rows))


def test_every_event_in_the_code_is_in_the_table():
    said = set(_event_names())
    listed = {row.split("|")[1].strip() for row in (logs.__doc__ or "").splitlines() if "|" in row}

    assert said - listed == set()


def test_no_event_in_the_table_is_without_code():
    listed = {row.split("|")[1].strip() for row in (logs.__doc__ or "").splitlines() if "|" in row}
    texts = [file.read_text() for file in PACKAGE.rglob("*.py") if file.name != "logs.py"]

    missing = {name for name in listed if "_" in name and not any(f'"{name}"' in t for t in texts)}

    assert missing == set()


def _event_names() -> Iterator[str]:
    """The first argument of every log call in the package, where it is a plain string."""
    for file in PACKAGE.rglob("*.py"):
        if "testing" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="log")),
                    args=[ast.Constant(value=str() as name), *_],
                ):
                    yield name

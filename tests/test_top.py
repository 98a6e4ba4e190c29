"""`antiphon top`: what it draws, and how it looks at a server."""

import contextlib
import http.server
import logging
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading

import httpx2
import msgspec
import pytest
import structlog
import trio
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from antiphon.cli import main
from antiphon.errors import OpsUnreachable
from antiphon.http.ops.app import make_ops_app
from antiphon.http.ops.metrics import PrometheusTelemetry
from antiphon.ops_client import Box, Child, Exit, Loop, Readiness, Sample, Slot, fetch
from antiphon.plain import plain
from antiphon.settings import HttpSettings
from antiphon.testing.http import serving
from antiphon.testing.ops import ScriptedSources, a_breaker, no_commands
from antiphon.testing.process import running_server
from antiphon.top import UNBOUNDED, columns, draw, watch

BOX = Box(
    depth=3,
    system_depth=1,
    capacity=64,
    peak=9,
    dropped=0,
    current="Submit",
    current_age_s=0.25,
)
LOOP = Loop(
    tasks=20, runnable=1, threads=3, worker_threads=0, loop_lag_s=0.0042, loop_lag_max_s=0.1
)
_PAINT = re.compile(r"\x1b\[\d*m")


def child(path, *children, **fields):
    return Child(
        **{
            "path": path,
            "state": "up",
            "incarnation": 1,
            "restarts": 0,
            "last_exit": None,
            "uptime_s": 5.0,
            "children": children,
            **fields,
        }
    )


def supervisor(path, *children):
    window = {"restarts_in_window": 1, "intensity": 5, "period_s": 60.0}
    return child(path, *children, strategy="rest_for_one", **window)


TREE = supervisor(
    "root",
    supervisor(
        "root/pool",
        child("root/pool/driver", mailbox=BOX),
        child(
            "root/pool/scheduler",
            state="restarting",
            incarnation=3,
            restarts=2,
            last_exit=Exit(kind="crashed", text="HostLost: gone", age_s=12.0),
        ),
    ),
    child("root/api"),
)


def busy(slot, request_id="req_1"):
    return Slot(slot=slot, state="decode", request_id=request_id, tokens=57, age_s=3.0)


def free(slot):
    return Slot(slot=slot, state="free", request_id=None, tokens=0, age_s=0.0)


SLOTS = (busy(0), free(1))


def sample(*reasons, tree=TREE, slots=SLOTS):
    readiness = Readiness(status="not_ready" if reasons else "ready", reasons=reasons)
    return Sample(
        address="127.0.0.1:8001", readiness=readiness, tree=tree, slots=tuple(slots), loop=LOOP
    )


def text(*arguments, width=200, height=UNBOUNDED, **fields):
    return "\n".join(draw(sample(*arguments, **fields), width, height))


def line_with(word, drawn):
    [line] = [line for line in drawn.splitlines() if word in line]
    return line


def test_rails_lead_to_each_child():
    names = [line.split("  up ")[0].split("  restarting")[0] for line in text().splitlines()[-5:]]

    assert [name.rstrip() for name in names] == [
        "root",
        "├─ pool",
        "│  ├─ driver",
        "│  └─ scheduler",
        "└─ api",
    ]


def test_a_worker_shows_its_mailbox_and_what_it_handles():
    cells = re.split(" {2,}", line_with("driver", text()))

    assert cells[-2:] == ["4 of 64, peak 9", "Submit for 0.2 s"]


def test_a_narrow_screen_tells_what_happens_before_what_always_is():
    assert line_with("driver", text(width=80)).endswith("  Submit for 0.2 s, 4 of 64, peak 9")
    assert line_with("├─ pool", text(width=80)).endswith("  rest_for_one, 1 of 5 in 60 s")


def test_a_line_that_fits_but_for_its_padding_has_no_mark():
    assert not line_with("api", text(width=45)).endswith("…")


def test_a_child_shows_its_restarts_and_how_it_ended():
    cells = re.split(" {2,}", line_with("scheduler", text()))

    assert cells[-5:] == ["restarting", "5.0 s", "3", "2", "12 s ago: HostLost: gone"]


def test_a_supervisor_shows_its_window():
    assert line_with("├─ pool", text()).endswith("rest_for_one, 1 of 5 in 60 s")


def test_dropped_messages_are_told():
    box = msgspec.structs.replace(BOX, dropped=7)

    assert "4 of 64, peak 9, 7 dropped" in text(tree=child("root", mailbox=box))


def test_many_children_are_a_number():
    tree = supervisor("root", *(child(f"root/session-{number}") for number in range(17)))

    assert text(tree=tree).splitlines()[-1].startswith("root (17 children)  up")


def test_the_number_of_children_outlives_a_long_name():
    tree = supervisor("r" * 99, *(child(f"r/session-{number}") for number in range(17)))

    assert "rr… (17 children)" in text(tree=tree, width=80)


def test_a_ready_server_says_so_and_how_its_loop_is():
    lines = text().splitlines()

    assert lines[0] == "antiphon 127.0.0.1:8001  ready"
    assert "20 tasks, 1 runnable; 3 threads" in lines[1]
    assert "loop lag 4.2 ms lately, 100.0 ms at most" in lines[1]


def test_a_server_that_is_not_ready_says_why():
    lines = text("draining", "no engine").splitlines()

    assert lines[:3] == ["antiphon 127.0.0.1:8001  NOT READY", "  draining", "  no engine"]


def test_slots_are_a_strip_and_the_busy_ones_a_line_each():
    drawn = text(slots=[busy(0), free(1), busy(2, "req_2")])

    assert "3 slots: 1 free, 2 decode\nD·D\n" in drawn
    assert line_with("req_2", drawn).split() == ["2", "decode", "57", "tokens", "3.0", "s", "req_2"]


def test_a_server_without_an_engine_has_no_strip():
    assert "no engine has been ready yet" in text(slots=())


@pytest.mark.parametrize("width", [0, 1, 2, 7, 20, 40, 80, 119, 120, 200])
@pytest.mark.parametrize("height", [0, 1, 2, 5, 10, 24, 50])
@pytest.mark.parametrize("colour", [False, True])
def test_nothing_is_wider_or_longer_than_the_screen(width, height, colour):
    ended = Exit(kind="crashed", text="世界é́́" * 30, age_s=1.0)
    tree = supervisor("root", TREE, child("root/" + "長い" * 40, last_exit=ended, mailbox=BOX))
    seen = sample("世" * 70, tree=tree, slots=[busy(slot, "世" * 60) for slot in range(32)])

    lines = draw(seen, width, height, colour=colour)

    assert len(lines) <= height
    assert all(columns(_PAINT.sub("", line)) <= width for line in lines)


def test_wide_and_combining_characters_are_measured_as_terminals_show_them():
    assert columns("世界e\u0301├") == 6


def test_a_cut_line_ends_in_a_mark_and_fills_the_width():
    [first, *_] = draw(sample(), 20, 24)

    assert first == "antiphon 127.0.0.1:…"


def test_what_does_not_fit_is_counted():
    lines = draw(sample(slots=[busy(slot) for slot in range(32)]), 100, 20)

    assert len(lines) == 20
    assert [line for line in lines if line.startswith("…")] == ["… 25 more"]
    assert lines[-1].startswith("└─ api"), "the tree fits, so the slots are what is cut"


def test_a_long_tree_and_many_slots_share_the_screen():
    tree = supervisor("root", *(supervisor(f"root/{n}", child(f"root/{n}/x")) for n in range(12)))

    lines = draw(sample(tree=tree, slots=[busy(slot) for slot in range(32)]), 100, 26)

    assert len([line for line in lines if line.startswith("…")]) == 2
    assert len([line for line in lines if "req_1" in line]) >= 8
    assert len([line for line in lines if "rest_for_one" in line]) >= 4


def test_colours_change_no_character():
    painted = draw(sample("draining"), 100, 30, colour=True)

    assert any("\x1b[31m" in line for line in painted)
    assert [_PAINT.sub("", line).rstrip() for line in painted] == draw(sample("draining"), 100, 30)


def test_the_server_cannot_send_control_characters_to_the_terminal():
    evil = "a\x1b]0;title\x07b\x9bc\u202ed\r\ne\u2028f"
    tree = supervisor(
        evil,
        child(
            evil,
            state=evil,
            mailbox=msgspec.structs.replace(BOX, current=evil),
            last_exit=Exit(kind=evil, text=evil, age_s=1.0),
        ),
    )

    lines = draw(sample(evil, tree=tree, slots=[busy(0, evil)]), 200, 50)

    assert not [char for line in lines for char in line if not char.isprintable()]
    assert plain(evil) == "a]0;titlebcd  ef"


class Pages(http.server.BaseHTTPRequestHandler):
    """What an operations listener sends; `answers` may replace a page."""

    answers: dict[str, tuple[int, bytes]]

    def do_GET(self):
        status, body = self.answers[self.path]
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def pages(**replaced):
    """Serve the pages of a sample on a free port; yields the address."""
    answers = {
        "/health/ready": (200, msgspec.json.encode(Readiness(status="ready", reasons=()))),
        "/ops/tree": (200, msgspec.json.encode(TREE)),
        "/ops/slots": (200, msgspec.json.encode([busy(0)])),
        "/ops/runtime": (200, msgspec.json.encode(LOOP)),
        "/ops/breakers": (200, b"[]"),
    }
    handler = type("Handler", (Pages,), {"answers": answers | replaced})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def nobody():
    """An address that refuses: bound, but not listened on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()


def _top(*arguments):
    return CliRunner().invoke(main, ["top", *arguments])


def test_once_prints_plain_text():
    with pages() as (host, port):
        result = _top("--once", "--ops", f"{host}:{port}")

    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"antiphon {host}:{port}  ready\n")
    assert "\x1b" not in result.output


@pytest.fixture
def _logging_as_before():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.mark.usefixtures("_logging_as_before")
def test_a_pipe_gets_one_look(monkeypatch):
    with pages() as (host, port):
        monkeypatch.setenv("ANTIPHON_OPS_BIND", f"{host}:{port}")
        result = _top()

    assert result.output.count("antiphon") == 1


def test_no_server_at_first_is_one_line_and_status_1(nobody):
    host, port = nobody

    result = _top("--ops", f"{host}:{port}")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"antiphon: no answer from {host}:{port}: Connection refused; ")
    assert "--ops" in result.stderr


def test_an_address_without_a_port_is_a_wrong_setting():
    result = _top("--ops", "localhost")

    assert (result.exit_code, result.stderr.split(": ")[1]) == (2, "setting --ops")


@pytest.mark.parametrize(
    ("path", "answer", "told"),
    [
        ("/ops/tree", (404, b"{}"), "GET /ops/tree is answered with status 404"),
        ("/ops/slots", (200, b"<html>"), "JSON is malformed"),
        ("/ops/runtime", (200, b"{}"), "missing required field"),
    ],
)
def test_what_is_no_operations_listener_is_told(path, answer, told):
    with pages(**{path: answer}) as address, pytest.raises(OpsUnreachable, match=told):
        fetch(address)


def test_a_server_that_is_not_ready_is_looked_at_all_the_same():
    body = b'{"status": "not_ready", "reasons": ["draining"], "later": 1}'
    with pages(**{"/health/ready": (503, body)}) as address:
        assert fetch(address).readiness.reasons == ("draining",)


def test_a_name_that_can_be_none_is_no_traceback():
    with pytest.raises(OpsUnreachable):
        fetch(("a..b", 80))


def test_a_server_that_leaves_and_returns_is_followed_until_ctrl_c():
    written = []
    looks = 0

    def pause(seconds):
        nonlocal looks
        looks += 1
        if looks == 1:
            serving_pages.close()
        elif looks == 2:
            raise KeyboardInterrupt

    with contextlib.ExitStack() as serving_pages:
        host, port = serving_pages.enter_context(pages())
        watch(
            (host, port),
            1.0,
            write=written.append,
            size=lambda: os.terminal_size((100, 30)),
            pause=pause,
        )

    entered, first, second, left = written
    assert f"antiphon {host}:{port}  " in first
    assert f"no answer from {host}:{port}: Connection refused" in second
    assert "scheduler" in second, "the last look stays on the screen"
    assert (entered, left) == ("\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l")
    assert first.count("\n") == second.count("\n") == 29, "a frame never scrolls"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_terminal_is_left_as_it_was(number, status):
    with pages() as (host, port):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "antiphon", "top", "--ops", f"{host}:{port}"]
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        seen = _until(ours, b"scheduler")
        process.send_signal(number)
        seen += _until(ours, None)
        os.close(ours)

        assert process.wait(30) == status

    assert seen.endswith(b"\x1b[?25h\x1b[?1049l")
    assert b"Traceback" not in seen


def _until(terminal, word):
    """Read a pseudo-terminal until the word, or its end, which Linux tells as EIO."""
    seen = b""
    while word is None or word not in seen:
        try:
            seen += os.read(terminal, 65_536)
        except OSError:
            break
    return seen


@pytest.mark.parametrize("reasons", [[], ["no engine"]])
async def test_the_pages_of_the_operations_app_are_understood(reasons):
    registry = CollectorRegistry()
    telemetry = PrometheusTelemetry(registry)
    sources = ScriptedSources(reasons, circuits=[a_breaker("open", retry_after_s=2.0)])
    app = make_ops_app(sources, HttpSettings, registry, telemetry, no_commands())
    async with serving(app, HttpSettings()) as server:
        url = httpx2.URL(server.url)
        seen = await trio.to_thread.run_sync(fetch, (url.host, url.port))

    assert seen.readiness.reasons == tuple(reasons)
    drawn = "\n".join(draw(seen, 200, 50))
    assert "req_1" in drawn
    assert "circuit engine m: open, next try in 2.0 s" in drawn
    assert "Ping for 0.5 s, 2.0 s ago: ValueError: no" in drawn


@pytest.mark.engine
def test_a_running_server_is_shown(model_dir):
    with running_server() as server:
        host, port = server.ops
        result = _top("--once", "--ops", f"{host}:{port}")

    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == f"antiphon {host}:{port}  ready"
    assert "└─ scheduler" in result.output
    assert re.search(r"^\d+ slots: \d+ free$", result.output, re.MULTILINE)

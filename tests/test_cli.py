import http.server
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner

from antiphon import __version__
from antiphon.cli import main
from antiphon.engine.models import ModelStore, PreparedModel
from antiphon.errors import HostStartFailed, ModelFetchFailed, SettingsError
from antiphon.ids import ModelName
from antiphon.ports import SamplingDefaults


@pytest.fixture(autouse=True)
def _as_before(monkeypatch, tmp_path):
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setenv("ANTIPHON_DATA_DIR", str(tmp_path / "data"))
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """A model that is always there."""
    folder = tmp_path / "tiny-0"
    folder.mkdir()
    model = PreparedModel(
        name=ModelName("tiny"),
        folder=folder,
        source="tiny",
        window=64,
        stop_tokens=(2,),
        special_tokens=(0,),
        sampling=SamplingDefaults(),
        created=0,
    )
    monkeypatch.setattr(ModelStore, "ensure", lambda self, reference, progress: model)
    monkeypatch.setattr(ModelStore, "find", lambda self, reference: model)
    monkeypatch.setattr(ModelStore, "prepared", lambda self: (model,))
    return model


@pytest.fixture
def app(monkeypatch):
    """Stands in for the composition root: remembers what it was asked to serve."""
    app = types.ModuleType("antiphon.serving")
    app.served = []
    app.status = 0

    def serve(settings, models, reread, *, reload_first):
        app.served.append((settings, models))
        app.reread, app.reload_first = reread, reload_first
        return app.status

    app.serve = serve
    monkeypatch.setitem(sys.modules, "antiphon.serving", app)
    monkeypatch.setattr("antiphon.serving", app, raising=False)
    return app


def _run(*arguments):
    return CliRunner().invoke(main, list(arguments))


def _fails(method, error, monkeypatch):
    def fail(self, *arguments):
        raise error

    monkeypatch.setattr(ModelStore, method, fail)


def test_the_version_is_told():
    assert _run("--version").output == f"antiphon, version {__version__}\n"


def test_serve_passes_settings_and_the_prepared_model_on(app, prepared, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("[engine]\nslots = 4\n")

    result = _run("serve", "--config", str(config))

    assert result.exit_code == 0, result.output
    ((settings, models),) = app.served
    assert (settings.engine.slots, models) == (4, {"": prepared})


def test_the_configuration_may_be_named_before_the_command_too(app, prepared, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("[engine]\nslots = 4\n")

    _run("--config", str(config), "serve")

    assert app.served[0][0].engine.slots == 4


def test_a_variable_may_name_the_configuration_and_an_option_wins(
    app, prepared, monkeypatch, tmp_path
):
    for name, slots in (("variable.toml", 4), ("option.toml", 5)):
        (tmp_path / name).write_text(f"[engine]\nslots = {slots}\n")
    monkeypatch.setenv("ANTIPHON_CONFIG", str(tmp_path / "variable.toml"))
    option = str(tmp_path / "option.toml")

    for words in (["serve"], ["serve", "--config", option], ["--config", option, "serve"]):
        _run(*words)

    assert [settings.engine.slots for settings, _ in app.served] == [4, 5, 5]
    assert app.reread().engine.slots == 5


def test_the_servers_exit_status_is_the_commands(app, prepared):
    app.status = 70

    assert _run("serve").exit_code == 70


def test_a_served_model_leaves_sigterm_to_the_server(app, prepared):
    before = signal.getsignal(signal.SIGTERM)

    _run("serve")

    assert signal.getsignal(signal.SIGTERM) is before


def test_the_server_can_read_its_settings_again_as_at_the_start(
    app, prepared, monkeypatch, tmp_path
):
    config = tmp_path / "c.toml"
    config.write_text("[engine]\nslots = 4\n")
    monkeypatch.setenv("ANTIPHON_QUEUE_MAX_REQUESTS", "7")
    _run("serve", "--config", str(config))
    config.write_text("[engine]\nslots = 5\n")
    monkeypatch.delenv("ANTIPHON_QUEUE_MAX_REQUESTS")

    again = app.reread()

    assert (again.engine.slots, again.queue.max_requests) == (5, 7)
    assert app.reload_first() is False


def test_settings_from_a_pipe_are_not_read_again_as_an_empty_file(app, prepared, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("[engine]\nslots = 4\n",))
    writer.start()
    _run("serve", "--config", str(pipe))
    writer.join()

    assert app.served[0][0].engine.slots == 4
    with pytest.raises(SettingsError, match="no file that can be read again"):
        app.reread()


def test_a_hangup_while_the_model_is_prepared_is_kept_for_the_server(app, prepared, monkeypatch):
    def ensure(self, reference, progress):
        # Not sent: once a test of this process has had oneDNN switch on AMX, a signal's frame is
        # larger than the alternative stack that pytest's faulthandler has set up for signals.
        handler = signal.getsignal(signal.SIGHUP)
        assert callable(handler)
        handler(signal.SIGHUP, None)
        return prepared

    monkeypatch.setattr(ModelStore, "ensure", ensure)

    assert _run("serve").exit_code == 0
    assert app.reload_first() is True


class Ops(http.server.BaseHTTPRequestHandler):
    """An operations listener that knows one command."""

    def do_POST(self):
        self.server.asked.append((self.path, self.headers["authorization"]))
        status, body = self.server.answer
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def ops():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ops) as server:
        server.asked = []
        server.at = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_reload_tells_what_became_of_each_changed_key(ops, monkeypatch):
    monkeypatch.setenv("ANTIPHON_OPS_TOKEN", "a-token-nobody-guesses")
    changes = [
        {"key": "queue.max_requests", "applied": True, "needs": None},
        {"key": "bind", "applied": False, "needs": "process_restart"},
    ]
    ops.answer = (200, {"command": "reload", "duration_s": 0.1, "changes": changes})

    result = _run("reload", "--ops", ops.at)

    assert result.exit_code == 0, result.output
    assert result.output == "queue.max_requests: in force\nbind: process restart needed\n"
    assert ops.asked == [("/ops/reload", "Bearer a-token-nobody-guesses")]


def test_a_reload_that_changed_nothing_says_so(ops):
    ops.answer = (200, {"changes": []})

    assert _run("reload", "--ops", ops.at).output == "nothing has changed\n"
    assert ops.asked == [("/ops/reload", None)]


def test_a_refused_reload_is_one_line_with_the_servers_words(ops):
    ops.answer = (409, {"error": {"message": "setting engine.slots: \x1b[2Jno", "code": "x"}})

    result = _run("reload", "--ops", ops.at)

    assert result.exit_code == 1
    assert result.stderr == f"antiphon: {ops.at} refuses: setting engine.slots: [2Jno\n"


@pytest.mark.parametrize("answer", [(200, {}), (500, {}), (404, [])])
def test_what_is_no_operations_listener_reloads_nothing(ops, answer):
    ops.answer = answer

    result = _run("reload", "--ops", ops.at)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"antiphon: no answer from {ops.at}: ")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ModelFetchFailed("tiny", "no connection to the package index"), 2),
        (SettingsError("bind", "in use"), 2),
        (HostStartFailed("no memory"), 1),
    ],
)
def test_what_goes_wrong_on_purpose_is_one_line(app, monkeypatch, error, status):
    _fails("ensure", error, monkeypatch)

    result = _run("serve")

    assert result.exit_code == status
    assert result.stderr == f"antiphon: {error}\n"
    assert app.served == []


def test_a_wrong_setting_stops_every_command_with_its_name(app, monkeypatch):
    monkeypatch.setenv("ANTIPHON_ENGINE_SLOTS", "many")

    for command in (["serve"], ["models", "pull"], ["models", "list"], ["check"]):
        result = _run(*command)

        assert result.exit_code == 2
        assert result.stderr.startswith("antiphon: setting ANTIPHON_ENGINE_SLOTS:")
        assert result.stderr.count("\n") == 1


def test_pull_says_where_the_model_is(prepared):
    assert str(prepared.folder) in _run("models", "pull", "tiny").output


def test_pull_of_nothing_tells_the_known_names():
    result = _run("models", "pull", "/nowhere.gguf")

    assert result.exit_code == 2
    assert "smollm2-135m-instruct" in result.stderr


def test_list_shows_what_is_prepared_and_what_could_be(prepared):
    output = _run("models", "list").output

    assert "tiny\t64 tokens" in output
    assert "antiphon models pull smollm2-135m-instruct" in output


def test_a_machine_that_can_serve_passes_the_check(prepared, monkeypatch):
    monkeypatch.setenv("ANTIPHON_BIND", "127.0.0.1:0")
    monkeypatch.setenv("ANTIPHON_OPS_BIND", "127.0.0.1:0")

    result = _run("check")

    assert result.exit_code == 0, result.output
    subjects = {line.split()[1].rstrip(":") for line in result.output.splitlines()}
    assert subjects >= {"python", "openvino", "cpu", "memory", "model", "data_dir", "bind"}
    assert subjects >= {"policy", "classifier"}


def test_rules_that_cant_be_used_fail_the_check_with_their_line(prepared, monkeypatch, tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text('format = 1\n\n[[rules]]\nid = "x"\nstages = ["inptu"]\n')
    monkeypatch.setenv("ANTIPHON_POLICY_RULES", str(rules))

    result = _run("check")

    assert result.exit_code == 1
    assert f"missing policy: {rules}:5: rules[0].stages[0]" in result.output


def test_a_taken_port_fails_the_check(prepared, monkeypatch):
    monkeypatch.setenv("ANTIPHON_OPS_BIND", "127.0.0.1:0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("ANTIPHON_BIND", f"127.0.0.1:{taken.getsockname()[1]}")
        result = _run("check")

    assert result.exit_code == 1
    assert "missing bind:" in result.output


def test_an_unknown_model_or_an_unusable_data_dir_fails_the_check(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ANTIPHON_DATA_DIR", str(tmp_path / "file" / "data"))
    monkeypatch.setenv("ANTIPHON_MODEL", "/nowhere.gguf")

    result = _run("check")

    assert result.exit_code == 1
    assert "missing model:" in result.output
    assert "missing data_dir:" in result.output


def test_a_model_that_can_still_be_fetched_is_only_a_note():
    assert "note    model: smollm2-135m-instruct is not prepared yet" in _run("check").output


def test_an_engine_library_that_crashes_fails_the_check(prepared, monkeypatch, tmp_path):
    crashing = tmp_path / "python"
    crashing.write_text("#!/bin/sh\nkill -SEGV $$\n")
    crashing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(crashing))

    result = _run("check")

    assert result.exit_code == 1
    assert "missing openvino: can't be loaded" in result.output


def test_the_command_and_the_model_store_load_nothing_heavy():
    program = (
        "import sys, antiphon.cli, antiphon.check, antiphon.engine.models, antiphon.engine.chat;"
        "print([name for name in ('numpy', 'gguf', 'openvino', 'trio', 'quart')"
        " if name in sys.modules])"
    )

    output = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout

    assert output.decode().strip() == "[]"


def test_the_module_is_the_command():
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "antiphon", "--version"]

    output = subprocess.run(command, capture_output=True, check=True, cwd=root).stdout

    assert __version__ in output.decode()

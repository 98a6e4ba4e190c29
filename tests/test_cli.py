import logging
import signal
import socket
import subprocess
import sys
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
    terminate = signal.getsignal(signal.SIGTERM)
    monkeypatch.setenv("ANTIPHON_DATA_DIR", str(tmp_path / "data"))
    yield
    signal.signal(signal.SIGTERM, terminate)
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

    def serve(settings, model):
        app.served.append((settings, model))
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
    ((settings, model),) = app.served
    assert (settings.engine.slots, model) == (4, prepared)


def test_the_configuration_may_be_named_before_the_command_too(app, prepared, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("[engine]\nslots = 4\n")

    _run("--config", str(config), "serve")

    assert app.served[0][0].engine.slots == 4


def test_the_servers_exit_status_is_the_commands(app, prepared):
    app.status = 70

    assert _run("serve").exit_code == 70


def test_a_served_model_leaves_sigterm_to_the_server(app, prepared):
    before = signal.getsignal(signal.SIGTERM)

    _run("serve")

    assert signal.getsignal(signal.SIGTERM) is before


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

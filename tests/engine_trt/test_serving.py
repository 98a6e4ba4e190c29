"""`antiphon serve` and `antiphon check` with this engine: over the stand-in, and without any."""

import json
import signal
from pathlib import Path

import openai
import pytest
from click.testing import CliRunner, Result

from antiphon.cli import main
from antiphon.engine.models import use_checkpoint
from antiphon.errors import ModelUnsupported
from antiphon.testing.process import running_server, watched
from antiphon.testing.trt import STAND_IN, TOKENIZER, stand_in_environment

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}<|end|>"


@pytest.fixture(name="checkpoint")
def _checkpoint(tmp_path: Path) -> Path:
    """Everything but weights: an echo needs none."""
    folder = tmp_path / "echo"
    folder.mkdir()
    TOKENIZER.save(str(folder / "tokenizer.json"))
    config = {"max_position_embeddings": 256, "eos_token_id": 0}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    (folder / "model.safetensors").write_bytes(b"")
    return folder


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, checkpoint: Path) -> None:
    monkeypatch.setenv("ANTIPHON_ENGINE_KIND", "tensorrt-llm")
    monkeypatch.setenv("ANTIPHON_MODEL", str(checkpoint))
    monkeypatch.setenv("ANTIPHON_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("ANTIPHON_BIND", "127.0.0.1:0")
    monkeypatch.setenv("ANTIPHON_OPS_BIND", "127.0.0.1:0")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_a_server_over_the_stand_in_answers_and_ends_in_order(tmp_path: Path):
    record = tmp_path / "record"
    environment = stand_in_environment({"record": str(record)})

    with running_server(**environment) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="unused", max_retries=0)
        [model] = client.models.list().data
        answer = client.chat.completions.create(
            model=model.id, messages=[{"role": "user", "content": "hello world"}]
        )
        [ready] = server.log.events("engine_ready")
        with watched(ready["pid"]) as has_ended:
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(20) == 0
            assert has_ended(0)

    assert model.id == "echo"
    assert answer.choices[0].message.content == "hello world"
    assert ready["engine"] == "tensorrt-llm"
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    # A local caller is alone, and has no salt.
    assert [line["salt"] for line in lines if line["event"] == "submitted"] == [None, None]


def test_a_verification_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTIPHON_TRT_GUIDED_DECODING", "off")
    monkeypatch.setenv("ANTIPHON_TRT_ABORT_WAIT_S", "0.1")
    monkeypatch.setenv("ANTIPHON_ENGINE_SLOTS", "8")
    monkeypatch.syspath_prepend(str(STAND_IN))
    for name, value in stand_in_environment({}).items():
        monkeypatch.setenv(name, value)

    result = run("engines", "verify", "--out", str(tmp_path / "report.json"))

    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert {finding["problem"] for finding in report["findings"]} == {None}
    assert report["model"] == "echo"
    assert report["figures"]["tokens_per_s"] > 0
    assert "skipped a schema holds" in result.output
    assert "ok      no conversation hears anothers word" in result.output
    assert "tokens/s with every slot in use" in result.output


def test_without_the_package_serving_says_what_to_install_and_where():
    result = run("serve")

    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert "engine.kind: tensorrt-llm needs the package tensorrt-llm" in line
    assert "pip install 'antiphon[trt]'" in line
    assert "NVIDIA GPU" in line


def test_without_the_package_the_check_fails_and_says_the_same(checkpoint: Path):
    result = run("check")

    assert result.exit_code == 1
    [line] = [line for line in result.output.splitlines() if " extra trt: " in line]
    assert line.startswith("missing")
    assert "pip install 'antiphon[trt]'" in line
    assert f"ok      model: echo, in {checkpoint}" in result.output


def test_only_a_checkpoint_can_be_served_by_it(tmp_path: Path):
    with pytest.raises(ModelUnsupported, match="Hugging Face checkpoint"):
        use_checkpoint("smollm2-135m-instruct")


def test_a_checkpoint_is_served_where_it_lies(checkpoint: Path):
    model = use_checkpoint(str(checkpoint))

    assert (model.name, model.folder, model.window) == ("echo", checkpoint, 256)
    assert model.stop_tokens == (0,)
    assert {path.name for path in checkpoint.iterdir()} == {
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
    }

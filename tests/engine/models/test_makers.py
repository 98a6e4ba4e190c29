import importlib.metadata
import json
import sys

import pytest

from antiphon.engine.models import makers
from antiphon.engine.models.progress import SilentProgress
from antiphon.engine.models.store import ModelStore
from antiphon.errors import ModelUnsupported
from antiphon.ports import SamplingDefaults
from antiphon.testing.gguf import write_gguf

_TOKENIZER = {
    "added_tokens": [
        {"id": 0, "content": "<s>", "special": True},
        {"id": 1, "content": "</s>", "special": True},
        {"id": 2, "content": "<tool>", "special": False},
    ]
}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    return folder


@pytest.fixture
def ir(tmp_path, monkeypatch):
    """A folder as optimum-intel leaves it, its native files empty, and a child that copies them."""
    _stand_in(tmp_path, monkeypatch, 'cp "$3"/openvino_model.* "$4"')
    ir = tmp_path / "my-ir"
    ir.mkdir()
    for part in ("model", "tokenizer", "detokenizer"):
        for kind in ("xml", "bin"):
            (ir / f"openvino_{part}.{kind}").write_text(part)
    _write(ir, "config.json", {"max_position_embeddings": 512, "eos_token_id": 7})
    _write(ir, "generation_config.json", {"eos_token_id": [1, 8], "temperature": 0.6, "top_k": 20})
    _write(ir, "tokenizer_config.json", {"bos_token": {"content": "<s>"}, "eos_token": "</s>"})
    _write(ir, "tokenizer.json", _TOKENIZER)
    (ir / "chat_template.jinja").write_text("{{ bos_token }}")
    return ir


def _write(folder, name, value):
    (folder / name).write_text(json.dumps(value))


def _stand_in(tmp_path, monkeypatch, script):
    """A child that does what the script says instead of preparing."""
    child = tmp_path / "python"
    child.write_text(f"#!/bin/sh\n{script}\n")
    child.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(child))


def test_a_native_crash_is_one_line(tmp_path, folder, monkeypatch):
    _stand_in(tmp_path, monkeypatch, "echo it went wrong >&2; kill -SEGV $$")

    with pytest.raises(ModelUnsupported, match=r"was killed by signal 11; it went wrong"):
        makers.from_gguf("ref", tmp_path / "m.gguf", folder, SilentProgress())


def test_a_child_that_says_nothing_has_failed(tmp_path, folder, monkeypatch):
    _stand_in(tmp_path, monkeypatch, "exit 0")

    with pytest.raises(ModelUnsupported, match="it said nothing"):
        makers.from_gguf("ref", tmp_path / "m.gguf", folder, SilentProgress())


def test_a_refused_file_is_told_in_the_childs_words(tmp_path, folder):
    path = write_gguf(tmp_path / "m.gguf", architecture="gemma3")

    with pytest.raises(ModelUnsupported, match="architecture gemma3") as refusal:
        makers.from_gguf("ref", path, folder, SilentProgress())

    assert "\n" not in str(refusal.value)


@pytest.mark.engine
def test_a_file_that_openvino_cannot_load_is_one_line(tmp_path, folder):
    path = write_gguf(tmp_path / "m.gguf")

    with pytest.raises(ModelUnsupported) as refusal:
        makers.from_gguf("ref", path, folder, SilentProgress())

    assert "\n" not in str(refusal.value)


def test_an_ir_folder_is_used_where_it_is(ir, tmp_path):
    model = ModelStore(tmp_path / "data").ensure(str(ir), SilentProgress())

    tokenizer = "openvino_tokenizer.bin"
    assert (model.folder / tokenizer).resolve() == ir / tokenizer
    assert not (model.folder / "openvino_model.bin").is_symlink()
    assert (model.folder / "chat_template.jinja").read_text() == "{{ bos_token }}"
    assert (model.name, model.window) == ("my-ir", 512)
    assert model.stop_tokens == (1, 7, 8)
    assert model.special_tokens == (0, 1)
    assert model.sampling == SamplingDefaults(temperature=0.6, top_k=20)


def test_a_changed_ir_folder_is_another_model(ir, tmp_path):
    store = ModelStore(tmp_path / "data")
    first = store.ensure(str(ir), SilentProgress())
    (ir / "openvino_model.bin").write_text("retrained")

    assert store.find(str(ir)) is None
    assert store.ensure(str(ir), SilentProgress()).folder != first.folder


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("openvino_tokenizer.xml", r"openvino_tokenizer\.xml"),
        ("tokenizer.json", r"tokenizer\.json"),
        ("config.json", r"config\.json"),
        ("chat_template.jinja", "chat template"),
    ],
)
def test_an_ir_folder_without_a_needed_file_is_refused_by_its_name(ir, tmp_path, missing, named):
    (ir / missing).unlink()

    with pytest.raises(ModelUnsupported, match=named):
        ModelStore(tmp_path / "data").ensure(str(ir), SilentProgress())


def test_the_default_one_of_several_named_templates_is_used(ir, tmp_path):
    (ir / "chat_template.jinja").unlink()
    named = [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]
    _write(ir, "tokenizer_config.json", {"chat_template": named})

    model = ModelStore(tmp_path / "data").ensure(str(ir), SilentProgress())

    assert (model.folder / "chat_template.jinja").read_text() == "D"


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_malformed_configuration_is_refused_by_its_name(ir, tmp_path, text):
    (ir / "config.json").write_text(text)

    with pytest.raises(ModelUnsupported, match=r"config\.json"):
        ModelStore(tmp_path / "data").ensure(str(ir), SilentProgress())


def test_a_checkpoint_without_the_converter_says_what_to_install(tmp_path, folder, monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)

    with pytest.raises(ModelUnsupported, match=r"pip install 'optimum-intel\[openvino\]'"):
        makers.from_checkpoint("ref", tmp_path, folder, SilentProgress())


def test_a_failed_conversion_is_told_by_its_last_line(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.2")
    _stand_in(tmp_path, monkeypatch, "echo Traceback; echo 'ValueError: not a llama'; exit 1")

    with pytest.raises(ModelUnsupported, match="status 1; ValueError: not a llama"):
        makers.from_checkpoint("ref", tmp_path, folder, SilentProgress())

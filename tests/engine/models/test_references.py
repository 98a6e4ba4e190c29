import pytest

from antiphon.engine.models.catalogue import CATALOGUE, CatalogueModel
from antiphon.engine.models.references import CheckpointFolder, GgufFile, IrFolder, resolve
from antiphon.errors import ModelUnknown, ModelUnsupported


def test_a_known_name_is_a_catalogue_model():
    source = resolve("smollm2-135m-instruct")

    assert isinstance(source, CatalogueModel)
    assert source.file_name == "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_every_catalogue_entry_is_pinned_to_exact_bytes():
    for model in CATALOGUE.values():
        assert "==" in model.requirement
        assert len(model.sha256) == len(model.wheel_sha256) == 64


def test_a_file_that_begins_like_gguf_is_one(tmp_path):
    path = tmp_path / "model.anything"
    path.write_bytes(b"GGUF...")

    assert resolve(str(path)) == GgufFile(path=path)


def test_the_home_folder_may_be_written_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "m.gguf").write_bytes(b"GGUF")

    assert resolve("~/m.gguf") == GgufFile(path=tmp_path / "m.gguf")


def test_a_home_folder_of_nobody_is_an_unknown_model():
    with pytest.raises(ModelUnknown):
        resolve("~nobody-by-this-name/m.gguf")


def test_another_file_is_not_a_model(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello")

    with pytest.raises(ModelUnsupported, match="not a GGUF file"):
        resolve(str(path))


def test_a_folder_is_known_by_what_it_holds(tmp_path):
    intermediate, checkpoint = tmp_path / "ir", tmp_path / "hf"
    for folder, names in ((intermediate, ["openvino_model.xml"]), (checkpoint, ["config.json"])):
        folder.mkdir()
        for name in names:
            (folder / name).write_text("")
    (checkpoint / "model.safetensors").write_text("")

    assert resolve(str(intermediate)) == IrFolder(path=intermediate)
    assert resolve(str(checkpoint)) == CheckpointFolder(path=checkpoint)


def test_a_folder_around_a_gguf_file_is_answered_with_what_to_name(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"GGUF")

    with pytest.raises(ModelUnsupported, match=r"name the \.gguf file"):
        resolve(str(tmp_path))


def test_an_empty_folder_is_not_a_model(tmp_path):
    with pytest.raises(ModelUnsupported, match="neither"):
        resolve(str(tmp_path))


@pytest.mark.parametrize("reference", ["", "nothing", "/nowhere/at/all.gguf", "package:", "\0"])
def test_nothing_there_is_an_unknown_model(reference, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    with pytest.raises((ModelUnknown, ModelUnsupported)):
        resolve(reference)


def test_a_file_of_an_installed_package_is_found_without_importing_it(tmp_path, monkeypatch):
    package = tmp_path / "shipped_model"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert resolve("package:shipped_model/m.gguf") == GgufFile(path=package / "m.gguf")
    with pytest.raises(ModelUnknown):
        resolve("package:shipped_model/other.gguf")

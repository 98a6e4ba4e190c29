"""The default model, prepared once for every test run on this machine, in the server's own
cache."""

import os

from antiphon.engine.models import ModelStore, PreparedModel, progress_on
from antiphon.settings import Settings, load_settings


def prepared_default_model() -> PreparedModel:
    """Fetched and prepared when the cache (`ANTIPHON_DATA_DIR`) does not have it. Raises
    ModelError."""
    wanted = {name: value for name, value in os.environ.items() if name == "ANTIPHON_DATA_DIR"}
    data_dir = load_settings(None, wanted).data_dir
    return ModelStore(data_dir).ensure(Settings().model, progress_on())
